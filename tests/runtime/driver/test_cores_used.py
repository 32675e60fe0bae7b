"""How many cores steps use, by the clocks of their processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import pytest

from tests.until import until
from workbench.runtime import Cluster, Group
from workbench.runtime.comm.links import readable
from workbench.runtime.driver.cores_used import CoresUsed


def spin(seconds: float) -> None:
    """Uses the CPU for so long, however much of it others take."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_waits_for_computing_use_more_than_waits_for_sleep() -> None:
    computing, sleeping = CoresUsed(), CoresUsed()
    for _ in range(8):
        with computing.watch([os.getpid()]):
            spin(0.02)
        with sleeping.watch([os.getpid()]):
            time.sleep(0.05)
    least, most = computing.cores(), sleeping.cores()
    assert least is not None
    assert most is not None
    assert least > most


def test_the_time_of_other_processes_counts_once_each() -> None:
    used = CoresUsed()

    def found() -> float:
        with used.watch([other.pid, other.pid]):
            time.sleep(0.02)
        return used.cores() or 0.0

    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            until(lambda: found() > 0)  # others may take the cores meanwhile
            most = max(found() for _ in range(8))
        finally:
            other.kill()
    assert most < 1.5


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
    group.run(step)  # from now on the structure of its result is known
    links = [worker.steps for worker in cluster.gang.workers.values()]
    for _ in range(8):
        group.run(step, pipelined=True)
        assert group.in_flight == 1
        until(lambda: all(readable(link.fileno(), 0.0) for link in links), "the step's end")
        group.wait()
    assert group.cores_used.cores() is None  # as all had ended when they were waited for


def test_one_wait_for_many_pipelined_steps_counts_for_each_of_them(group: Group) -> None:
    def program(env: Any) -> None:
        spin(0.02)

    step = group.prepare(program, user_function=program)
    group.run(step)
    group.cores_used = CoresUsed()
    for _ in range(8):
        group.run(step, pipelined=True)
    group.wait()
    used = group.cores_used.cores()
    assert used is not None
    assert used > 0


def test_steps_that_are_waited_for_count(group: Group) -> None:
    group.cores_used = CoresUsed()

    def program(env: Any) -> None:
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass

    step = group.prepare(program, user_function=program)
    for _ in range(8):
        group.run(step)
    used = group.cores_used.cores()
    assert used is not None
    assert used > 0
