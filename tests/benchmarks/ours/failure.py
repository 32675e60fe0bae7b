"""Seconds from SIGKILL of a replica's process to the error in the driver, and to the next step's success.

Once while replicas communicate all the time, once while they compute and meet ten times a second.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import workbench as wb
from tests.benchmarks.measure import Script

KILLS = 20


def communicating() -> None:
    """Combines until it is killed."""
    context = wb.distribute.get_replica_context()
    while True:
        context.all_reduce("sum", np.ones(256, np.float32))


def computing() -> None:
    """Computes a tenth of a second at a time, with collectives in between, until it is killed."""
    context = wb.distribute.get_replica_context()
    while True:
        ends = time.monotonic() + 0.1
        while time.monotonic() < ends:
            sum(range(1000))
        context.all_reduce("sum", np.ones(256, np.float32))


def succeeding() -> float:
    """A step that needs all replicas."""
    return float(wb.distribute.get_replica_context().all_reduce("sum", np.ones(4, np.float32))[0])


def killed(pid: int, times: list[float]) -> None:
    """Kills a process and notes when."""
    times.append(time.monotonic())
    os.kill(pid, signal.SIGKILL)


def seconds_to_error(strategy: Any, function: Callable[[], Any], pid: int) -> float:
    """Runs `function`, kills `pid` meanwhile; seconds from there to the error."""
    times: list[float] = []
    timer = threading.Timer(0.3, killed, (pid, times))
    timer.start()
    try:
        strategy.run(function)
    except wb.errors.ReplicaLost as error:
        return time.monotonic() - times[0] if "replica 1" in str(error) else float("nan")
    finally:
        timer.join(10)
    raise AssertionError("the step ended although a replica was killed")


def main() -> None:
    """Measures both situations."""
    script = Script("failure", __doc__)
    with wb.connect(replicas=2):
        strategy = wb.MirroredStrategy()
        strategy.run(succeeding)
        recoveries: list[float] = []
        for what, function in (
            ("killed in all_reduce", communicating),
            ("killed while computing", computing),
        ):
            with script.case("workbench", f"{what}: error", unit="s", scale=1) as case:
                for _ in range(max(1, int(KILLS * script.options.scale))):
                    pid = int(strategy.local_results(strategy.run(os.getpid))[1])
                    case.samples.append(seconds_to_error(strategy, function, pid))
                    start = time.monotonic()
                    assert strategy.local_results(strategy.run(succeeding)) == (2.0, 2.0)
                    recoveries.append(time.monotonic() - start)
        with script.case("workbench", "next step done after", unit="s", scale=1) as case:
            case.samples = recoveries


if __name__ == "__main__":
    main()
