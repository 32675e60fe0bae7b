"""Our steps through the public API: noop and a 1 KB all_reduce, waited for and pipelined.

Two replicas, each in a process of its own or (`--threads 1`) both as threads of this one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import workbench as wb
from tests.benchmarks.measure import Script, time_calls

IN_FLIGHT = 64


@wb.function
def noop(_vector: Any) -> float:
    """Does nothing."""
    return 1.0


@wb.function
def summed(vector: Any) -> float:
    """An all_reduce, of which one number comes home."""
    return float(wb.distribute.get_replica_context().all_reduce("sum", vector)[0])


def main() -> None:
    """Measures all ways to run both functions."""
    script = Script("dispatch", __doc__, threads=0)
    threads = bool(script.options.threads)
    who, seconds = "workbench, threads" if threads else "workbench", 2 * script.options.scale
    with wb.connect(replicas=2, processes=not threads):
        strategy = wb.MirroredStrategy()
        vector = strategy.distribute_values_from_function(
            lambda ctx: np.full(256, ctx.replica_id_in_sync_group + 1, np.float32)
        )

        def step(function: Any) -> tuple[Any, ...]:
            return strategy.local_results(strategy.run(function, (vector,)))

        def burst(function: Any) -> tuple[Any, ...]:
            for _ in range(IN_FLIGHT):
                result = strategy.run(function, (vector,))
            return strategy.local_results(result)

        for what, function, value in (("noop", noop, 1.0), ("1 KB", summed, 3.0)):
            assert step(function) == (value, value)
            with script.case(who, what) as case:
                case.samples = time_calls(lambda f=function: step(f), seconds=seconds)
            with script.case(who, f"{what}, pipelined", scale=1e6 / IN_FLIGHT) as case:
                case.samples = time_calls(lambda f=function: burst(f), seconds=seconds, warm_up=5)
            plain = function.python_function
            with script.case(f"{who}, plain function", what) as case:
                case.samples = time_calls(lambda f=plain: step(f), seconds=seconds)


if __name__ == "__main__":
    main()
