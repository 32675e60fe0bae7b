"""What a step costs with 1 to 64 replicas in one process: this one, or one worker process (`--threads 0`)."""

from __future__ import annotations

import statistics

import numpy as np

import workbench as wb
from tests.benchmarks.measure import Script, time_calls

COUNTS = (1, 2, 4, 8, 16, 32, 64)


@wb.function
def noop() -> float:
    """Does nothing."""
    return 1.0


@wb.function
def summed() -> float:
    """An all_reduce of 1 KB."""
    return float(wb.distribute.get_replica_context().all_reduce("sum", np.ones(256, np.float32))[0])


def main() -> None:
    """Measures both functions for each number of replicas."""
    script = Script("scaling", __doc__, threads=1)
    threads = bool(script.options.threads)
    where = "threads" if threads else "one worker process"
    medians: dict[tuple[str, int], float] = {}
    for replicas in COUNTS:
        with wb.connect(replicas=replicas, replicas_per_worker=replicas, processes=not threads):
            strategy = wb.MirroredStrategy()
            for name, function, value in (("noop", noop, 1.0), ("1 KB", summed, float(replicas))):
                assert set(strategy.local_results(strategy.run(function))) == {value}
                with script.case(f"workbench, {where}, {name}", f"{replicas} replicas", replicas=0) as case:
                    case.samples = time_calls(
                        lambda f=function, s=strategy: s.local_results(s.run(f)), seconds=script.options.scale
                    )
                medians[name, replicas] = statistics.median(case.samples)
    for name in ("noop", "1 KB"):
        with script.case(f"workbench, {where}, {name}", "growth", unit="×", scale=1, replicas=0) as case:
            case.samples = [medians[name, 64] / 64 / (medians[name, 8] / 8)]


if __name__ == "__main__":
    main()
