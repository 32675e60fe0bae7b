"""Disk space that a file has ahead of its end, so that what is appended need not look for blocks."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Final

_KEEP_SIZE: Final = 1  # FALLOC_FL_KEEP_SIZE


def reserve(descriptor: int, offset: int, nbytes: int) -> bool:
    """Takes blocks of the disk for a file, whose size stays as it is; truncating it gives them back.

    Args:
      descriptor: A file that is open for writing.
      offset: Where the blocks begin.
      nbytes: How much they hold.

    Returns:
      Whether it has them now. It has not where the disk is too full, or its file system has no such call.
    """
    fallocate = _fallocate()
    return fallocate is not None and fallocate(descriptor, _KEEP_SIZE, offset, nbytes) == 0


@lru_cache(1)
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    """Linux's fallocate. The standard library has only `posix_fallocate`, which enlarges the file."""
    function = getattr(ctypes.CDLL(None), "fallocate", None)
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long)
    return function
