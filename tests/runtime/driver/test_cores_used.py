"""How many cores steps use, by the clocks of their processes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from subprocess import PIPE
from typing import Any, Final

import pytest

from tests.until import until
from workbench.runtime import Cluster, Group
from workbench.runtime.comm.links import readable
from workbench.runtime.driver import cores_used
from workbench.runtime.driver.cores_used import CoresUsed
from workbench.runtime.shipping.function_registry import Prepared
from workbench.telemetry.feed.step_window import STEPS

_SPINNER: Final = """
import sys, time
for _ in sys.stdin:
    before = time.process_time_ns()
    while (now := time.process_time_ns()) < before + 50_000_000:
        pass
    print(before, now, flush=True)
"""


class Clocks:
    """The clocks that `CoresUsed` reads; tests wind them."""

    CLOCK_PROCESS_CPUTIME_ID = time.CLOCK_PROCESS_CPUTIME_ID

    def __init__(self) -> None:
        self.now_ns = 0
        self.cpu_ns: Counter[int] = Counter()  # by process

    def monotonic_ns(self) -> int:
        return self.now_ns

    def clock_gettime_ns(self, clock: int) -> int:
        return self.cpu_ns[os.getpid() if clock == time.CLOCK_PROCESS_CPUTIME_ID else ~(clock >> 3)]

    def wait(self, used: CoresUsed, ns: int, cpu_ns: Mapping[int, int], steps: int = 1) -> None:
        """A wait for steps during which processes use so much time of a CPU."""
        with used.watch([*cpu_ns, *cpu_ns], steps):
            self.now_ns += ns
            self.cpu_ns.update(cpu_ns)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr(cores_used, "time", clocks)
    return clocks


def spin(seconds: float) -> None:
    """Uses the CPU for so long, however much of it others take."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_cores_are_the_time_of_all_processes_by_that_of_the_waits(clocks: Clocks) -> None:
    used = CoresUsed()
    for _ in range(8):
        clocks.wait(used, 100, {os.getpid(): 100, 4711: 50, 4712: 0})
        clocks.now_ns += 1000  # a pause between waits
        clocks.cpu_ns.update({4711: 1000})
    assert used.cores() == 1.5


def test_waits_for_sleep_use_nothing(clocks: Clocks) -> None:
    used = CoresUsed()
    for _ in range(8):
        clocks.wait(used, 100, {os.getpid(): 0, 4711: 0})
    assert used.cores() == 0.0


def test_only_waits_for_the_newest_steps_count(clocks: Clocks) -> None:
    used = CoresUsed()
    clocks.wait(used, 6400, {4711: 0}, steps=STEPS)
    assert used.cores() == 0.0
    clocks.wait(used, 100, {4711: 100})
    assert used.cores() == 100 / 6500  # without the first one there would be too few
    for _ in range(STEPS // 2):
        clocks.wait(used, 200, {4711: 200}, steps=2)
    assert used.cores() == 1.0


def test_the_clocks_are_those_of_the_processes(clocks: Clocks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "clock_gettime_ns", time.clock_gettime_ns)
    used = CoresUsed()
    before = time.process_time_ns()
    with used.watch([os.getpid(), os.getpid()], steps=5):
        start = time.process_time_ns()
        spin(0.05)
        least = time.process_time_ns() - start
        clocks.now_ns += 10**9
    most = time.process_time_ns() - before
    own = used.cores()
    assert own is not None
    assert least <= round(own * 10**9) <= most < 2 * least


def test_the_time_of_other_processes_counts_once_each(
    clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "clock_gettime_ns", time.clock_gettime_ns)
    used = CoresUsed()
    with subprocess.Popen([sys.executable, "-c", _SPINNER], stdin=PIPE, stdout=PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None

        def spun() -> tuple[int, int]:
            """Makes the process spin; returns its CPU time before and after."""
            print(file=other.stdin, flush=True)
            before, after = map(int, other.stdout.readline().split())
            return before, after

        _, before = spun()
        with used.watch([other.pid, other.pid], steps=5):
            start, end = spun()
            clocks.now_ns += 10**9
        after, _ = spun()
        other.stdin.close()
    found = used.cores()
    assert found is not None
    assert end - start <= round(found * 10**9) <= after - before < 2 * (end - start)


def test_nothing_is_told_of_a_few_waits_or_of_processes_that_are_gone() -> None:
    used = CoresUsed()
    for _ in range(4):
        with used.watch([os.getpid()]):
            pass
    assert used.cores() is None

    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    for _ in range(20):
        with used.watch([gone.pid]):
            pass
    assert used.cores() is None


def test_a_wait_that_fails_counts_too() -> None:
    used = CoresUsed()
    for _ in range(5):
        with pytest.raises(KeyboardInterrupt), used.watch([os.getpid()]):
            raise KeyboardInterrupt
    assert used.cores() is not None


def test_pauses_before_a_pipelined_step_is_read_count_for_nothing(cluster: Cluster, group: Group) -> None:
    group.cores_used = CoresUsed()
    step = group.prepare(lambda env: None, user_function=lambda: None)
    group.run(step)  # from now on, the structure of its result is known
    links = [worker.steps for worker in cluster.gang.workers.values()]
    for _ in range(8):
        group.run(step, pipelined=True)
        assert group.in_flight == 1
        until(lambda: all(readable(link.fileno(), 0.0) for link in links), "the step's end")
        group.wait()
    assert group.cores_used.cores() is None  # all had ended when they were waited for


class Gate(CoresUsed):
    """Steps of `gated` end only once somebody waits for them."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.watched: list[int] = []

    @contextlib.contextmanager
    def watch(self, pids: Iterable[int], steps: int = 1) -> Iterator[None]:
        self.watched.append(steps)
        with super().watch(pids, steps):
            self.path.touch()
            yield


def gated(group: Group, path: Path) -> Prepared:
    """A step that has been run once."""
    gate = str(path)

    def program(env: Any) -> int:
        while not os.path.exists(gate):
            time.sleep(0.001)
        spin(0.02)
        return 0

    group.cores_used = Gate(path)
    step = group.prepare(program, user_function=program)
    group.run(step)
    path.unlink()
    return step


def test_one_wait_for_many_pipelined_steps_counts_for_each_of_them(group: Group, tmp_path: Path) -> None:
    step = gated(group, tmp_path / "go")
    group.cores_used = used = Gate(tmp_path / "go")
    results = [group.run(step, pipelined=True) for _ in range(8)]
    assert results[-1].values() == [0, 0]
    assert used.watched == [8]
    assert (used.cores() or 0) > 0


def test_steps_that_are_waited_for_count(group: Group, tmp_path: Path) -> None:
    step = gated(group, tmp_path / "go")
    group.cores_used = used = Gate(tmp_path / "go")
    for _ in range(8):
        group.run(step)
        (tmp_path / "go").unlink()
    assert used.watched == [1] * 8
    assert (used.cores() or 0) > 0
