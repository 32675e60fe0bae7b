"""Keeps the memory of large freed arrays for the next ones."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

# glibc's DEFAULT_MMAP_THRESHOLD_MAX, less the head of a block.
_LARGEST_COUNTED_BYTES: Final = (32 << 20) - (8 << 10)


@lru_cache(1)
def keep_freed_memory() -> None:
    """Makes the C library keep the memory of large values.

    By default, glibc returns freed memory at the end of the heap to the kernel, and each batch of pictures page-faults
    all of it in again, which takes five times as long as copying. After a large block was freed, glibc keeps up to
    twice its size, here 64 MiB, unless MALLOC_TRIM_THRESHOLD_ says otherwise. The block is never touched.
    """
    np.empty(_LARGEST_COUNTED_BYTES, np.uint8)
