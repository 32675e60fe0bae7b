"""RecentRate: the recent rate of events."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

_WINDOW_SECONDS: Final = 5.0
_BUCKET_SECONDS: Final = 0.25


class RecentRate:
    """Counts in buckets, at the cost of reading the clock. One thread adds; any may read."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Starts at zero.

        Args:
          clock: Returns a time in seconds.
        """
        self._clock = clock
        self._began = clock()
        most = int(_WINDOW_SECONDS / _BUCKET_SECONDS) + 1
        self._buckets: deque[tuple[float, int]] = deque(maxlen=most)

    def add(self, count: int = 1) -> None:
        """Adds to the count."""
        now = self._clock()
        if self._buckets and now - self._buckets[-1][0] < _BUCKET_SECONDS:
            begin, before = self._buckets[-1]
            self._buckets[-1] = begin, before + count
        else:
            self._buckets.append((now, count))

    @property
    def per_second(self) -> float:
        """The rate per second over the last five seconds, or since the start."""
        now = self._clock()
        total = sum(count for begin, count in tuple(self._buckets) if now - begin < _WINDOW_SECONDS)
        return total / max(_BUCKET_SECONDS, min(_WINDOW_SECONDS, now - self._began))
