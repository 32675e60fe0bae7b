"""Variables between traced steps and everything else that reads and assigns them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.tpu.conftest import REPLICAS, ids
from workbench.distribute import get_replica_context


def variable(strategy: Any, value: float, **options: Any) -> Any:
    with strategy.scope():
        return wb.Variable(np.full(3, value, np.float32), **options)


def of_replicas(strategy: Any, distributed: Any) -> list[float]:
    return [float(component[0]) for component in strategy.local_results(distributed)]


def test_programs_leave_alone_what_they_only_read_or_do_not_use(strategy: Any) -> None:
    written, read, unused = (variable(strategy, value) for value in (1.0, 10.0, 100.0))

    @wb.function
    def step() -> Any:
        written.assign_add(read.value())
        return written.value()

    for expected in (11, 21, 31):
        assert of_replicas(strategy, strategy.run(step)) == [expected] * REPLICAS
    assert of_replicas(strategy, read) == [10] * REPLICAS
    assert of_replicas(strategy, unused) == [100] * REPLICAS
    read.assign(np.full(3, 1000, np.float32))
    assert of_replicas(strategy, strategy.run(step)) == [1031] * REPLICAS


def test_a_program_that_sets_all_variables_is_traced_once(strategy: Any) -> None:
    alone, traces = variable(strategy, 1.0), []

    @wb.function
    def step() -> Any:
        traces.append(None)  # of this process; replicas have their own list
        alone.assign_add(np.ones(3, np.float32))
        return len(traces) * alone.value()

    assert of_replicas(strategy, strategy.run(step)) == [2] * REPLICAS
    assert of_replicas(strategy, strategy.run(step)) == [3] * REPLICAS


def test_steps_and_the_notebook_assign_in_turn(strategy: Any) -> None:
    w = variable(strategy, 0.0)

    @wb.function
    def step() -> Any:
        w.assign_add(np.ones(3, np.float32))
        return w.value()

    for value in (5.0, 50.0):
        w.assign(np.full(3, value, np.float32))
        assert of_replicas(strategy, strategy.run(step)) == [value + 1] * REPLICAS
        assert of_replicas(strategy, strategy.run(step)) == [value + 2] * REPLICAS
        assert of_replicas(strategy, w) == [value + 2] * REPLICAS


def test_components_of_the_replicas_stay_their_own(strategy: Any) -> None:
    local = variable(
        strategy,
        0.0,
        synchronization=wb.VariableSynchronization.ON_READ,
        aggregation=wb.VariableAggregation.SUM,
    )

    @wb.function
    def step(x: Any) -> None:
        local.assign_add(x + np.zeros(3, np.float32))

    for _ in range(2):
        strategy.run(step, (ids(strategy),))
    assert of_replicas(strategy, local) == [2.0 * replica for replica in range(REPLICAS)]


def test_a_step_that_fails_before_it_starts_takes_nothing(strategy: Any) -> None:
    w = variable(strategy, 1.0)

    @wb.function
    def step(x: Any) -> Any:
        w.assign_add(x + np.zeros(3, np.float32))
        return w.value()

    strategy.run(step, (np.float32(1),))
    with pytest.raises(wb.errors.TracingError):
        strategy.run(lambda: w.assign(w.value() * (2 if w.value()[0] > 0 else 3)))
    assert of_replicas(strategy, w) == [2] * REPLICAS
    assert of_replicas(strategy, strategy.run(step, (np.float32(1),))) == [3] * REPLICAS


def test_values_that_are_held_stay_while_others_are_freed(strategy: Any) -> None:
    double = wb.function(lambda x: 2 * x)
    before = strategy.run(double, (ids(strategy),))
    for _ in range(40):
        after = strategy.run(double, (ids(strategy),))
        assert [float(v) for v in strategy.local_results(after)] == [0, 2, 4, 6]
    assert [float(v) for v in strategy.local_results(before)] == [0, 2, 4, 6]


def test_new_rows_are_as_good_as_those_that_are_in_place(strategy: Any) -> None:
    total = wb.function(lambda x: get_replica_context().all_reduce("SUM", x))
    fed = ids(strategy)
    for _ in range(3):  # the second time, the first step has put the components on the devices
        assert [float(v) for v in strategy.local_results(strategy.run(total, (fed,)))] == [6] * REPLICAS


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        ("NONE", [[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 3, 0], [0, 0, 0, 4]]),
        ("SUM", [[1, 2, 3, 4]] * 4),
        ("MEAN", [[0.25, 0.5, 0.75, 1]] * 4),
        ("ONLY_FIRST_REPLICA", [[1, 0, 0, 0]] * 4),
    ],
)
def test_rows_are_scattered(strategy: Any, aggregation: str, expected: Any) -> None:
    with strategy.scope():
        v = wb.Variable(np.zeros(4, np.float32), aggregation=aggregation)

    @wb.function
    def step() -> Any:
        r = get_replica_context().replica_id_in_sync_group
        v.scatter_add(wb.IndexedSlices((r + 1.0).reshape(1), r.reshape(1)))
        return r

    strategy.run(step)
    assert [part.numpy().tolist() for part in v.values] == expected
    v.scatter_mul(wb.IndexedSlices(np.float32([2]), [1]))
    assert [part.numpy()[1] for part in v.values] == [2 * row[1] for row in expected]
