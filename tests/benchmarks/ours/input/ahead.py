"""What runs ahead and in parallel: prefetch, interleave, map; elements wait 2 ms, or compute that long in Python."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from tests.benchmarks import input_cases as cases
from tests.benchmarks.measure import Script
from tests.benchmarks.python_work import work
from workbench.data import AUTOTUNE, Dataset


def _slow(number: Any) -> Any:
    time.sleep(cases.SLOW_SECONDS)
    return number


def _consumed(dataset: Dataset) -> Iterable[Any]:
    for element in dataset:
        time.sleep(cases.SLOW_SECONDS)
        yield element


def main() -> None:
    """Measures all cases."""
    script = Script("input", __doc__)
    numbers = Dataset.range(cases.NUMBERS)
    slow = numbers.map(_slow)
    for who, what, make in (
        ("workbench", cases.AHEAD, lambda: _consumed(slow.prefetch(4))),
        (
            "workbench",
            cases.SOURCES,
            lambda: Dataset.range(8).interleave(lambda _: slow, cycle_length=8, num_parallel_calls=8),
        ),
        ("workbench", cases.PARALLEL, lambda: numbers.map(_slow, num_parallel_calls=8)),
        ("workbench", cases.PYTHON_BOUND, lambda: numbers.map(work, num_parallel_calls=AUTOTUNE)),
        ("workbench, one at a time", cases.PYTHON_BOUND, lambda: numbers.map(work)),
    ):
        cases.measure_rate(script, who, what, make, unit="elements/s", skip=cases.STARTED)


if __name__ == "__main__":
    main()
