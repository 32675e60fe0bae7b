"""Runs programs in one of the two libraries: `evaluate.py tensorflow|workbench`, JSON on standard input and output.

This file is run by path, with interpreters that need not have the other library.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

_MOST_ELEMENTS = 60
_MOST_ERRORS = 8


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

    return {
        "Dataset": tf.data.Dataset,
        "np": np,
        "as_int": as_int,
        "refused": refused,
        "generated": generated,
        "numbers": tf.range,
        "length": lambda x: tf.shape(x)[0],
    }


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

    return {
        "Dataset": wb.data.Dataset,
        "np": np,
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
    while len(found) < _MOST_ELEMENTS and errors < _MOST_ERRORS:
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
        return [_value(part) for part in value]
    if isinstance(value, dict):
        return {name: _value(part) for name, part in sorted(value.items())}
    if hasattr(value, "element_spec"):
        return "dataset"
    array = np.asarray(value)
    items = json.loads(json.dumps(array.tolist(), default=lambda part: part.decode()))
    return {"dtype": _kind(array.dtype), "shape": list(array.shape), "items": items}


def _spec(spec: Any) -> Any:
    if isinstance(spec, (tuple, list)):
        return [_spec(part) for part in spec]
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
    json.dump([outcome(program, given) for program in json.load(sys.stdin)], sys.stdout)
