"""Traced steps through the public API on eight emulated TPU cores: about 1 ms each, pipelined; and the first one."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import workbench as wb
from tests.benchmarks.measure import Script, time_calls
from tests.benchmarks.traced_step import REPLICAS, STEPS, gradient, operands


def main() -> None:
    """Measures steps, and what comes before the first one is done."""
    script = Script("traced", __doc__)
    start, rows = operands()
    with wb.connect(tpu=REPLICAS):
        strategy = wb.TPUStrategy()
        x = strategy.distribute_values_from_function(lambda ctx: rows[ctx.replica_id_in_sync_group])
        # Moves the rows to the devices.
        strategy.local_results(strategy.run(lambda x: x[0, 0], (x,)))

        def fresh() -> tuple[Any, Any]:
            with strategy.scope():
                w = wb.Variable(start)

            @wb.function
            def step(x: Any) -> Any:
                loss, own = gradient(w.value(), x)
                mean = wb.distribute.get_replica_context().all_reduce("mean", own)
                w.assign_sub(np.float32(1e-6) * mean)
                return loss

            return w, step

        with script.case("workbench", "trace and compile", unit="ms", scale=1e3, replicas=REPLICAS) as case:
            for _ in range(max(3, int(5 * script.options.scale))):
                _w, step = fresh()
                begun = time.perf_counter()
                strategy.local_results(strategy.run(step, (x,)))
                case.samples.append(time.perf_counter() - begun)
        _w, step = fresh()

        def burst() -> None:
            for _ in range(STEPS):
                loss = strategy.run(step, (x,))
            strategy.local_results(loss)

        with script.case("workbench", "1 ms step", scale=1e6 / STEPS, replicas=REPLICAS) as case:
            case.samples = time_calls(burst, seconds=4 * script.options.scale, warm_up=2)


if __name__ == "__main__":
    main()
