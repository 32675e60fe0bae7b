"""CentralStorageStrategy: one copy of each variable, on both kinds of cluster."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.distribute import get_replica_context
from workbench.distribute.experimental import CentralStorageStrategy
from workbench.distribute.variables.variable import variable_of
from workbench.errors import FailedPreconditionError, InvalidArgumentError


@pytest.fixture
def central(cluster: Any) -> Iterator[Any]:
    """Two replicas that share their variables, on each kind of cluster."""
    made = CentralStorageStrategy(["CPU:0", "CPU:1"])
    yield made
    made.group.close()


def _replica() -> int:
    return get_replica_context().replica_id_in_sync_group


@pytest.mark.parametrize(
    ("aggregation", "expected"), [("SUM", 13), ("MEAN", 11.5), ("ONLY_FIRST_REPLICA", 11)]
)
def test_aggregation_says_what_replicas_add(central: Any, aggregation: str, expected: float) -> None:
    with central.scope():
        v = wb.Variable(10.0, aggregation=aggregation)

    def step() -> Any:
        v.assign_add(np.float32(_replica() + 1))
        return v.read_value()

    assert central.run(step).values == (expected, expected)
    assert v.numpy() == expected


@pytest.mark.parametrize("how", ["assign", "assign_add", "assign_sub"])
def test_an_update_by_replicas_needs_an_aggregation(central: Any, how: str) -> None:
    with central.scope():
        v = wb.Variable(1.0, name="w")
    with pytest.raises(ValueError, match=r"'w:0'.*one copy for 2 replicas.*SUM, MEAN or ONLY_FIRST_REPLICA"):
        central.run(lambda: getattr(v, how)(np.float32(2)))
    getattr(v, how)(2.0)
    assert v.numpy() == {"assign": 2, "assign_add": 3, "assign_sub": -1}[how]


@pytest.mark.parametrize("aggregation", ["SUM", "MEAN"])
def test_on_read_makes_no_difference_to_a_single_copy(central: Any, aggregation: str) -> None:
    with central.scope():
        v = wb.Variable(0.0, synchronization="ON_READ", aggregation=aggregation)
    central.run(lambda: v.assign_add(np.float32(_replica() + 1)))
    assert v.numpy() == {"SUM": 3, "MEAN": 1.5}[aggregation]
    v.assign_add(1.0)
    assert v.numpy() == {"SUM": 4, "MEAN": 2.5}[aggregation]
    assert not v.trainable


def test_there_is_one_copy_on_the_parameter_device(cluster: Any) -> None:
    strategy = CentralStorageStrategy(["CPU:0", "CPU:1"], "CPU:1")
    with strategy.scope():
        v = wb.Variable([1.0, 2.0], name="w", aggregation="SUM")
    (only,) = strategy.local_results(v)
    assert (only.name, only.device) == ("w:0", strategy.extended.worker_devices[1])
    assert strategy.extended.parameter_devices == strategy.extended.worker_devices[1:]
    assert strategy.extended.non_slot_devices([v]) == strategy.extended.parameter_devices
    assert v.device == only.device
    assert set(strategy.run(lambda: str(v.device)).values) == {only.device}
    only.assign([3.0, 4.0])
    assert strategy.run(lambda: v * 2).values[0].tolist() == [6, 8]
    with pytest.raises(RuntimeError, match="one replica cannot update 'w:0' alone"):
        strategy.run(lambda: v.values[0].assign([0.0, 0.0]))
    strategy.group.close()


def test_a_replica_reads_a_copy_of_what_is_there(central: Any) -> None:
    initial = np.zeros(3, np.float32)
    with central.scope():
        v = wb.Variable(initial, aggregation="SUM")
        none = wb.Variable(np.zeros((0, 2), np.float32), aggregation="SUM")
    initial[0] = 9

    def step() -> Any:
        before = v.read_value()
        v.assign_add(np.ones(3, np.float32))
        none.assign_add(np.zeros((0, 2), np.float32))
        return before, v.read_value(), none.shape

    before, after, _ = central.run(step)
    assert [part.tolist() for part in before.values] == [[0] * 3] * 2
    assert [part.tolist() for part in after.values] == [[2] * 3] * 2

    def write() -> None:
        v.read_value()[0] = 5

    with pytest.raises(ValueError, match="read-only"):
        central.run(write)


def test_a_failed_step_leaves_no_trace(central: Any) -> None:
    with central.scope():
        v = wb.Variable([1.0], aggregation="SUM")

    def step() -> None:
        v.assign_add(np.ones(1, np.float32))
        if _replica() == 1:
            raise KeyError("late")

    with pytest.raises(KeyError):
        central.run(step)
    assert v.numpy().tolist() == [1]
    central.run(lambda: v.assign_add(np.ones(1, np.float32)))
    assert v.numpy().tolist() == [3]


def test_pipelined_steps_update_it_in_order(central: Any) -> None:
    with central.scope():
        v = wb.Variable(np.zeros(1000), aggregation="MEAN")

    @wb.function
    def step(by: float) -> Any:
        v.assign(v * 2 + np.full(1000, by))
        return v[0]

    seen = [central.run(step, args=(float(by),)) for by in range(40)]
    expected = 0.0
    for by, value in enumerate(seen):
        expected = expected * 2 + by
        assert value.values == (expected, expected)
    assert v.numpy()[-1] == expected


def test_update_functions_run_once_where_the_variables_are(central: Any) -> None:
    with central.scope():
        v = wb.Variable(1.0, name="w")
        other = wb.Variable(5.0)

    def fn(part: Any, by: Any) -> Any:
        part.assign_add(by)
        other.assign_sub(by)
        return part * 2

    assert central.extended.update(v, fn, args=(np.float32(2),), group=False) == (6,)
    assert central.run(lambda: (v.read_value(), other.read_value()))[0].values == (3, 3)
    assert other.numpy() == 3
    assert central.extended.update(v, lambda part: part.assign(7.0)).numpy() == 7
    assert v.numpy() == 7
    assert central.extended.update_non_slot([], lambda x: x + 1, args=(1,), group=False) == (2,)


def test_merge_functions_may_update_it(central: Any) -> None:
    with central.scope():
        v = wb.Variable(0.0)

    def merge(strategy: Any, x: Any) -> Any:
        v.assign(strategy.reduce("SUM", x, axis=None))
        return v.read_value()

    result = central.run(
        lambda: get_replica_context().merge_call(merge, args=(np.float32(_replica() + 1),)) + v.read_value()
    )
    assert result.values == (6, 6)


def test_a_number_that_is_the_same_everywhere_is_not_summed(central: Any) -> None:
    with central.scope():
        v = wb.Variable(0, aggregation="SUM")
    central.run(lambda: v.assign(_replica() + 1))
    assert v.numpy() == 3
    with pytest.raises(ValueError, match="same number 2 times"):
        central.run(lambda: v.assign(4))


def test_a_per_replica_is_assigned_by_the_aggregation(central: Any) -> None:
    value = central.distribute_values_from_function(lambda c: np.float32(c.replica_id_in_sync_group + 1))
    with central.scope():
        total = wb.Variable(0.0, aggregation="SUM")
        unclear = wb.Variable(0.0)
    total.assign(value)
    assert total.numpy() == 3
    with pytest.raises(ValueError, match="aggregation NONE"):
        unclear.assign(value)


def test_a_variable_made_in_a_replica_function_lasts(central: Any) -> None:
    def make() -> Any:
        made = wb.Variable(5.0 + _replica(), name="inner", aggregation="SUM")
        made.assign_add(np.float32(1))
        return made

    made = central.run(make)
    gc.collect()
    assert made.kind == "CentralVariable"
    assert made.numpy() == 7


def test_replicas_forget_a_deleted_variable_with_the_next_one(central: Any) -> None:
    with central.scope():
        gone = wb.Variable(1.0)
    stale = pickle.loads(pickle.dumps(gone.description))
    del gone
    gc.collect()
    with central.scope():
        _ = wb.Variable(2.0)
    with pytest.raises(FailedPreconditionError, match="does not hold the variable 'Variable:0'"):
        central.run(lambda: variable_of(stale).read_value())


def test_distributing_and_reducing_are_as_everywhere(central: Any) -> None:
    dataset = central.experimental_distribute_dataset(wb.data.Dataset.range(10).batch(4))
    sums = [central.reduce("SUM", central.run(np.sum, args=(batch,)), axis=None) for batch in dataset]
    assert sums == [6, 22, 17]
    assert central.gather(central.run(lambda: np.array([_replica()])), axis=0).tolist() == [0, 1]
    assert "replica 1" in str(wb.explain_sharding(wb.data.Dataset.range(10).batch(4), central))


def test_it_says_where_its_variables_are(central: Any) -> None:
    with central.scope():
        v = wb.Variable([[1.0, 2.0]], name="w", aggregation="SUM")
    assert repr(v) == "<CentralVariable 'w:0' float32[1,2] on CPU:0 for 2 replicas, aggregation SUM>"
    assert repr(v.values[0]).startswith("<Variable 'w:0' float32[1,2] on /job:")
    assert "2 replicas on 1 host (2×cpu), variables on CPU:0" in repr(central)
    (found,) = wb.inspect(v).values
    assert (found.kind, found.agreement, len(found.replicas)) == ("CentralVariable", None, 1)
    assert (found.replicas[0].device, found.replicas[0].summary.max) == ("cpu:0", 2)  # type: ignore[union-attr]


def test_one_replica_keeps_its_own(threads: Any) -> None:
    strategy = CentralStorageStrategy(["CPU:1"])
    with strategy.scope():
        v = wb.Variable(1.0)
    strategy.run(lambda: v.assign_add(np.float32(1)))
    assert v.numpy() == 2
    assert (v.kind, len(v.values)) == ("CentralVariable", 1)
    elsewhere = CentralStorageStrategy(["CPU:1"], "CPU:3")
    with elsewhere.scope():
        w = wb.Variable(1.0)
    elsewhere.run(lambda: w.assign_add(np.float32(1)))
    assert w.numpy() == 2
    assert w.device.endswith("CPU:3")


def test_what_cannot_be_central_is_refused(threads: Any) -> None:
    assert CentralStorageStrategy().num_replicas_in_sync == 4
    with pytest.raises(InvalidArgumentError, match=r"wb\.connect\(replicas="):
        CentralStorageStrategy(["CPU:0", "CPU:9"])
    with pytest.raises(InvalidArgumentError, match="GPU"):
        CentralStorageStrategy(["CPU:0", "CPU:1"], "GPU:0")
    with pytest.raises(TypeError, match="must be a list"):
        CentralStorageStrategy("CPU:0")
    strategy = CentralStorageStrategy()
    with strategy.scope(), pytest.raises(TypeError, match=r"'names'.*object"):
        wb.Variable(["a", "b"], name="names")


def test_replicas_of_several_hosts_are_refused() -> None:
    with wb.connect(hosts=2, replicas_per_host=2, processes=False) as cluster:
        first = CentralStorageStrategy()
        assert {device.task for device in first.devices} == {0}
        names = [device.string for device in cluster.devices]
        with pytest.raises(InvalidArgumentError, match=r"on 2 hosts.*MultiWorkerMirroredStrategy"):
            CentralStorageStrategy([names[0], names[2]])
        with pytest.raises(InvalidArgumentError, match=r"parameter_device is .*leave it out"):
            CentralStorageStrategy(names[:2], names[2])
