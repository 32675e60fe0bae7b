"""ParameterServerStrategy: scheduled functions with 1 server and 2 workers, rows of a large table on 2 servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import workbench as wb
from tests.benchmarks import server_cases as cases
from tests.benchmarks.measure import Script
from workbench import distribute
from workbench.distribute.server_optimizers import Adam, apply_gradients


def functions(script: Script) -> None:
    """Functions that each add to a variable and read it; steps of an optimizer."""
    with wb.connect(replicas=1 + cases.WORKERS, replace=True):
        strategy = distribute.ParameterServerStrategy(servers=1)
        coordinator = distribute.coordinator.ClusterCoordinator(strategy)
        with strategy.scope():
            v = wb.Variable(0.0)
            w = wb.Variable(np.zeros(16, np.float32))

        @wb.function
        def step() -> Any:
            v.assign_add(1.0)
            return v.read_value()

        cases.measure_functions(
            script,
            "workbench",
            lambda: coordinator.schedule(step),
            coordinator.join,
            lambda value: value.fetch(),
        )
        adam, gradient = Adam(), np.full(16, 1e-6, np.float32)

        @wb.function
        def descend() -> None:
            for _ in range(cases.IN_ONE):
                apply_gradients(adam, [(gradient, w)])

        cases.measure_rows(script, "workbench", cases.STEP, lambda: coordinator.schedule(descend).fetch())


def rows(script: Script) -> None:
    """Look-ups of rows of a table that two servers share, and updates of them, on a worker."""
    partitioner = distribute.experimental.partitioners.FixedShardsPartitioner(2)
    with wb.connect(replicas=2 + cases.WORKERS, replace=True):
        strategy = distribute.ParameterServerStrategy(None, partitioner, servers=2)
        coordinator = distribute.coordinator.ClusterCoordinator(strategy)
        with strategy.scope():
            table = wb.Variable(np.zeros((cases.ROWS, cases.WIDTH), np.float32), name="table")
        random = np.random.default_rng(0)
        ids = random.integers(0, cases.ROWS, (cases.IN_ONE, cases.BATCH))
        values = np.ones((cases.BATCH, cases.WIDTH), np.float32)

        @wb.function
        def look_up(ids: np.ndarray) -> float:
            return sum(float(table.sparse_read(some)[0, 0]) for some in ids)

        @wb.function
        def scatter(ids: np.ndarray, values: np.ndarray) -> None:
            for some in ids:
                table.scatter_add(wb.IndexedSlices(values, some))

        def on_a_worker(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
            return lambda: coordinator.schedule(function, args=args).fetch()

        cases.measure_rows(script, "workbench", cases.LOOKUP, on_a_worker(look_up, ids))
        cases.measure_rows(script, "workbench", cases.SCATTER, on_a_worker(scatter, ids, values))


def main() -> None:
    """Measures functions, then rows."""
    script = Script("servers", __doc__)
    functions(script)
    rows(script)


if __name__ == "__main__":
    main()
