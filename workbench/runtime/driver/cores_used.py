"""How many cores workers keep busy during steps: whether replicas on few cores can have waited for one."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable
from typing import Final

from workbench.telemetry.feed.step_window import STEPS

_LEAST: Final = 5
"""So many steps have to be seen: the first ones import, compile and connect."""


class CoresUsed:
    """Of processes on this machine, over the newest steps. One step at a time is watched, so that sums make sense."""

    def __init__(self) -> None:
        self._clocks: list[int] = []
        self._watched: tuple[int, int, int] | None = None  # serial of the step, time, CPU time of all
        self._spans: deque[tuple[int, int]] = deque(maxlen=STEPS)  # time, CPU time

    def begin(self, serial: int, pids: Iterable[int]) -> None:
        """A step is sent to these processes."""
        if self._watched is not None:
            return
        self._clocks = [_clock(pid) for pid in set(pids)]
        if (cpu_ns := self._cpu_ns()) is not None:
            self._watched = serial, time.monotonic_ns(), cpu_ns

    def end(self, serial: int) -> None:
        """A step has ended, well or not."""
        if self._watched is None or serial != self._watched[0]:
            return
        _, began_ns, before_ns = self._watched
        self._watched = None
        if (cpu_ns := self._cpu_ns()) is not None:
            self._spans.append((time.monotonic_ns() - began_ns, cpu_ns - before_ns))

    def cores(self) -> float | None:
        """How many they have used during steps; None as long as few were seen. Any thread may ask."""
        spans = list(self._spans)
        if len(spans) < _LEAST:
            return None
        return sum(cpu for _, cpu in spans) / max(1, sum(wall for wall, _ in spans))

    def _cpu_ns(self) -> int | None:
        try:
            return sum(map(time.clock_gettime_ns, self._clocks))
        except OSError:  # one of the processes has ended
            return None


def _clock(pid: int) -> int:
    """Linux's clock of the CPU time of a process, as `clock_getcpuclockid` of the C library makes it."""
    return time.CLOCK_PROCESS_CPUTIME_ID if pid == os.getpid() else (~pid << 3) | 2
