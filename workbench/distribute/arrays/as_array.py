"""Converts users' values to arrays: Python numbers become int32 and float32, as in TensorFlow."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import numpy as np

from workbench.backends.conversion import leaf_types
from workbench.backends.numpy import STRING, dtype_text, native, view
from workbench.data.structure import convert

Array = np.ndarray[Any, Any]
_PYTHON = (bool, int, float, complex, str, bytes, list, tuple, range)
# Dtypes that are wider than those of Python numbers, and the types of numbers that they hold.
_WIDE = {
    np.dtype(code): types
    for codes, types in (("Q", {int}), ("dg", {int, float}), ("DG", {int, float, complex}))
    for code in codes
}


def is_python_number(value: Any) -> bool:
    """Whether `value` is a plain Python number, which has no dtype of its own."""
    return type(value) in (int, float, bool, complex)


def as_array(value: Any, dtype: np.dtype[Any] | None = None) -> Array:
    """`value` as an array in this machine's byte order that may share its memory: never write to it.

    Args:
      value: Any array that a backend reads, a Python number, text, or nested lists of them.
      dtype: The dtype for Python numbers if it holds more of their digits, and for strings; otherwise numbers keep
        their kind.

    Raises:
      TypeError: if `value` is none of these, or a masked array.
    """
    if type(value) is np.ndarray:
        if value.dtype.kind in "OUS" and dtype == STRING:
            return _converted(value)  # bytes objects rather than numbers
        return value if value.dtype.isnative else native(value)
    if dtype in _WIDE and leaf_types(value) <= _WIDE[dtype]:
        with contextlib.suppress(OverflowError, ValueError):  # out of range, or not an array: reported below
            return np.asarray(value, dtype)
    if isinstance(value, _PYTHON):
        return _converted(list(value) if isinstance(value, tuple) else value)
    if isinstance(value, np.generic):
        return np.asarray(value)
    return native(np.asarray(view(value)))


def _converted(value: Any) -> Array:
    found = convert(value)
    return np.array(found, object) if isinstance(found, bytes) else np.asarray(found)


def namespace_of(array: Any) -> Any:
    """The module with functions for an array: NumPy, `jax.numpy` (also for traced values) or CuPy."""
    if type(array) is np.ndarray:
        return np
    library = type(array).__module__.partition(".")[0]
    if library in ("jax", "jaxlib"):
        return sys.modules["jax"].numpy
    return sys.modules["cupy"] if library == "cupy" else np


def as_operand(value: Any, dtype: np.dtype[Any] | None = None) -> Any:
    """`value` as an array for computations on a replica; arrays of JAX and CuPy stay unchanged. See `as_array`."""
    return value if namespace_of(value) is not np else as_array(value, dtype)


def describe(array: Array) -> str:
    """Dtype and shape in words, such as "float32[2,3]"."""
    return f"{dtype_text(array.dtype)}[{','.join(map(str, array.shape))}]"
