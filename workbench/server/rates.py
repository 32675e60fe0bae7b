"""Limits how much a client may send."""

from __future__ import annotations

import time
from collections.abc import Callable


class Bucket:
    """A token bucket: `burst` messages at once, and `rate` per second in the long run."""

    def __init__(self, rate: float, burst: int, *, now_seconds: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._now_seconds = now_seconds
        self._tokens = float(burst)
        self._last = now_seconds()

    def take(self) -> bool:
        """Takes a token, if there is one."""
        now = self._now_seconds()
        self._tokens = min(self._burst, self._tokens + (now - self._last) * self._rate)
        self._last = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
