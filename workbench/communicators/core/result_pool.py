"""Memory for results, reused once the user has dropped earlier results.

Fresh memory costs a page fault per 4 KB, which is more than the whole collective. Memory that has not been used for
`IDLE_SECONDS` is still freed: a loop that needs it again would have used it sooner.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from time import monotonic

import numpy as np

IDLE_SECONDS = 10.0
"""After this long without use, collectives' memory returns to the system."""
_SMALLEST_BYTES = 32 * 1024  # malloc itself reuses smaller blocks
_KEPT_BYTES = 256 * 1024 * 1024


def _references(buffers: deque[np.ndarray]) -> int:
    # The only place that counts references, so that an idle buffer has the same count in every interpreter.
    return sys.getrefcount(buffers[0])


_IDLE = _references(deque([np.empty(0, np.uint8)]))


def is_idle(buffers: deque[np.ndarray]) -> bool:
    """Whether only `buffers` refers to its first element. Array views hold a reference to their base."""
    return _references(buffers) == _IDLE


class ResultPool:
    """Buffers for the results of one replica. Any thread may drop a result, and call `give_back`.

    A buffer is free when only the pool refers to it. Only the holder of the lock can get a new reference to such a
    buffer, so reading the reference count does not race.

    Attributes:
      kept_bytes: Memory that the pool refers to, in use or not.
    """

    def __init__(self) -> None:
        self._buffers: dict[int, deque[np.ndarray]] = {}
        self._sizes: deque[int] = deque()  # sizes of the buffers made, oldest first
        self._used: dict[int, float] = {}  # by a buffer's id: when it was last handed out
        self._lock = threading.Lock()
        self.kept_bytes = 0

    def take(self, count: int, dtype: np.dtype) -> np.ndarray:
        """An uninitialised array of `count` elements, in memory without other references."""
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
        """Frees unreferenced buffers that were last handed out before `before`, a `time.monotonic` time."""
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
            # The pool may drop a buffer in use, because its user keeps it alive.
            oldest = self._sizes.popleft()
            self._forget(oldest, self._buffers[oldest])
        self._sizes.append(nbytes)
        self.kept_bytes += nbytes
        buffers.appendleft(np.empty(nbytes, np.uint8))

    def _forget(self, nbytes: int, buffers: deque[np.ndarray]) -> None:
        del self._used[id(buffers[0])]
        buffers.popleft()
        self.kept_bytes -= nbytes


class OrdinaryMemory:
    """The memory of a `Link` whose peers read anything that a replica has, or get it over a connection.

    Attributes:
      results: Memory for what the replica gets.
    """

    def __init__(self) -> None:
        self.results = ResultPool()

    def scratch(self, nbytes: int) -> np.ndarray:
        """See `Link.scratch`."""
        return self.results.take(nbytes, np.dtype(np.uint8))

    def empty(self, nbytes: int) -> np.ndarray:
        """See `Link.empty`."""
        return np.empty(nbytes, np.uint8)

    def give_back(self, before: float) -> None:
        """See `Link.give_back`."""
        self.results.give_back(before)
