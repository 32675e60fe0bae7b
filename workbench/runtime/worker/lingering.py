"""Detects replicas that have been in user code for long, for which others may be waiting."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

from workbench.runtime.comm.failure_report import user_place

LONG_SECONDS: Final = 1.0


class Lingering:
    """Tracks since when each replica of a worker has been at its position. One thread.

    The stack of a replica that moves from collective to collective is never read, so this costs one comparison per
    heartbeat.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Starts without data; `now` is a clock, in seconds."""
        self._now = now
        self._since: dict[tuple[int, int], tuple[tuple[int, int], float]] = {}

    def place(self, key: tuple[int, int], position: tuple[int, int], thread: int) -> str:
        """Such as "train.py:84 in step, for 12 s"; "" if the replica has recently reached a collective.

        Args:
          key: Group and rank of a replica that runs user code.
          position: Its step, and its last collective in the step.
          thread: Identity of its thread.
        """
        now = self._now()
        known = self._since.get(key)
        if known is None or known[0] != position:
            self._since[key] = position, now
            return ""
        seconds = now - known[1]
        if seconds < LONG_SECONDS:
            return ""
        place = user_place(sys._current_frames().get(thread))
        return f"{place}, for {seconds:.0f} s" if place else ""
