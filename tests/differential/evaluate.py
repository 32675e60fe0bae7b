"""Runs programs in one of the two libraries: `-m tests.differential.evaluate tensorflow|workbench`, JSON in and out.

The interpreter need not have the other library.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.differential.common_names import Fields, Pair, new_folder

_MOST_ELEMENTS = 60
MOST_ERRORS = 8
MOST_SECONDS = 20


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
    if isinstance(value, Pair | Fields):
        return [type(value).__name__, _value(value.x), _value(value.y)]
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
    if isinstance(spec, Pair | Fields):
        return [type(spec).__name__, _spec(spec.x), _spec(spec.y)]
    if not hasattr(spec, "dtype"):
        return "dataset"
    dtype = getattr(spec.dtype, "as_numpy_dtype", spec.dtype)
    shape = getattr(spec.shape, "rank", True) is not None and spec.shape is not None
    return {"dtype": _kind(np.dtype(dtype)), "shape": list(spec.shape) if shape else None}


def _kind(dtype: np.dtype[Any]) -> str:
    return "string" if dtype.kind in "OUS" else dtype.name


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "tensorflow":
        from tests.differential.tensorflow_names import names
    else:
        from tests.differential.workbench_names import names
    given = names()
    os.chdir(Path(new_folder()).parent)  # where files go whose names a program draws
    for program in json.load(sys.stdin):
        signal.alarm(MOST_SECONDS)  # an alarm's default action ends the process
        print(json.dumps(outcome(program, given)), flush=True)
