"""Converts numbers to another dtype without changing their values, and finds the types in nested lists."""

from __future__ import annotations

import functools
import itertools
import sys
from typing import Any

import numpy as np

from workbench.backends.numpy import STRING, is_record, is_traced


def holds(dtype: np.dtype, array: Any) -> bool:
    """Whether `dtype` can hold an array of any library: digits may get lost, but the kind and the numbers stay.

    Texts fit only into texts, and opaque bytes only into themselves. For arrays that JAX is tracing, only the kind is
    known: whole numbers count as fitting.
    """
    given = array.dtype
    if given == dtype:
        return True
    if is_record(dtype) or is_record(given):
        return False
    if not array.size:
        return True
    if not (_is_number(given) and _is_number(dtype)):
        return bool(given.kind == dtype.kind and np.can_cast(given, dtype))  # not into shorter strings
    if _is_complex(given) and not _is_complex(dtype):  # NumPy would cast complex numbers to bfloat16
        return False
    if (limits := _limits(dtype)) is None:
        return np.can_cast(given, dtype, "same_kind")
    if (own := _limits(given)) is None:
        return bool(given.kind == "b")
    if (limits.min <= own.min and own.max <= limits.max) or is_traced(array):
        return True
    return bool(limits.min <= int(array.min()) and int(array.max()) <= limits.max)


def converted(numbers: Any, dtype: np.dtype) -> Any:
    """An array or NumPy scalar in another dtype; None if that cannot hold a number, or one is not a number.

    Only digits of floats may get lost. Whole floats can become integers, and complex numbers without an imaginary part
    real ones.
    """
    if numbers.dtype == dtype:
        return numbers
    if numbers.dtype == STRING and all(isinstance(number, int) for number in numbers.flat):
        return _of_long_integers(numbers, dtype)
    if not (_is_number(numbers.dtype) and _is_number(dtype)):
        return None
    if _is_complex(numbers.dtype) and not _is_complex(dtype):
        if numbers.dtype.kind != "c":  # `imag` is 0 for complex dtypes of ml_dtypes
            numbers = numbers.astype(np.complex64)
        if numbers.imag.any():
            return None
        numbers = numbers.real
    try:
        with np.errstate(invalid="ignore", over="ignore"):
            result = numbers.astype(dtype)
    except (TypeError, ValueError):  # such as NaN as an ml_dtypes integer
        return None
    return result if _same(numbers, result) else None


def _of_long_integers(numbers: Any, dtype: np.dtype) -> Any:
    """NumPy stores integers of more than 64 bits as objects."""
    if _is_whole(dtype):
        return None if numbers.size else numbers.astype(dtype)
    try:
        return converted(numbers.astype(np.float64), dtype)
    except OverflowError:
        return None


def _same(numbers: Any, result: Any) -> bool:
    if _is_whole(result.dtype):  # narrower integers wrap around, and fractions are truncated
        return np.array_equal(numbers, result)
    if not np.array_equal(np.isfinite(numbers), np.isfinite(result)):
        return False
    if result.dtype.kind in "fc":
        return True
    # A narrow dtype may have neither NaN nor infinity; it then turns larger numbers into its maximum.
    greatest = abs(np.array(np.inf).astype(result.dtype))
    return np.array_equal(np.isnan(numbers), np.isnan(result)) and not (abs(numbers) > greatest).any()


def conversion(dtype: np.dtype, value: str = "value") -> str:
    """The code that converts `value` to a dtype that does not hold it, for errors."""
    if dtype == STRING:
        return "give texts"
    if is_record(dtype):
        return f"give an array of dtype {dtype.str!r}"
    module = "ml_dtypes" if dtype.kind == "V" else "np"
    return f"convert it with {value}.astype({module}.{dtype.name})"


def leaf_types(value: Any) -> set[type]:
    """The types of the values in nested lists, tuples and ranges; for anything else, its own type."""
    found: set[type] = set()
    level = [value]
    while True:
        # Level by level, because a list and the number of its sublists can both be large.
        types = set(map(type, level))
        lists = {kind for kind in types if issubclass(kind, list | tuple)}
        found |= types - lists
        if not lists:
            return {int if kind is range else kind for kind in found}
        level = list(itertools.chain.from_iterable(part for part in level if type(part) in lists))


def _is_number(dtype: np.dtype) -> bool:
    return dtype.kind not in "OSUMm" and not is_record(dtype)


@functools.lru_cache(maxsize=256)  # dtype.name takes NumPy microseconds
def _is_complex(dtype: np.dtype) -> bool:
    return "complex" in dtype.name  # including those of ml_dtypes


def _is_whole(dtype: np.dtype) -> bool:
    return dtype.kind == "b" or _limits(dtype) is not None


@functools.lru_cache(maxsize=256)
def _limits(dtype: np.dtype) -> Any:
    """The lowest and highest number of an integer dtype, including those of ml_dtypes; None for other dtypes."""
    if dtype.kind in "iu":
        return np.iinfo(dtype)
    ml_dtypes: Any = sys.modules.get("ml_dtypes")
    if dtype.kind != "V" or ml_dtypes is None:
        return None
    try:
        return ml_dtypes.iinfo(dtype)
    except ValueError:
        return None
