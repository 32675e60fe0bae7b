"""Measures how many cores workers use during steps, to find out whether replicas may have waited for a core."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from workbench.telemetry.feed.step_window import STEPS

_LEAST: Final = 5
"""The least number of steps for a measurement, because the first ones import, compile and connect."""


class CoresUsed:
    """The cores used by processes on this machine, over the latest waits for `STEPS` steps or more.

    Processes certainly run a step only while something waits for it: otherwise its end is noticed late, such as after
    a pause of the notebook.
    """

    def __init__(self) -> None:
        self._spans: deque[tuple[int, int, int]] = deque()  # time, CPU time, number of steps

    @contextlib.contextmanager
    def watch(self, pids: Iterable[int], steps: int = 1) -> Iterator[None]:
        """A context for a wait for steps of these processes that, as far as is known, have not ended."""
        clocks = [_clock(pid) for pid in set(pids)]
        began_ns, before_ns = time.monotonic_ns(), _read(clocks)
        try:
            yield
        finally:
            after_ns = _read(clocks)
            if before_ns is not None and after_ns is not None:
                self._spans.append((time.monotonic_ns() - began_ns, after_ns - before_ns, steps))
                while sum(each for _, _, each in self._spans) - self._spans[0][2] >= STEPS:
                    self._spans.popleft()

    def cores(self) -> float | None:
        """The number of cores used during waits; None after too few steps. Any thread."""
        spans = list(self._spans)
        if sum(steps for _, _, steps in spans) < _LEAST:
            return None
        return sum(cpu for _, cpu, _ in spans) / max(1, sum(wall for wall, _, _ in spans))


def _read(clocks: Iterable[int]) -> int | None:
    """The sum of these clocks; None if one of the processes has ended."""
    try:
        return sum(map(time.clock_gettime_ns, clocks))
    except OSError:
        return None


def _clock(pid: int) -> int:
    """Linux's clock of a process's CPU time, as the C library's `clock_getcpuclockid` computes it."""
    return time.CLOCK_PROCESS_CPUTIME_ID if pid == os.getpid() else (~pid << 3) | 2
