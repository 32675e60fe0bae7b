"""TPUStrategy: running, values, variables, data and devices, on emulated cores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.tpu.conftest import REPLICAS, by_replica, ids
from workbench.distribute import DeviceAssignment, get_replica_context


def test_devices_are_tpus_of_the_host(cluster: Any) -> None:
    assert [device.short for device in cluster.devices] == ["TPU:0", "TPU:1", "TPU:2", "TPU:3"]


def test_it_is_found_under_every_name() -> None:
    assert wb.TPUStrategy is wb.distribute.TPUStrategy is wb.distribute.experimental.TPUStrategy


def test_each_replica_gets_its_component_and_everybody_the_plain_arguments(strategy: Any) -> None:
    result = strategy.run(lambda x, y, k: {"a": x + y, "b": (k, None)}, (ids(strategy), np.float32(10), 3))

    assert [float(part) for part in strategy.local_results(result["a"])] == [10, 11, 12, 13]
    assert [int(part) for part in strategy.local_results(result["b"][0])] == [3] * REPLICAS
    assert result["b"][1] is None


def test_results_stay_on_the_devices_and_come_home_by_component(strategy: Any) -> None:
    big = strategy.run(lambda x: x * np.ones((300, 10), np.float32), (ids(strategy),))

    assert big.handle.spec(2) == ("float32", (300, 10))
    assert not big.handle.is_here(2)
    assert (strategy.local_results(big)[2] == 2).all()
    np.testing.assert_array_equal(strategy.gather(big, axis=0)[:, 0], np.repeat([0, 1, 2, 3], 300))


def test_results_are_arguments_of_the_next_run(strategy: Any) -> None:
    doubled = strategy.run(lambda x: x * 2, (ids(strategy),))
    summed = strategy.run(lambda x: get_replica_context().all_reduce("SUM", x), (doubled,))

    assert strategy.reduce("MEAN", summed, axis=None) == 12


def test_the_replica_id_is_a_value_of_the_program(strategy: Any) -> None:
    def which() -> Any:
        ctx = get_replica_context()
        first = ctx.select(ctx.replica_id_in_sync_group == 0, np.float32(100), np.float32(1))
        return ctx.replica_id_in_sync_group * 10, first, ctx.num_replicas_in_sync

    tens, first, count = strategy.run(which)

    assert [int(n) for n in strategy.local_results(tens)] == [0, 10, 20, 30]
    assert [float(x) for x in strategy.local_results(first)] == [100, 1, 1, 1]
    assert strategy.local_results(count) == (4, 4, 4, 4)


def test_select_chooses_on_ordinary_replicas_too() -> None:
    assert wb.distribute.get_strategy().run(lambda: get_replica_context().select(True, 1, 2)).values == (1,)


def test_functions_written_with_xp_run_traced_and_not(strategy: Any) -> None:
    def norm(x: Any) -> Any:
        xp = get_replica_context().xp
        return xp.sqrt(xp.sum(xp.square(x)))

    x = np.array([3.0, 4.0], np.float32)

    assert strategy.local_results(strategy.run(norm, (x,)))[3] == 5
    assert wb.distribute.get_strategy().run(norm, (x,)).values[0] == 5


def test_variables_are_read_and_updated_on_the_devices(strategy: Any) -> None:
    with strategy.scope():
        total = wb.Variable(np.zeros(2, np.float32), aggregation="SUM")
        mean = wb.Variable(1.0, aggregation="MEAN")
        first = wb.Variable(0, aggregation="ONLY_FIRST_REPLICA")
        own = wb.Variable(0.0, synchronization="ON_READ", aggregation="SUM")

    @wb.function
    def step(x: Any) -> Any:
        total.assign_add(x + np.zeros(2, np.float32))
        mean.assign(x)
        first.assign_add(5)
        own.assign_add(x)
        return total + 1, mean * 2

    for _ in range(3):
        result, doubled = strategy.run(step, (ids(strategy),))

    np.testing.assert_array_equal(total.numpy(), [18, 18])
    assert float(mean) == 1.5
    assert int(first) == 15
    assert float(own) == 18
    assert [float(part[0]) for part in strategy.local_results(result)] == [19] * REPLICAS
    assert float(strategy.local_results(doubled)[0]) == 3
    assert [float(part.read_value()) for part in strategy.local_results(own)] == [0, 3, 6, 9]


def test_a_variable_that_was_read_keeps_its_value_when_the_next_step_replaces_it(strategy: Any) -> None:
    with strategy.scope():
        w = wb.Variable(np.zeros(2000, np.float32))

    @wb.function
    def step() -> Any:
        before = w.value()
        w.assign_add(np.ones(2000, np.float32))
        return before

    before = [strategy.run(step) for _ in range(4)]
    seen = w.read_value()
    strategy.run(step)

    assert [float(strategy.local_results(value)[1][0]) for value in before] == [0, 1, 2, 3]
    assert seen[0] == 4
    assert w.numpy()[0] == 5


def test_assigning_outside_reaches_the_next_step(strategy: Any) -> None:
    with strategy.scope():
        w = wb.Variable(np.zeros(3, np.float32))

    def double() -> None:
        w.assign(w * 2)

    w.assign([1.0, 2.0, 3.0])
    strategy.run(double)
    w.assign_add([0.5, 0.5, 0.5])
    strategy.run(double)

    np.testing.assert_array_equal(w.numpy(), [5, 9, 13])


def test_a_failed_step_changes_nothing(strategy: Any) -> None:
    with strategy.scope():
        w = wb.Variable(1.0)

    def fails() -> None:
        w.assign(7.0)
        raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError, match="on purpose"):
        strategy.run(fails)

    assert float(w) == 1
    strategy.run(lambda: w.assign(2.0))
    assert float(w) == 2


def test_datasets_feed_the_devices(strategy: Any) -> None:
    rows = np.arange(32, dtype=np.float32).reshape(16, 2)
    dataset = wb.data.Dataset.from_tensor_slices(rows).map(lambda row: row + 1).batch(8)

    sums = [strategy.run(lambda x: x.sum(), (batch,)) for batch in strategy.distribute_dataset(dataset)]

    assert sum(float(strategy.reduce("SUM", part, axis=None)) for part in sums) == rows.sum() + rows.size


def test_components_of_another_length_are_padded_and_masked_when_asked(strategy: Any) -> None:
    lengths = by_replica(strategy, *[np.ones((n, 2), np.float32) for n in (3, 3, 3, 1)])
    options = wb.distribute.RunOptions(partial_batch="pad")

    def mean(x: Any) -> Any:
        ctx = get_replica_context()
        mask = ctx.row_mask(x)
        rows = ctx.all_reduce("SUM", mask.sum())
        return ctx.all_reduce("SUM", ctx.xp.where(mask[:, None], x, 0).sum()) / rows, mask

    result, mask = strategy.run(mean, (lengths,), options=options)

    assert float(strategy.local_results(result)[0]) == 2
    assert [part.tolist() for part in strategy.local_results(mask)][2:] == [[True] * 3, [True, False, False]]


def test_which_rows_are_data_is_not_guessed_for_what_is_computed(strategy: Any) -> None:
    lengths = by_replica(strategy, *[np.ones((n, 2), np.float32) for n in (3, 3, 3, 1)])
    options = wb.distribute.RunOptions(partial_batch="pad")

    def masks_what_it_computed(x: Any) -> Any:
        return get_replica_context().row_mask(x * 2)

    with pytest.raises(
        wb.errors.TracingError, match=r"call ctx\.row_mask\(x\) with the x that .*\n.*in masks_what"
    ):
        strategy.run(masks_what_it_computed, (lengths,), options=options)
    whole = strategy.run(lambda x: get_replica_context().row_mask(x.sum(axis=0)), (lengths,), options=options)
    assert strategy.local_results(whole)[3].tolist() == [True, True]


def test_components_of_another_length_are_refused_otherwise(strategy: Any) -> None:
    lengths = by_replica(strategy, *[np.ones(n, np.float32) for n in (2, 2, 2, 1)])

    with pytest.raises(wb.errors.InvalidArgumentError, match=r"float32\[1\].*partial_batch='pad'"):
        strategy.run(lambda x: x, (lengths,))


def test_an_assignment_chooses_cores(cluster: Any) -> None:
    strategy = wb.TPUStrategy(
        device_assignment=DeviceAssignment.build(num_replicas=2, computation_stride=[1, 1, 1, 2])
    )

    assert [device.short for device in strategy.devices] == ["TPU:0", "TPU:2"]
    assert strategy.local_results(strategy.run(lambda: get_replica_context().num_replicas_in_sync)) == (2, 2)
    strategy.group.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_replicas": 5}, "from 1 to 4"),
        ({"computation_shape": [1, 1, 1, 2]}, "one core"),
        ({"computation_stride": [1, 1, 1]}, "four integers"),
    ],
)
def test_an_assignment_that_does_not_fit_is_refused(cluster: Any, arguments: Any, message: str) -> None:
    with pytest.raises(wb.errors.InvalidArgumentError, match=message):
        DeviceAssignment.build(**arguments)


def test_mirrored_strategy_refers_to_tpu_strategy(cluster: Any) -> None:
    with pytest.raises(wb.errors.InvalidArgumentError, match="TPUStrategy"):
        wb.MirroredStrategy()


def test_inspect_shows_each_replica(strategy: Any) -> None:
    with strategy.scope():
        w = wb.Variable(np.ones(4, np.float32), name="w")
    strategy.run(lambda: w.assign_add(np.ones(4, np.float32)))

    assert "in sync" in str(wb.inspect(w))


def test_update_functions_run_on_each_replica(strategy: Any) -> None:
    with strategy.scope():
        w = wb.Variable(1.0)
    strategy.run(lambda: w.assign_add(1.0))

    strategy.extended.update(w, lambda component, x: component.assign_add(x), args=(np.float32(3),))

    assert float(w) == 5
