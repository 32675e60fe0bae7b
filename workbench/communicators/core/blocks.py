"""Arrays as the blocks of bytes that links exchange, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.backends import numpy as backend


def bytes_of(array: np.ndarray) -> np.ndarray:
    """The elements of an array as a block: shape `(nbytes,)`, uint8; copied only if they are not contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def header(array: Any) -> np.ndarray:
    """Dtype and shape of an array of any library as a block; `described` reads it."""
    name = array.dtype.name if array.dtype.kind == "V" else array.dtype.str
    return np.frombuffer(f"{name} {' '.join(map(str, array.shape))}".encode(), np.uint8)


def described(block: np.ndarray) -> tuple[np.dtype, tuple[int, ...]]:
    """The inverse of `header`."""
    name, *shape = block.tobytes().decode().split()
    return backend.dtype_named(name), tuple(map(int, shape))
