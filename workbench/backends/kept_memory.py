"""Memory that large arrays took, kept for the next ones."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

# glibc's DEFAULT_MMAP_THRESHOLD_MAX, less the head of a block.
_LARGEST_COUNTED_BYTES: Final = (32 << 20) - (8 << 10)


@lru_cache(1)
def keep_freed_memory() -> None:
    """Makes the C library keep what large values took.

    By default glibc gives freed memory at the end of the heap back to the kernel, and each batch of pictures faults
    all of its pages in again, which takes five times as long as copying them. After a large block was freed it keeps
    up to twice as much, here 64 MiB, unless MALLOC_TRIM_THRESHOLD_ says otherwise. The block is never touched.
    """
    np.empty(_LARGEST_COUNTED_BYTES, np.uint8)
