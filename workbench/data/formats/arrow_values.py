"""The values of Arrow arrays as NumPy's, without a copy if layouts agree.

Arrow's own `to_numpy` imports pandas if it is installed: 0.2 s and 45 MB in every reading process. So does `pa.scalar`,
which `pyarrow.dataset` calls while it is imported, so processes that read Parquet files import pandas anyway.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.backends.numpy import STRING
from workbench.data.structure import Array

if TYPE_CHECKING:
    import pyarrow as pa


def values_of(array: pa.Array) -> Array:
    """Numbers, bools, times or texts of shape `(rows,)`; a missing one becomes NaN or NaT, which the type must have.

    Args:
      array: The array, not nested. Texts and bytes of all kinds become bytes.
    """
    dtype = dtype_of(array.type)
    if dtype is None:
        return np.asarray(array.to_numpy(zero_copy_only=False))
    if dtype == STRING:
        return _texts(array)
    if dtype.kind == "b":
        return _bits(array, 1)
    is_time = dtype.kind in "mM"
    stored = np.dtype(f"i{array.type.bit_width // 8}") if is_time else dtype
    values = _numbers(array, stored)
    if is_time:
        values = values.astype(np.int64, copy=False).view(dtype)
    if array.null_count:
        values = values.copy()
        values[~_bits(array, 0)] = np.array("NaT" if is_time else np.nan, dtype)
    return values


def dtype_of(kind: pa.DataType) -> np.dtype[Any] | None:
    """NumPy's dtype for an Arrow type; None if there is none."""
    import pyarrow.types as types

    tests = "string large_string string_view binary large_binary binary_view fixed_size_binary".split()
    if any(getattr(types, f"is_{test}")(kind) for test in tests):
        return STRING
    if types.is_boolean(kind):
        return np.dtype(bool)
    if types.is_integer(kind):
        return np.dtype(str(kind))
    if types.is_floating(kind):
        return np.dtype(f"f{kind.bit_width // 8}")
    if types.is_timestamp(kind) or types.is_duration(kind):
        return np.dtype(f"{'M' if types.is_timestamp(kind) else 'm'}8[{kind.unit}]")
    if types.is_date(kind):
        return np.dtype("M8[D]" if types.is_date32(kind) else "M8[ms]")
    return None


def _numbers(array: pa.Array, dtype: np.dtype[Any]) -> Array:
    """The numbers in their own buffer, read-only."""
    buffer = array.buffers()[1] if len(array) else None
    if buffer is None:
        return np.empty(0, dtype)
    values = np.frombuffer(buffer, dtype, len(array), array.offset * dtype.itemsize)
    values.flags.writeable = False
    return values


def _bits(array: pa.Array, number: int) -> Array:
    """Bools, which the buffer holds as bits."""
    end = array.offset + len(array)
    buffer = array.buffers()[number] if len(array) else None
    octets = np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8, -(-end // 8))
    return np.unpackbits(octets, count=end if len(octets) else 0, bitorder="little")[array.offset :].view(
        bool
    )


def _texts(array: pa.Array) -> Array:
    import pyarrow as pa

    array = array.cast(pa.large_binary())
    if "pandas" in sys.modules:  # it takes two thirds of the time
        return np.asarray(array.to_numpy(zero_copy_only=False), STRING)
    found = np.empty(len(array), STRING)
    found[:] = array.to_pylist()
    return found
