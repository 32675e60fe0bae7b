"""Numbers in another dtype, where none of them becomes another number."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.backends.numpy import STRING, is_record


def converted(numbers: Any, dtype: np.dtype) -> Any:
    """An array, or a NumPy scalar, in another dtype; None if that cannot hold a number of it, or one is no number.

    Only digits of floating numbers may get lost. Floating numbers that are whole become integers, and complex ones
    without an imaginary part real ones.
    """
    if numbers.dtype == dtype:
        return numbers
    if numbers.dtype == STRING and all(isinstance(number, int) for number in numbers.flat):
        return _of_long_integers(numbers, dtype)
    if not (_is_number(numbers.dtype) and _is_number(dtype)):
        return None
    if numbers.dtype.kind == "c" and not _is_complex(dtype):
        if numbers.imag.any():
            return None
        numbers = numbers.real
    try:
        with np.errstate(invalid="ignore", over="ignore"):
            result = numbers.astype(dtype)
    except (TypeError, ValueError):  # NaN, say, as an integer of ml_dtypes
        return None
    return result if _same(numbers, result) else None


def _of_long_integers(numbers: Any, dtype: np.dtype) -> Any:
    """NumPy makes objects of integers that need more than 64 bits."""
    if _is_whole(dtype):
        return None if numbers.size else numbers.astype(dtype)
    try:
        return converted(numbers.astype(np.float64), dtype)
    except OverflowError:
        return None


def _same(numbers: Any, result: Any) -> bool:
    if _is_whole(result.dtype):  # integers of a narrower dtype wrap around, and fractions are cut off
        return np.array_equal(numbers, result)
    if not np.array_equal(np.isfinite(numbers), np.isfinite(result)):
        return False
    if result.dtype.kind in "fc":
        return True
    # Narrow dtypes may have neither NaN nor infinity, and take the greatest number for what is greater.
    greatest = abs(np.array(np.inf).astype(result.dtype))
    return np.array_equal(np.isnan(numbers), np.isnan(result)) and not (abs(numbers) > greatest).any()


def _is_number(dtype: np.dtype) -> bool:
    return dtype.kind not in "OSUMm" and not is_record(dtype)


def _is_complex(dtype: np.dtype) -> bool:
    return "complex" in dtype.name


def _is_whole(dtype: np.dtype) -> bool:
    return dtype.name.startswith(("bool", "int", "uint"))  # also those of ml_dtypes
