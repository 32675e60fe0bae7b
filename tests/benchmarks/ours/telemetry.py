"""How much slower recording makes collectives: with and without, in turn. Without, nothing is read for NaN either.

What a record costs is a fraction of a microsecond, which the drift of large all_reduces hides. So it is measured on the
fastest calls of the smallest one, and the slow-down of others follows from it.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

import workbench as wb
from tests.benchmarks.measure import SIZES, Script, time_in_step
from workbench.runtime.replica.env import current_env

PAIRS = 4
LARGE = "1 MB"


def timed(nbytes: int, scale: float) -> Any:
    """Runs on each replica: the duration of each all_reduce."""
    context, env = wb.distribute.get_replica_context(), current_env()
    assert context is not None
    assert env is not None
    array = np.ones(nbytes // 4, np.float32)
    return np.array(
        time_in_step(lambda: context.all_reduce("sum", array), env.communicator.barrier, nbytes, scale)
    )


def small_and_large(telemetry: bool, scale: float) -> tuple[float, float]:
    """Seconds of an undisturbed 1 KB all_reduce, and the median of a large one."""
    with wb.connect(replicas=2, environment={"WB_TELEMETRY": "on" if telemetry else "off"}):
        strategy = wb.MirroredStrategy()

        def samples(what: str) -> Any:
            return strategy.local_results(strategy.run(timed, (SIZES[what], scale)))[0]

        return float(np.quantile(samples("1 KB"), 0.1)), float(np.median(samples(LARGE)))


def main() -> None:
    """Measures in pairs."""
    script = Script("telemetry", __doc__)
    scale = script.options.scale
    pairs = [(small_and_large(True, scale), small_and_large(False, scale)) for _ in range(PAIRS)]
    cost = statistics.median(on[0] - off[0] for on, off in pairs)
    with script.case("workbench", "recording one all_reduce") as case:
        case.samples = [cost]
    for who, index in (("workbench, telemetry on", 0), ("workbench, telemetry off", 1)):
        for place, what in enumerate(("1 KB", LARGE)):
            with script.case(who, f"all_reduce {what}") as case:
                case.samples = [pair[index][place] for pair in pairs]
    with script.case("workbench", f"slow-down of {LARGE}", unit="%", scale=100) as case:
        case.samples = [cost / statistics.median(off[1] for _, off in pairs)]


if __name__ == "__main__":
    main()
