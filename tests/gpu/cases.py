"""What the checks compute with, and what must come of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.backends import cupy as gpu
from workbench.backends import numpy as backend

OPS = ("sum", "mean", "min", "max", "prod")
DEADLINE_SECONDS = 60.0


def dtypes() -> list[np.dtype]:
    names = (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
    )
    found = [np.dtype(name) for name in names.split()]
    try:
        import ml_dtypes

        gpu.array(np.ones(2, ml_dtypes.bfloat16))
    except Exception as error:
        print(f"bfloat16 is left out: {error}")
        return found
    return [*found, np.dtype(ml_dtypes.bfloat16)]


def values(seed: int, count: int, dtype: np.dtype) -> np.ndarray:
    """Small integers, which every order of combining treats alike; a NaN among floats."""
    found = ((np.arange(count) * 7 + seed * 3) % 5).astype(dtype)
    if dtype.kind in "fcV" and count > 3:
        found[seed % count] = np.nan
    return found


def expected(op: str, arrays: list[np.ndarray]) -> np.ndarray:
    wide = backend.accumulator(arrays[0].dtype, op)
    total = arrays[0].astype(wide)
    with np.errstate(all="ignore"):
        for array in arrays[1:]:
            total = backend.ufunc(op)(total, array.astype(wide))
        total = total / wide.type(len(arrays)) if op == "mean" else total
        return total.astype(backend.mean_dtype(arrays[0].dtype) if op == "mean" else arrays[0].dtype)


def same(found: Any, want: np.ndarray) -> bool:
    host = gpu.to_host(found)
    if host.dtype != want.dtype or host.shape != want.shape:
        return False
    if want.dtype.kind == "c":
        return bool(
            (np.isnan(host) == np.isnan(want)).all()
            and np.allclose(host[~np.isnan(want)], want[~np.isnan(want)])
        )
    wide = np.float64 if want.dtype.kind in "fV" else want.dtype
    return bool(np.array_equal(host.astype(wide), want.astype(wide), equal_nan=want.dtype.kind in "fV"))
