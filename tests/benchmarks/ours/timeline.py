"""Where the time of a step goes that does nothing and is waited for: what the bars of dispatch are missed by.

The links of the driver and of the replicas note when they begin and end to send and to read.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import workbench as wb
from tests.benchmarks import marks
from tests.benchmarks.measure import Script

PHASES = (
    "step: before it is sent",
    "step: sent to both replicas",
    "step: until the first has answered",
    "step: until the second has",
    "step: after that",
)
ON_REPLICA = "step: on a replica"
CALLS = "step: functions called by the driver"
CALLS_ON_REPLICA = "step: functions called by a replica"


@wb.function
def noop(_vector: Any) -> float:
    """Does nothing."""
    return 1.0


def on_replica() -> Any:
    """How long the replica had each message of a step before it began to answer, in ns."""
    pairs = itertools.pairwise(marks.marks)
    return np.array([next_.began_ns - mark.ended_ns for mark, next_ in pairs if next_.sent and not mark.sent])


def main() -> None:
    """Measures the phases, and counts."""
    script = Script("dispatch", __doc__)
    with wb.connect(replicas=2):
        strategy = wb.MirroredStrategy()
        vector = strategy.distribute_values_from_function(lambda ctx: np.full(256, 1, np.float32))

        def step() -> None:
            strategy.local_results(strategy.run(noop, (vector,)))

        for _ in range(200):
            step()
        with script.case("workbench", CALLS, unit="calls", scale=1) as case:
            case.samples = [_calls(step) for _ in range(100)]
        marks.note()
        rows = _phases(step, 2 * script.options.scale)
        for number, phase in enumerate(PHASES):
            with script.case("workbench", phase) as case:
                case.samples = [row[number] for row in rows]
        with script.case("workbench", ON_REPLICA) as case:
            strategy.run(marks.note)
            for _ in range(500):
                step()
            parts = strategy.local_results(strategy.run(on_replica))
            case.samples = [float(ns) / 1e9 for part in parts for ns in part]
        strategy.run(marks.count)
        with script.case("workbench", CALLS_ON_REPLICA, unit="calls", scale=1) as case:
            case.samples = [_calls_on_replica(strategy, step) for _ in range(20)]


def _phases(step: Callable[[], None], seconds: float) -> list[list[float]]:
    rows: list[list[float]] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        marks.marks.clear()
        began = time.perf_counter_ns()
        step()
        ended = time.perf_counter_ns()
        if [mark.sent for mark in marks.marks] == [True, True, False, False]:
            sent, _, first, second = marks.marks
            at = [began, sent.began_ns, marks.marks[1].ended_ns, first.ended_ns, second.ended_ns, ended]
            rows.append([(after - before) / 1e9 for before, after in itertools.pairwise(at)])
    return rows


def _calls(step: Callable[[], None]) -> float:
    before = marks.counted()
    marks.count()
    try:
        step()
    finally:
        sys.setprofile(None)
    return marks.counted() - before


def _calls_on_replica(strategy: wb.Strategy, step: Callable[[], None]) -> float:
    """The same on a replica, without the cost of asking it."""

    def asked() -> int:
        return int(strategy.local_results(strategy.run(marks.counted))[0])

    first, second = asked(), asked()
    step()
    return asked() - second - (second - first)


if __name__ == "__main__":
    main()
