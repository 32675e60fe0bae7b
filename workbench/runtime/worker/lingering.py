"""Replicas that have been in user code for long: what others wait for, when nobody can ask."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

from workbench.runtime.comm.failure_report import user_place

LONG_SECONDS: Final = 1.0


class Lingering:
    """Knows since when each replica of a worker has been where it is. One thread.

    A replica that goes from collective to collective is never looked at, so this costs a comparison per heartbeat.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Knows nothing; `now` is a clock, in seconds."""
        self._now = now
        self._since: dict[tuple[int, int], tuple[tuple[int, int], float]] = {}

    def place(self, key: tuple[int, int], position: tuple[int, int], thread: int) -> str:
        """Such as "train.py:84 in step, for 12 s"; "" as long as it has come to a collective lately.

        Args:
          key: Group and rank of a replica that runs user code.
          position: The step that it is in, and its last collective there.
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
