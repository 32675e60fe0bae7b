"""Memory for results, reused once the user has dropped earlier results.

Fresh memory costs a page fault per 4 KB, which is more than the whole collective. What has not been used for
`IDLE_SECONDS` is given back all the same: a loop in which it is needed again comes sooner.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from time import monotonic

import numpy as np

IDLE_SECONDS = 10.0
"""The memory of collectives returns to the system after this long without use."""
_SMALLEST_BYTES = 32 * 1024  # malloc itself reuses smaller memory
_KEPT_BYTES = 256 * 1024 * 1024


def _references(buffers: deque[np.ndarray]) -> int:
    # The only place that counts references, so an idle buffer's count is the same in every interpreter.
    return sys.getrefcount(buffers[0])


_IDLE = _references(deque([np.empty(0, np.uint8)]))


def is_idle(buffers: deque[np.ndarray]) -> bool:
    """Whether nothing but `buffers` refers to its first element (array views refer to the array that they show)."""
    return _references(buffers) == _IDLE


class ResultPool:
    """Buffers for the results of one replica. Any thread may drop a result, and call `give_back`.

    A buffer is free when nobody but the pool refers to it. Only the holder of the lock can get a new reference to such
    a buffer, so looking at the reference count does not race.

    Attributes:
      kept_bytes: Memory that the pool refers to, in use or not.
    """

    def __init__(self) -> None:
        self._buffers: dict[int, deque[np.ndarray]] = {}
        self._sizes: deque[int] = deque()  # of the buffers made, oldest first
        self._used: dict[int, float] = {}  # by a buffer's id: when it was last handed out
        self._lock = threading.Lock()
        self.kept_bytes = 0

    def take(self, count: int, dtype: np.dtype) -> np.ndarray:
        """An array of `count` elements, not initialised, in memory that nobody else refers to."""
        nbytes = count * dtype.itemsize
        if nbytes < _SMALLEST_BYTES:
            return np.empty(count, dtype)
        with self._lock:
            buffers = self._buffers.get(nbytes)
            if buffers is None:
                buffers = self._buffers[nbytes] = deque()
            for _ in range(len(buffers)):
                if is_idle(buffers):
                    break
                buffers.rotate(-1)
            else:
                self._add(nbytes, buffers)
            self._used[id(buffers[0])] = monotonic()
            return buffers[0].view(dtype)

    def give_back(self, before: float) -> None:
        """Frees what nobody refers to and what was not handed out since `before`, a `time.monotonic` time."""
        with self._lock:
            for nbytes, buffers in list(self._buffers.items()):
                for _ in range(len(buffers)):
                    if self._used[id(buffers[0])] < before and is_idle(buffers):
                        self._forget(nbytes, buffers)
                        self._sizes.remove(nbytes)
                    else:
                        buffers.rotate(-1)
                if not buffers:
                    del self._buffers[nbytes]

    def _add(self, nbytes: int, buffers: deque[np.ndarray]) -> None:
        """Puts a new buffer in front."""
        while self._sizes and self.kept_bytes + nbytes > _KEPT_BYTES and len(self._sizes) >= 2:
            # A buffer in use may be forgotten: its user keeps it alive.
            oldest = self._sizes.popleft()
            self._forget(oldest, self._buffers[oldest])
        self._sizes.append(nbytes)
        self.kept_bytes += nbytes
        buffers.appendleft(np.empty(nbytes, np.uint8))

    def _forget(self, nbytes: int, buffers: deque[np.ndarray]) -> None:
        del self._used[id(buffers[0])]
        buffers.popleft()
        self.kept_bytes -= nbytes
