"""merge_call in traced functions: the merge function becomes part of the program, its reductions collectives of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.tpu.conftest import REPLICAS, by_replica, ids
from workbench.distribute import ReduceOp, get_replica_context, get_strategy, in_cross_replica_context
from workbench.errors import TracingError


def merged(strategy: Any, merge_fn: Any, *args: Any) -> Any:
    """What a step that only merges returns."""
    return strategy.run(lambda *own: get_replica_context().merge_call(merge_fn, own), args)


def numbers(strategy: Any, value: Any) -> list[float]:
    return [float(part) for part in strategy.local_results(value)]


def test_the_merge_function_is_in_cross_replica_context(strategy: Any) -> None:
    def merge(given: Any, x: Any) -> Any:
        assert get_replica_context() is None
        assert in_cross_replica_context()
        assert get_strategy() is given
        assert type(x).__mro__[1] is wb.distribute.PerReplica
        assert len(x) == given.num_replicas_in_sync == REPLICAS
        return x

    assert numbers(strategy, merged(strategy, merge, ids(strategy))) == [0, 1, 2, 3]


def test_components_of_all_replicas_can_be_looked_at(strategy: Any) -> None:
    def merge(given: Any, x: Any, offset: Any) -> Any:
        first, *_, last = given.local_results(x)
        return first + 10 * last, wb.distribute.PerReplica(given.local_results(x)[::-1]), offset.values[2]

    result = strategy.run(
        lambda x: get_replica_context().merge_call(merge, args=(x,), kwargs={"offset": 7}), (ids(strategy),)
    )

    assert [numbers(strategy, part) for part in result] == [[30] * 4, [3, 2, 1, 0], [7] * 4]


@pytest.mark.parametrize("op", ["SUM", "MEAN"])
@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
def test_reducing_is_as_outside(strategy: Any, op: str, axis: Any) -> None:
    value = by_replica(strategy, *[np.arange(6, dtype=np.float32).reshape(2, 3) + n for n in range(REPLICAS)])

    inside = merged(strategy, lambda s, x: s.reduce(op, x, axis=axis), value)

    np.testing.assert_allclose(
        strategy.local_results(inside)[3], strategy.reduce(op, value, axis=axis), rtol=1e-6
    )


def test_gathering_is_as_outside(strategy: Any) -> None:
    value = by_replica(strategy, *[np.full((1, 2), n) for n in range(REPLICAS)])

    inside = merged(strategy, lambda s, x: s.gather(x, axis=1), value)

    np.testing.assert_array_equal(strategy.local_results(inside)[1], strategy.gather(value, axis=1))


def test_reduce_to_and_update_train(strategy: Any) -> None:
    with strategy.scope():
        w = wb.Variable(np.ones(2, np.float32))
        untouched = wb.Variable(3.0)

    def merge(given: Any, gradient: Any, loss: Any) -> Any:
        total, mean = given.extended.batch_reduce_to(ReduceOp.SUM, [(gradient, w), (loss, "CPU:0")])
        steps = given.extended.update(
            w, lambda component, g: component.assign_sub(g).rank, args=(total,), group=False
        )
        given.extended.update(untouched, lambda component: component.assign_add(1.0))
        return mean, steps

    @wb.function
    def step(x: Any) -> Any:
        return get_replica_context().merge_call(merge, (w * x, x))

    for _ in range(2):
        mean, ranks = strategy.run(step, (ids(strategy),))

    assert numbers(strategy, mean) == [6] * 4
    assert [numbers(strategy, rank) for rank in ranks] == [[replica] * 4 for replica in range(4)]
    np.testing.assert_array_equal(w.numpy(), [25, 25])
    assert float(untouched) == 5


def test_variables_are_read_and_assigned_for_all_replicas(strategy: Any) -> None:
    with strategy.scope():
        w = wb.Variable(1.0)
        mean = wb.Variable(0.0, aggregation="MEAN")
        own = wb.Variable(0.0, synchronization="ON_READ", aggregation="SUM")

    def merge(given: Any, x: Any) -> Any:
        w.assign_add(given.reduce("SUM", x, axis=None))
        mean.assign(x)  # each component gets its part of it
        own.assign(own + 8.0)  # each replica gets its share of the sum
        return w.read_value(), own.read_value()

    seen, total = merged(strategy, merge, ids(strategy))

    assert numbers(strategy, seen) == [7] * 4
    assert numbers(strategy, total) == [8] * 4
    assert [float(w), float(own)] == [7, 8]
    assert [float(part.read_value()) for part in mean.values] == [0, 1, 2, 3]
    assert [float(part.read_value()) for part in own.values] == [2] * 4


def test_single_components_are_read_and_assigned(strategy: Any) -> None:
    with strategy.scope():
        w = wb.Variable(0.0)
    strategy.run(lambda x: w.assign(x), (ids(strategy),))

    def merge(given: Any) -> Any:
        last = given.local_results(w)[3] * 10
        given.local_results(w)[1].assign(np.float32(7))
        return last, w.read_value()

    last, first = merged(strategy, merge)

    assert numbers(strategy, last) == [30] * 4
    assert numbers(strategy, first) == [0] * 4
    assert [float(part.read_value()) for part in w.values] == [0, 7, 2, 3]


def test_sparse_rows_are_reduced(strategy: Any) -> None:
    def step(x: Any) -> Any:
        rows = wb.IndexedSlices(x.reshape(1, 1), np.array([2]), (4, 1))
        reduced = get_replica_context().merge_call(
            lambda s, r: s.extended.reduce_to("MEAN", r, "CPU:0"), (rows,)
        )
        return reduced.values, reduced.indices

    values, indices = strategy.run(step, (ids(strategy),))

    assert strategy.local_results(values)[2].ravel().tolist() == [0, 0.25, 0.5, 0.75]
    assert strategy.local_results(indices)[0].tolist() == [2, 2, 2, 2]


def test_it_can_be_called_several_times_and_costs_no_collective_that_is_not_asked_for(strategy: Any) -> None:
    def merge(given: Any, x: Any) -> Any:
        return x

    def step(x: Any) -> Any:
        ctx = get_replica_context()
        return ctx.merge_call(merge, (ctx.merge_call(merge, (x,)),)) + ctx.all_reduce("SUM", x)

    strategy.run(step, (ids(strategy),))

    (row,) = wb.collectives(strategy).rows
    assert row.count == 1


def test_what_it_raises_is_raised(strategy: Any) -> None:
    def merge(given: Any, x: Any) -> Any:
        raise ZeroDivisionError("in the merge function")

    with pytest.raises(ZeroDivisionError, match="in the merge function"):
        merged(strategy, merge, ids(strategy))


@pytest.mark.parametrize(
    ("merge", "message"),
    [
        (lambda s, x: s.run(lambda: 1), "run a function"),
        (lambda s, x: wb.Variable(1.0), r"strategy\.scope"),
        (lambda s, x: wb.distribute.PerReplica((x.values[0], np.ones(3))), "one shape and dtype"),
        (lambda s, x: x.values[0] if x.values[0] > 0 else 0, "`if`"),
    ],
)
def test_what_needs_the_notebook_or_values_is_refused(strategy: Any, merge: Any, message: str) -> None:
    with pytest.raises(TracingError, match=message):
        merged(strategy, merge, ids(strategy))


def test_the_context_of_the_replica_is_not_for_the_merge_function(strategy: Any) -> None:
    def step(x: Any) -> Any:
        ctx = get_replica_context()
        return ctx.merge_call(lambda s, own: ctx.all_reduce("SUM", x), (x,))

    with pytest.raises(RuntimeError, match="inside its merge function"):
        strategy.run(step, (ids(strategy),))


def test_a_component_of_another_replica_is_refused_outside_of_merge_functions(strategy: Any) -> None:
    with strategy.scope():
        w = wb.Variable(0.0)

    with pytest.raises(TracingError, match="component of replica 2"):
        strategy.run(lambda: w.values[2] + 1)
