"""How busy other processes keep the machine while something is measured. Standard library only."""

from __future__ import annotations

import os
import time

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Child processes inherit this, so all processes of a run count as its own.
_ROOT = int(os.environ.setdefault("WB_BENCHMARK_ROOT", str(os.getpid())))


class Noise:
    """Measures foreign load while the `with` block runs.

    Attributes:
      foreign_cores: How many cores processes outside of this run kept busy; 0 on a quiet machine.
    """

    def __enter__(self) -> Noise:
        self.foreign_cores = 0.0
        self._start = time.perf_counter()
        self._busy, self._own = _busy_ticks(), _own_ticks()
        return self

    def __exit__(self, *exc_info: object) -> None:
        seconds = max(time.perf_counter() - self._start, 1e-3)
        ticks = (_busy_ticks() - self._busy) - (_own_ticks() - self._own)
        self.foreign_cores = max(0.0, ticks / _TICKS_PER_SECOND / seconds)


def wait_until_quiet(most_seconds: float, limit_cores: float = 0.15) -> None:
    """Returns once others use less than `limit_cores`, or after `most_seconds`."""
    ends = time.perf_counter() + most_seconds
    while time.perf_counter() < ends:
        with Noise() as noise:
            time.sleep(0.3)
        if noise.foreign_cores < limit_cores:
            return


def _busy_ticks() -> int:
    with open("/proc/stat") as file:
        user, nice, system, _idle, _iowait, *rest = map(int, file.readline().split()[1:])
    return user + nice + system + sum(rest[:3])  # irq, softirq, steal; guests are counted in user


def _own_ticks() -> int:
    """CPU ticks of the run's processes, including children that have ended."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as file:
                text = file.read()
        except OSError:  # the process has just ended
            continue
        fields = text[text.rindex(")") + 2 :].split()
        children.setdefault(int(fields[1]), []).append(int(entry))
        ticks[int(entry)] = sum(map(int, fields[11:15]))
    total, todo = 0, [_ROOT]
    while todo:
        pid = todo.pop()
        total += ticks.get(pid, 0)
        todo += children.get(pid, [])
    return total
