"""A pipeline's digest of sources, stages, values and functions, the same in every process.

Functions count by their code, defaults, and the values that they refer to; those of other packages, by their names.
Files count by their names, not their content; for the first 64 URLs, the server's information about the content (ETag,
times, size) counts, too. Seeds of shuffles, and seeds that were drawn, which differ between processes, need not count.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import types
from typing import Any, Final

import numpy as np

from workbench import tree
from workbench.data.seeds import DrawnSeed
from workbench.data.sources.remote import version_of
from workbench.data.sources.urls import Url
from workbench.data.stages.ordering.shuffle import Shuffle
from workbench.errors import InvalidArgumentError, NotFoundError

_MOST_URLS: Final = 64


def fingerprint(source: Any, stages: tuple[Any, ...], *, seeds: bool) -> str:
    """32 hexadecimal digits for a pipeline.

    Args:
      source: Its source.
      stages: Its stages.
      seeds: Whether seeds of shuffles and drawn seeds count.

    Raises:
      InvalidArgumentError: if it holds something, such as a lock, whose state cannot be read.
      UnavailableError: if the server of a URL cannot be reached.
    """
    (text,) = _texts(source, stages, (seeds,))
    return text


def fingerprints(source: Any, stages: tuple[Any, ...]) -> tuple[str, str]:
    """The fingerprints of a pipeline with seeds and without, computed in one traversal.

    Args:
      source: Its source.
      stages: Its stages.

    Raises:
      InvalidArgumentError: if it holds something, such as a lock, whose state cannot be read.
      UnavailableError: if the server of a URL cannot be reached.
    """
    exact, alike = _texts(source, stages, (True, False))
    return exact, alike


def _texts(source: Any, stages: tuple[Any, ...], seeds: tuple[bool, ...]) -> tuple[str, ...]:
    digest = _Digest(seeds)
    digest.add((source, *stages))
    return digest.texts()


class _Digest:
    """Adds values one after another. A value that was added before is replaced by its number, so cycles end.

    Args:
      seeds: For each digest, whether all seeds count.
    """

    def __init__(self, seeds: tuple[bool, ...]) -> None:
        self._hashes = tuple(hashlib.blake2b(digest_size=16) for _ in seeds)
        self._seeds = seeds
        self._urls = 0
        self._seen: dict[int, tuple[int, Any]] = {}  # keeps the values alive, so that their ids stay unique

    def texts(self) -> tuple[str, ...]:
        return tuple(each.hexdigest() for each in self._hashes)

    def add(self, value: Any) -> None:
        if isinstance(value, Url):
            self._add_url(value)
            return
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | range | type(...)):
            self._put(type(value).__name__, repr(value))
            return
        known = self._seen.get(id(value))
        if known is not None:
            self._put("again", known[0])
            return
        self._seen[id(value)] = (len(self._seen), value)
        self._add_new(value)

    def _add_new(self, value: Any) -> None:
        match value:
            case tuple() | list():
                self._put(_name(type(value)), len(value))
                for item in value:
                    self.add(item)
            case dict():
                self._put(_name(type(value)), len(value))
                for key, item in value.items():
                    self.add(key)
                    self.add(item)
            case set() | frozenset():
                items = [self._alone(item) for item in value]
                for index, each in enumerate(self._hashes):
                    _put(each, _name(type(value)), *sorted(texts[index] for texts in items))
            case np.ndarray() | np.generic():
                self._add_array(np.asarray(value))
            case np.dtype() | tree.Spec():
                self._put(_name(type(value)), repr(value))
            case types.ModuleType():
                self._put("module", value.__name__)
            case types.CodeType():
                self._put("code", value.co_code.hex(), value.co_names, value.co_varnames, value.co_argcount)
                self.add(value.co_consts)
            case types.FunctionType():
                self._add_function(value)
            case types.MethodType():
                self._put("method", value.__name__)
                self.add(value.__self__)
                self.add(value.__func__)
            case type() | types.BuiltinFunctionType() | np.ufunc():
                self._put(
                    "name", getattr(value, "__module__", ""), getattr(value, "__qualname__", value.__name__)
                )
            case _ if dataclasses.is_dataclass(value):
                self._put(_name(type(value)))
                for field in dataclasses.fields(value):
                    # Ignores attributes that do not describe the pipeline, such as a cache's content.
                    if field.compare:
                        self._add_field(value, field.name)
            case _ if hasattr(value, "source") and hasattr(value, "stages"):
                self.add((value.source, *value.stages))
            case _:
                self._add_object(value)

    def _add_field(self, value: Any, name: str) -> None:
        part = getattr(value, name)
        if name != "seed" or not (isinstance(value, Shuffle) or isinstance(part, DrawnSeed)):
            self.add(part)
            return
        for counts, each in zip(self._seeds, self._hashes, strict=True):
            if counts:
                _put(each, "int", repr(int(part)))

    def _add_function(self, value: types.FunctionType) -> None:
        self._put("function")
        self.add(value.__code__)
        self.add(value.__defaults__)
        self.add(value.__kwdefaults__)
        for cell in value.__closure__ or ():
            try:
                held = cell.cell_contents
            except ValueError:  # the cell is still empty
                self._put("empty cell")
            else:
                self.add(held)
        for name in _names(value.__code__):
            if name in value.__globals__:
                self._add_global(name, value.__globals__[name], value)

    def _add_global(self, name: str, found: Any, user: types.FunctionType) -> None:
        self._put("global", name)
        elsewhere = isinstance(found, types.FunctionType) and _package(found) != _package(user)
        if elsewhere:
            self._put(found.__module__, found.__qualname__)
        else:
            self.add(found)

    def _add_url(self, url: Url) -> None:
        self._put("url", str(url))
        self._urls += 1
        if self._urls <= _MOST_URLS:  # each would be a request
            with contextlib.suppress(NotFoundError):  # a folder, or gone: reading will report it
                self._put(version_of(url))

    def _add_array(self, array: np.ndarray[Any, Any]) -> None:
        self._put("array", array.dtype, array.shape)
        if array.dtype.hasobject:
            self.add(array.reshape(-1).tolist())
        else:
            data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
            for each in self._hashes:
                each.update(data)

    def _add_object(self, value: Any) -> None:
        try:
            state = value.__reduce_ex__(4)
        except Exception as error:
            raise InvalidArgumentError(
                f"the pipeline refers to {type(value).__name__} {value!r:.60}, whose state cannot be compared with "
                f"that of another run ({error}); keep it out of the functions of the dataset, or name the snapshot: "
                "snapshot_name='...'"
            ) from error
        self._put("object", _name(type(value)))
        if isinstance(state, str):
            self._put(state)
        else:
            for part in state:
                self.add(list(part) if hasattr(part, "__next__") else part)

    def _alone(self, value: Any) -> tuple[str, ...]:
        digest = _Digest(self._seeds)
        digest.add(value)
        return digest.texts()

    def _put(self, *values: Any) -> None:
        for each in self._hashes:
            _put(each, *values)


def _put(one: hashlib.blake2b, *values: Any) -> None:
    one.update(repr(values).encode("utf-8", "surrogatepass"))


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _names(code: types.CodeType) -> list[str]:
    """The global names that a function and its inner functions may look up, in order."""
    names = dict.fromkeys(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            names.update(dict.fromkeys(_names(const)))
    return list(names)


def _package(function: types.FunctionType) -> str:
    return (function.__module__ or "").partition(".")[0]
