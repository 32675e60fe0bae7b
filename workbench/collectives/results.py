"""Memory for results: reused once the user has dropped what was handed out before.

Fresh memory costs a page fault per 4 KB, which is more than the whole collective.
"""

from __future__ import annotations

import sys
from collections import deque

import numpy as np

_SMALLEST_BYTES = 32 * 1024  # below, malloc reuses memory by itself
_KEPT_BYTES = 256 * 1024 * 1024


def _references(buffers: deque[np.ndarray]) -> int:
    # Read in one place only: what an idle buffer counts is the same then, however an interpreter counts locals.
    return sys.getrefcount(buffers[0])


_IDLE = _references(deque([np.empty(0, np.uint8)]))


def is_idle(buffers: deque[np.ndarray]) -> bool:
    """Whether nothing but `buffers` refers to its first element (array views refer to the array that they show)."""
    return _references(buffers) == _IDLE


class ResultPool:
    """Buffers for the results of one replica. Only its thread may call `take`; any thread may drop a result.

    A buffer is free when nobody but the pool refers to it. No other thread can get a new reference to such a buffer,
    so looking at the reference count does not race.

    Attributes:
      kept_bytes: Memory that the pool refers to, in use or not.
    """

    def __init__(self) -> None:
        self._buffers: dict[int, deque[np.ndarray]] = {}
        self._sizes: deque[int] = deque()  # of the buffers made, oldest first
        self.kept_bytes = 0

    def take(self, count: int, dtype: np.dtype) -> np.ndarray:
        """An array of `count` elements, not initialised, in memory that nobody else refers to."""
        nbytes = count * dtype.itemsize
        if nbytes < _SMALLEST_BYTES:
            return np.empty(count, dtype)
        buffers = self._buffers.get(nbytes)
        if buffers is None:
            buffers = self._buffers[nbytes] = deque()
        for _ in range(len(buffers)):
            if is_idle(buffers):
                return buffers[0].view(dtype)
            buffers.rotate(-1)
        return self._add(nbytes, buffers).view(dtype)

    def _add(self, nbytes: int, buffers: deque[np.ndarray]) -> np.ndarray:
        buffer = np.empty(nbytes, np.uint8)
        self._sizes.append(nbytes)
        self.kept_bytes += nbytes
        buffers.append(buffer)
        while self.kept_bytes > _KEPT_BYTES and len(self._sizes) > 2:
            # Forgetting a buffer that is in use is fine: its user keeps it alive.
            oldest = self._sizes.popleft()
            self._buffers[oldest].popleft()
            self.kept_bytes -= oldest
        return buffer
