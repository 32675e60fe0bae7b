"""What programs find under the same names, whichever library runs them."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gzip
import itertools
import json
import os
import shutil
import socket
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np


class Point(NamedTuple):
    """A structure with names."""

    x: Any
    y: Any


def filled(shape: list[int], dtype: str, first: int) -> Any:
    """An array of numbers or texts that count on from `first`; a scalar for an empty shape."""
    numbers = np.arange(first, first + int(np.prod(shape)), dtype=np.int64).reshape(shape)
    if dtype == "string":
        texts = np.empty(numbers.shape, object)
        texts[...] = (
            np.vectorize(lambda number: b"t" * (number % 4) + b"%d" % number, [object])(numbers)
            if numbers.size
            else b""
        )
        return texts[()]
    return (numbers % 2 == 0 if dtype == "bool" else numbers.astype(dtype))[()]


def yielded(elements: list[Any]) -> Iterator[Any]:
    for element in elements:
        if element is FAIL:
            raise ValueError("the generator fails")
        yield element


FAIL = object()
_END = object()


def _steps(dataset: Any, count: int) -> list[Any]:
    iterator = iter(dataset)
    return [next(iterator, "the end") for _ in range(count)]


def _optional(dataset: Any) -> list[Any]:
    iterator = iter(dataset)
    found = [iterator.get_next_as_optional() for _ in range(3)]
    return [[bool(each.has_value()), each.get_value() if each.has_value() else 0] for each in found]


def _file(content: bytes, pack: str = "") -> str:
    """A new file; returns its name."""
    folder = Path(_folder()) / f"{next(_NUMBERS):06}"  # sorted names, because some readers sort them
    folder.mkdir()
    path = folder / "file"
    path.write_bytes(
        {"": bytes, "GZIP": lambda data: gzip.compress(data, mtime=0), "ZLIB": zlib.compress}[pack](content)
    )
    return str(path)


def _database(kinds: list[str], rows: list[tuple[Any, ...]]) -> str:
    """A new SQLite database with a table `t` and the columns c0, c1, ...; returns its name."""
    path = Path(tempfile.mkdtemp(dir=_folder())) / "file"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(f'c{n} {kind}' for n, kind in enumerate(kinds))})")
        for row in rows:
            connection.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(row))})", row)
        connection.commit()
    return str(path)


@functools.cache
def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="workbench-differential-")
    atexit.register(shutil.rmtree, folder)
    return folder


class Pair:
    """A class that says itself what it holds; `y` may differ between elements of a batch."""

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y

    def __tf_flatten__(self) -> tuple[Any, Any]:
        """What it holds besides components, and these."""
        return (), (self.x, self.y)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Any) -> Pair:
        """One of components."""
        return cls(*components)


class _Field(NamedTuple):
    name: str


class Fields:
    """What classes of attrs look like."""

    __attrs_attrs__ = _Field("x"), _Field("y")

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y


def rest(iterator: Any) -> list[Any]:
    """What follows, with the class of an error in its place."""
    found: list[Any] = []
    for _ in range(_MOST):
        try:
            found.append(next(iterator))
        except StopIteration:
            break
        except Exception as error:
            found.append(_LIKE.get(type(error).__name__, type(error).__name__))
            if len(found) > 1 and found[-1] == found[-2] and not hasattr(found[-2], "shape"):
                return found[:-1]  # repeated endlessly
    return found


def _gathered(*datasets: Any) -> list[Any]:
    """The elements of all datasets, read in turn. Sorted, so that the order does not show when each was made."""
    iterators = [iter(dataset) for dataset in datasets]
    found: list[Any] = []
    while iterators and len(found) < 10 * _MOST:
        left = []
        for iterator in iterators:
            element = next(iterator, _END)
            if element is not _END:
                found.append(element)
                left.append(iterator)
        iterators = left
    return sorted(found, key=lambda element: repr(_plain(element)))


def _in_turn(make: Any, turns: list[tuple[str, int]]) -> list[list[Any]]:
    """Some elements of each reader in turn; `make` returns the dataset of one."""
    readers: dict[str, Any] = {}
    found = []
    for name, count in turns:
        reader = readers[name] if name in readers else readers.setdefault(name, iter(make(name)))
        found.append([next(reader) for _ in range(count)])
    return found


def _plain(element: Any) -> Any:
    if isinstance(element, dict):
        return [_plain(part) for _, part in sorted(element.items())]
    return [_plain(part) for part in element] if isinstance(element, tuple) else np.asarray(element).tolist()


def is_refused(refusals: tuple[type[Exception], ...], make: Any) -> bool:
    """Whether a dataset is refused with one of some errors, while it is made or read."""
    try:
        for _, _ in zip(range(3), make(), strict=False):
            pass
    except refusals:
        return True
    return False


def asked(refusals: tuple[type[Exception], ...], make: Any, *questions: Any) -> list[Any]:
    """What something answers to questions, each as a text; "refused" for one of some errors."""
    made = make()
    found = []
    for question in questions:
        try:
            found.append(_told(question(made)))
        except refusals:
            found.append("refused")
    return found


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(sorted(f"{_told(key)}: {_told(part)}" for key, part in value.items()))
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_told, value))}]"
    for method in ("as_dict", "to_string"):
        if hasattr(value, method):
            return f"{type(value).__name__.removesuffix('V2')} {_told(getattr(value, method)())}"
    if type(value) is object:  # its repr has an address
        return "object()"
    return repr(bool(value) if isinstance(value, np.bool_) else value)


def _set_to(made: Any, name: str, value: Any) -> Any:
    setattr(made, name, value)
    return getattr(made, name)


def _in_environment(variables: dict[str, str], ask: Any) -> Any:
    with mock.patch.dict(os.environ, variables, clear=True):
        return ask()


def _tree() -> str:
    """A new folder with files and folders; returns its name."""
    folder = Path(tempfile.mkdtemp(dir=_folder()))
    (folder / "sub").mkdir()
    for name in ("a.txt", "b.txt", "ab.txt", "c.csv", ".hidden", "sub/d.txt"):
        (folder / name).write_text(name)
    return str(folder)


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses right now."""
    with contextlib.ExitStack() as stack:
        listening = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in listening]


def _loaded(dataset: Any, saving: dict[str, Any], loading: dict[str, Any]) -> Any:
    path = new_folder()
    dataset.save(path, **saving)
    return type(dataset).load(path, **loading) if hasattr(type(dataset), "load") else None


def _inner(dataset: Any) -> list[Any]:
    """Elements, with lists in place of datasets."""

    def listed(value: Any) -> Any:
        if hasattr(value, "cardinality"):
            return [listed(part) for part in value.take(9)]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return [listed(part) for part in value]
        if isinstance(value, tuple | list):
            return [listed(part) for part in value]
        if isinstance(value, dict):
            return {name: listed(part) for name, part in sorted(value.items())}
        if _holds_datasets(value):
            return [listed(part) for part in value]
        return value

    return [listed(element) for element in dataset.take(9)]


def _holds_datasets(value: Any) -> bool:
    return (
        isinstance(value, np.ndarray)
        and value.dtype == object
        and value.size > 0
        and hasattr(value.reshape(-1)[0], "cardinality")
    )


def settings(options: Any) -> str:
    """The options that both libraries have."""
    found: dict[str, Any] = {}
    for name in OPTIONS:
        value: Any = options
        for part in name.split("."):
            value = getattr(value, part)
        found[name] = getattr(value, "name", value)
    return json.dumps({name: value for name, value in found.items() if value not in (None, [])}, default=str)


def _changed(options: Any, name: str) -> str:
    value = options
    *parts, last = name.split(".")
    for part in parts:
        value = getattr(value, part)
    setattr(value, last, getattr(value, last))
    return settings(options)


def with_settings(options: Any, values: dict[str, Any]) -> Any:
    """Options after they are set."""
    for name, value in values.items():
        *parts, last = name.split(".")
        changed = options
        for part in parts:
            changed = getattr(changed, part)
        setattr(changed, last, value)
    return options


def _agree(dataset: Any) -> list[bool]:
    """Whether three passes agree, one after another, and parts of one."""
    firsts = dataset.map(lambda *x: x[0])
    passes = [repr([np.asarray(part).tolist() for part in firsts]) for _ in range(3)]
    return [passes[0] == passes[1], passes[1] == passes[2], passes[0] == passes[2]]


def new_folder() -> str:
    """The name of a new folder."""
    return str(Path(tempfile.mkdtemp(dir=_folder())) / "folder")


OPTIONS = (
    "deterministic", "dataset_name", "experimental_slack", "experimental_symbolic_checkpoint",
    "experimental_warm_start", "experimental_external_state_policy", "framework_type", "autotune.enabled",
    "autotune.cpu_budget", "autotune.ram_budget", "autotune.initial_parallelism", "autotune.min_parallelism",
    "experimental_distribute.num_devices", "experimental_distribute.auto_shard_policy",
    "experimental_optimization.map_fusion", "experimental_optimization.noop_elimination",
    "experimental_optimization.apply_default_optimizations", "threading.private_threadpool_size",
    "threading.max_intra_op_parallelism",
)  # fmt: skip
_MOST = 60
_LIKE = {"ValueError": "InvalidArgumentError"}  # TensorFlow turns those of generators into these
_NUMBERS = itertools.count()

COMMON = {
    "set_to": _set_to,
    "in_environment": _in_environment,
    "visible": lambda: os.environ.get("CUDA_VISIBLE_DEVICES"),
    "Pair": Pair,
    "Fields": Fields,
    "folder": new_folder,
    "gathered": _gathered,
    "in_turn": _in_turn,
    "tree": _tree,
    "named": lambda dataset, tree: [bytes(np.asarray(x).item())[len(tree) :].decode() for x in dataset],
    "twice": lambda dataset: [rest(iter(dataset)), rest(iter(dataset))],
    "loaded": _loaded,
    "inner": _inner,
    "settings": settings,
    "changed": _changed,
    "agree": _agree,
    "number": lambda: next(_NUMBERS),
    "file": _file,
    "database": _database,
    "np": np,
    "Point": Point,
    "filled": filled,
    "FAIL": FAIL,
    "steps": _steps,
    "optional": _optional,
}


def with_values(options: type, **values: Any) -> Any:
    made = options()
    for name, value in values.items():
        setattr(made, name, value)
    return made
