"""How many cores steps use, by the clocks of their processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from workbench.runtime.driver.cores_used import CoresUsed


def spin(seconds: float) -> None:
    """Uses the CPU for so long, however much of it others take."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_steps_that_compute_use_more_than_steps_that_sleep() -> None:
    computing, sleeping = CoresUsed(), CoresUsed()
    for serial in range(8):
        computing.begin(serial, [os.getpid()])
        spin(0.02)
        computing.end(serial)
        sleeping.begin(serial, [os.getpid()])
        time.sleep(0.05)
        sleeping.end(serial)
    least, most = computing.cores(), sleeping.cores()
    assert least is not None
    assert most is not None
    assert least > 2 * most


def test_the_time_of_other_processes_counts_once_each() -> None:
    used = CoresUsed()
    program = "while True: pass"
    with subprocess.Popen([sys.executable, "-c", program]) as other:
        for serial in range(8):
            used.begin(serial, [other.pid, other.pid])
            time.sleep(0.02)
            used.end(serial)
        found = used.cores()
        other.kill()
    assert found is not None
    assert 0 < found <= 1.1


def test_nothing_is_told_of_a_few_steps_or_of_processes_that_are_gone() -> None:
    used = CoresUsed()
    for serial in range(4):
        used.begin(serial, [os.getpid()])
        used.end(serial)
    assert used.cores() is None

    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    for serial in range(20):
        used.begin(serial, [gone.pid])
        used.end(serial)
    assert used.cores() is None


@pytest.mark.parametrize("ends", [[3], [4, 3], [3, 4]])
def test_only_the_step_that_is_watched_ends_the_watch(ends: list[int]) -> None:
    used = CoresUsed()
    for _ in range(5):
        used.begin(3, [os.getpid()])
        used.begin(4, [os.getpid()])  # pipelined behind it
        for serial in ends:
            used.end(serial)
    assert used.cores() is not None
