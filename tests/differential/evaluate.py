"""Runs programs in one of the two libraries: `evaluate.py tensorflow|workbench`, JSON on standard input and output.

This file is run by path, with interpreters that need not have the other library.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gzip
import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_MOST_ELEMENTS = 60
MOST_ERRORS = 8
MOST_SECONDS = 60


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


def _yielded(elements: list[Any]) -> Iterator[Any]:
    for element in elements:
        if element is FAIL:
            raise ValueError("the generator fails")
        yield element


FAIL = object()


def _steps(dataset: Any, count: int) -> list[Any]:
    iterator = iter(dataset)
    return [next(iterator, "the end") for _ in range(count)]


def _optional(dataset: Any) -> list[Any]:
    iterator = iter(dataset)
    found = [iterator.get_next_as_optional() for _ in range(3)]
    return [[bool(each.has_value()), each.get_value() if each.has_value() else 0] for each in found]


def _file(content: bytes, pack: str = "") -> str:
    """The name of a new file."""
    path = Path(tempfile.mkdtemp(dir=_folder())) / "file"
    path.write_bytes(
        {"": bytes, "GZIP": lambda data: gzip.compress(data, mtime=0), "ZLIB": zlib.compress}[pack](content)
    )
    return str(path)


def _database(kinds: list[str], rows: list[tuple[Any, ...]]) -> str:
    """The name of a new SQLite database with a table `t` of the columns c0, c1, ..."""
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


_COMMON = {
    "file": _file,
    "database": _database,
    "np": np,
    "Point": Point,
    "filled": filled,
    "FAIL": FAIL,
    "steps": _steps,
    "optional": _optional,
}


def tensorflow() -> dict[str, Any]:
    """What programs find under their names, of TensorFlow."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    def as_int(x: Any) -> Any:
        return tf.cast(x, tf.int64)

    def refused(x: Any) -> Any:
        rest = tf.reduce_sum(as_int(x)) % 3
        with tf.control_dependencies([tf.debugging.assert_none_equal(rest, tf.constant(1, tf.int64))]):
            return x + x

    def generated(lists: Any) -> Any:
        signature = tf.TensorSpec((None,), tf.int64)
        return tf.data.Dataset.from_generator(lambda: iter(lists), output_signature=signature)

    def resumed(dataset: Any, count: int) -> list[Any]:
        first = iter(dataset)
        for _ in range(count):
            next(first, None)
        with tempfile.TemporaryDirectory() as folder:
            saved = tf.train.Checkpoint(iterator=first).write(f"{folder}/position")
            second = iter(dataset)
            tf.train.Checkpoint(iterator=second).read(saved)
            return list(second)

    def checked(number: Any, x: Any) -> Any:
        with tf.control_dependencies([tf.debugging.assert_none_equal(number % 3, tf.constant(1, tf.int64))]):
            return tf.identity(x)

    return _COMMON | {
        "Dataset": tf.data.Dataset,
        "Records": tf.data.TFRecordDataset,
        "Lines": tf.data.TextLineDataset,
        "Pieces": tf.data.FixedLengthRecordDataset,
        "Sql": lambda *arguments: tf.data.experimental.SqlDataset("sqlite", *arguments),
        "io": tf.io,
        "Spec": lambda shape, dtype: tf.TensorSpec(shape, tf.as_dtype(dtype)),
        "generator": lambda elements, spec: tf.data.Dataset.from_generator(
            lambda: _yielded(elements), output_signature=spec
        ),
        "options": functools.partial(_with, tf.data.Options),
        "resumed": resumed,
        "checked": checked,
        "at": lambda dataset, index: tf.data.experimental.at(dataset, index),
        "asserted": tf.data.experimental.assert_cardinality,
        "size": lambda x: tf.size(x, tf.int64),
        "cast": tf.cast,
        "joined": lambda x, y: tf.concat([x, y], 0),
        "as_int": as_int,
        "refused": refused,
        "generated": generated,
        "numbers": tf.range,
        "length": lambda x: tf.shape(x)[0],
    }


def _with(options: type, **values: Any) -> Any:
    made = options()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def workbench() -> dict[str, Any]:
    """What programs find under their names, of this project."""
    import workbench as wb

    def as_int(x: Any) -> Any:
        return np.asarray(x).astype(np.int64)[()]

    def refused(x: Any) -> Any:
        if int(np.sum(x)) % 3 == 1:
            raise wb.errors.InvalidArgumentError("refused")
        return x + x

    def generated(lists: Any) -> Any:
        signature = wb.data.TensorSpec((None,), np.int64)
        return wb.data.Dataset.from_generator(lambda: iter(lists), output_signature=signature)

    def resumed(dataset: Any, count: int) -> list[Any]:
        first = iter(dataset)
        for _ in range(count):
            next(first, None)
        with tempfile.TemporaryDirectory() as folder:
            first.save(f"{folder}/position")
            second = iter(dataset)
            second.restore(f"{folder}/position")
            return list(second)

    def checked(number: Any, x: Any) -> Any:
        if number % 3 == 1:
            raise wb.errors.InvalidArgumentError("refused")
        return x

    return _COMMON | {
        "Dataset": wb.data.Dataset,
        "Records": wb.data.TFRecordDataset,
        "Lines": wb.data.TextLineDataset,
        "Pieces": wb.data.FixedLengthRecordDataset,
        "Sql": lambda *arguments: wb.data.experimental.SqlDataset("sqlite", *arguments),
        "io": wb.io,
        "Spec": wb.data.TensorSpec,
        "generator": lambda elements, spec: wb.data.Dataset.from_generator(
            lambda: _yielded(elements), output_signature=spec
        ),
        "options": functools.partial(_with, wb.data.Options),
        "resumed": resumed,
        "checked": checked,
        "at": wb.data.experimental.at,
        "asserted": wb.data.experimental.assert_cardinality,
        "size": lambda x: np.int64(np.size(x)),
        "cast": lambda x, dtype: np.asarray(x).astype(dtype)[()],
        "joined": lambda x, y: np.concatenate([x, y]),
        "as_int": as_int,
        "refused": refused,
        "generated": generated,
        "numbers": np.arange,
        "length": len,
    }


def outcome(program: str, names: dict[str, Any]) -> dict[str, Any]:
    """What a program gives: its error, or elements (with errors in their places), spec and cardinality."""
    try:
        dataset = eval(program, dict(names))
    except Exception as error:
        return {"made": _error(error)}
    if not hasattr(dataset, "cardinality"):
        return {"value": _value(dataset)}
    return {
        "elements": _elements(dataset),
        "spec": _attempt(lambda: _spec(dataset.element_spec)),
        "cardinality": _attempt(lambda: int(dataset.cardinality())),
    }


def _elements(dataset: Any) -> list[Any]:
    found: list[Any] = []
    errors = 0
    try:
        elements = iter(dataset)
    except Exception as error:
        return [_error(error)]
    while len(found) < _MOST_ELEMENTS and errors < MOST_ERRORS:
        try:
            found.append(_value(next(elements)))
        except StopIteration:
            break
        except Exception as error:
            found.append(_error(error))
            errors += 1
    return found


def _attempt(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception as error:
        return _error(error)


def _error(error: Exception) -> dict[str, Any]:
    kinds = [kind.__name__ for kind in type(error).__mro__ if kind is not object]
    frames = traceback.extract_tb(error.__traceback__)
    return {"error": kinds, "text": str(error)[-200:], "file": frames[-1].filename if frames else ""}


def _value(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, *(_value(part) for part in value)]
    if isinstance(value, dict):
        return {name: _value(part) for name, part in sorted(value.items())}
    if hasattr(value, "element_spec"):
        return "dataset"
    array = np.array(value, object) if isinstance(value, bytes) else np.asarray(value)
    items = json.loads(json.dumps(array.tolist(), default=str))
    return {"dtype": _kind(array.dtype), "shape": list(array.shape), "items": items}


def _spec(spec: Any) -> Any:
    if isinstance(spec, (tuple, list)):
        return [type(spec).__name__, *(_spec(part) for part in spec)]
    if isinstance(spec, dict):
        return {name: _spec(part) for name, part in sorted(spec.items())}
    if not hasattr(spec, "dtype"):
        return "dataset"
    dtype = getattr(spec.dtype, "as_numpy_dtype", spec.dtype)
    shape = getattr(spec.shape, "rank", True) is not None and spec.shape is not None
    return {"dtype": _kind(np.dtype(dtype)), "shape": list(spec.shape) if shape else None}


def _kind(dtype: np.dtype[Any]) -> str:
    return "string" if dtype.kind in "OUS" else dtype.name


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    given = {"tensorflow": tensorflow, "workbench": workbench}[sys.argv[1]]()
    for program in json.load(sys.stdin):
        signal.alarm(MOST_SECONDS)  # the default action ends the process
        print(json.dumps(outcome(program, given)), flush=True)
