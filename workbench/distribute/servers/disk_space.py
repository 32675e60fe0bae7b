"""Reserves disk space beyond the end of a file, so that appending need not allocate blocks."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Final

_KEEP_SIZE: Final = 1  # FALLOC_FL_KEEP_SIZE


def reserve(descriptor: int, offset: int, nbytes: int) -> bool:
    """Allocates disk blocks for a file without changing its size; truncating the file frees them.

    Args:
      descriptor: A file that is open for writing.
      offset: Start of the blocks.
      nbytes: Size of the blocks.

    Returns:
      Whether it has them. It does not if the disk is too full, or the file system does not support the call.
    """
    fallocate = _fallocate()
    return fallocate is not None and fallocate(descriptor, _KEEP_SIZE, offset, nbytes) == 0


@lru_cache(1)
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    """Linux's fallocate. The standard library has only `posix_fallocate`, which extends the file."""
    function = getattr(ctypes.CDLL(None), "fallocate", None)
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long)
    return function
