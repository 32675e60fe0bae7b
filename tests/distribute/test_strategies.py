"""Making strategies: devices, cross-device operations, hosts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.distribute import (
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    Mirrored,
    MirroredStrategy,
    NcclAllReduce,
    OneDeviceStrategy,
    PerReplica,
    ReductionToOneDevice,
    RingAllReduce,
    get_replica_context,
)
from workbench.errors import BackendUnavailable, InvalidArgumentError


def test_devices_are_checked_before_anything_starts(threads: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"wb\.connect\(replicas="):
        MirroredStrategy(["CPU:0", "CPU:9"])
    with pytest.raises(InvalidArgumentError, match="both"):
        MirroredStrategy(["CPU:0", "CPU:0"])
    with pytest.raises(InvalidArgumentError, match="GPU"):
        OneDeviceStrategy("GPU:0")
    assert MirroredStrategy().num_replicas_in_sync == 4


@pytest.mark.parametrize(
    "ops",
    [
        ReductionToOneDevice(),
        HierarchicalCopyAllReduce(),
        HierarchicalCopyAllReduce(num_packs=0),
        HierarchicalCopyAllReduce(num_packs=3),
        RingAllReduce(),
        None,
    ],
    ids=repr,
)
def test_every_way_to_combine_gives_the_same_numbers(threads: Any, ops: Any) -> None:
    strategy = MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"], cross_device_ops=ops)

    def step() -> Any:
        context = get_replica_context()
        k = context.replica_id_in_sync_group
        return context.all_reduce("mean", [np.full(n, float(k * n), np.float32) for n in (1, 5, 1000)])

    for n, leaf in zip((1, 5, 1000), strategy.run(step), strict=True):
        for component in leaf.values:
            np.testing.assert_array_equal(component, np.full(n, n, np.float32))


def test_nccl_says_what_it_needs(threads: Any) -> None:
    with pytest.raises(BackendUnavailable, match="one GPU per replica"):
        MirroredStrategy(["CPU:0"], cross_device_ops=NcclAllReduce())
    with pytest.raises(TypeError, match=r"RingAllReduce\(\)"):
        MirroredStrategy(["CPU:0"], cross_device_ops=RingAllReduce)  # type: ignore[arg-type]
    for wrong in (-1, True, 1.5):
        with pytest.raises(
            ValueError, match=rf"num_packs must be an integer of at least 0 .*, got {wrong!r}"
        ):
            RingAllReduce(num_packs=wrong)  # type: ignore[arg-type]


class _Doubling(CrossDeviceOps):
    """A user's own operation whose result is easy to distinguish from a sum."""

    def reduce_implementation(self, reduce_op: Any, value: Any, destinations: Any, options: Any) -> Any:
        return 2 * sum(value.values)

    def batch_reduce_implementation(self, reduce_op: Any, pairs: Any, options: Any) -> Any:
        return [Mirrored([2 * sum(value.values)] * len(value.values)) for value, _ in pairs]


def test_an_operation_of_the_users_own_is_asked_for_every_reduction(threads: Any) -> None:
    strategy = MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=_Doubling())
    assert strategy.run(lambda: get_replica_context().all_reduce("sum", np.float32(3))).values == (12, 12)
    assert strategy.reduce("SUM", PerReplica((1.0, 2.0)), axis=None) == 6


def test_reductions_of_the_extended_api_stay_on_the_replicas(strategy: Any) -> None:
    value = strategy.run(lambda: np.ones(4000, np.float32))
    with strategy.scope():
        v = wb.Variable(1.0)
        (mirrored,) = strategy.extended.batch_reduce_to("SUM", [(value, v)])
        host = strategy.extended.reduce_to("MEAN", value, "CPU:0")
    assert isinstance(mirrored, Mirrored)
    assert mirrored.handle is not None
    assert strategy.reduce("SUM", mirrored, axis=0) == 16000
    assert host.tolist() == [1] * 4000
    assert v.numpy() == 1


def test_structures_of_values_are_reduced_leaf_by_leaf(strategy: Any) -> None:
    def step() -> Any:
        rank = get_replica_context().replica_id_in_sync_group
        return {"a": np.float32(rank + 1), "b": (np.int32(2 * rank), None)}

    given = strategy.run(step)
    with strategy.scope():
        mean = strategy.extended.reduce_to("MEAN", given, "CPU:0")
        everywhere, total = strategy.extended.batch_reduce_to("SUM", [(given, given), (given["a"], "CPU:0")])
    assert mean == {"a": 1.5, "b": (1.0, None)}
    assert everywhere["a"].values == (3, 3)
    assert everywhere["b"][0].values == (2, 2)
    assert total == 3


@pytest.mark.parametrize("value", [None, {"loss": PerReplica((1.0, 2.0)), "other": (None,)}])
def test_what_replicas_did_not_return_has_no_sum(strategy: Any, value: Any) -> None:
    for op, axis in (("SUM", None), ("SUM", 0), ("MEAN", 0)):
        with pytest.raises(ValueError, match=f"reduce with {op} needs distributed values, got None"):
            strategy.reduce(op, value, axis=axis)
    mean = strategy.reduce("MEAN", value, axis=None)
    assert mean == (None if value is None else {"loss": 1.5, "other": (None,)})


def test_a_variable_of_central_storage_is_reduced_as_if_on_each_replica(threads: Any) -> None:
    strategy = wb.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        v = wb.Variable(1.5)
    assert strategy.reduce("SUM", v, axis=None) == strategy.extended.reduce_to("SUM", v, "CPU:0") == 3
    assert strategy.extended.reduce_to("MEAN", v, v) == 1.5


@pytest.mark.parametrize("pairs", ["value", [1], [(1, 2, 3)]])
def test_batches_are_lists_of_pairs(pairs: Any) -> None:
    with pytest.raises(ValueError, match=r"\(value, destinations\)"):
        ReductionToOneDevice().batch_reduce("SUM", pairs)


@pytest.mark.parametrize(
    ("value", "destinations"), [("text", "CPU:0"), (1.0, 3), (1.0, "XPU:0"), (True, "CPU:0")]
)
def test_what_cannot_be_reduced_to_a_place_is_refused(value: Any, destinations: Any) -> None:
    with pytest.raises(ValueError, match=r"combined|destinations|device"):
        ReductionToOneDevice().reduce("SUM", value, destinations)


def test_one_device_behaves_like_any_strategy(threads: Any) -> None:
    strategy = OneDeviceStrategy("CPU:1")
    with strategy.scope():
        v = wb.Variable(1.0, aggregation="SUM")
    strategy.run(lambda: v.assign_add(2.0))
    assert strategy.reduce("SUM", strategy.run(lambda: v + 1), axis=None) == 4
    assert len(strategy.local_results(v)) == 1
    assert strategy.extended.worker_devices[0].endswith("CPU:1")


def test_the_experimental_names_are_the_plain_ones(threads: Any) -> None:
    strategy = MirroredStrategy(["CPU:0"])
    assert strategy.experimental_local_results == strategy.local_results
    assert strategy.experimental_distribute_dataset == strategy.distribute_dataset
    assert (
        strategy.experimental_distribute_datasets_from_function == strategy.distribute_datasets_from_function
    )


def test_the_way_of_combining_that_was_asked_for_is_taken_for_small_arrays_too(strategy: Any) -> None:
    if strategy.group.gang.shipping.codec.by_reference:
        return  # replicas of one process combine in only one way
    taken = {}
    for ops in (ReductionToOneDevice(), RingAllReduce(), None):
        one = MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ops)
        one.run(lambda: get_replica_context().all_reduce("sum", np.ones(10)))
        taken[type(ops).__name__] = set(wb.collectives(one).to_arrow()["algorithm"].to_pylist())
        one.group.close()
    assert taken == {
        "ReductionToOneDevice": {"one_device"},
        "RingAllReduce": {"scattered"},
        "NoneType": {"direct"},
    }


@pytest.mark.parametrize(
    "ops", [ReductionToOneDevice(), HierarchicalCopyAllReduce(), RingAllReduce()], ids=repr
)
def test_what_goes_to_one_device_is_a_plain_array(cluster: Any, ops: Any) -> None:
    strategy = MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ops)
    value = strategy.distribute_values_from_function(lambda c: np.float32(c.replica_id_in_sync_group + 1))
    plain = wb.Variable(0.0)  # it has one component
    with strategy.scope():
        mirrored = wb.Variable(0.0)
    with strategy.scope():
        for one_device in ("CPU:0", np.zeros(1), plain, PerReplica((np.float32(0),))):
            for result in (
                ops.reduce("SUM", value, one_device),
                ops.broadcast(np.float32(3), one_device),
                strategy.extended.reduce_to("SUM", value, one_device),
                strategy.extended.reduce_to("MEAN", np.float32(3), one_device),
            ):
                assert not isinstance(result, PerReplica | Mirrored)
                assert result == 3
        several = ops.reduce("SUM", value, mirrored)
    assert isinstance(several, Mirrored)
    assert several.values == (3, 3)
    assert (plain.numpy(), mirrored.numpy()) == (0, 0)
    strategy.group.close()


def test_the_update_of_a_single_component_returns_plain_values() -> None:
    default = wb.distribute.get_strategy()
    v = wb.Variable(1.0)
    assert default.extended.update(v, lambda x, y: {"sum": x + y}, args=(2,)) == {"sum": 3}
    assert default.extended.update(v, lambda x, y: {"sum": x + y}, args=(2,), group=False) == {"sum": (3,)}


def test_arrays_become_a_dataset_of_their_rows(threads: Any) -> None:
    strategy = MirroredStrategy(["CPU:0", "CPU:1"])
    rows, numbers = np.arange(12.0).reshape(6, 2), np.arange(6)

    data = strategy.make_numpy_dataset((rows, {"n": numbers}))
    parts = [
        strategy.local_results(batch["n"])
        for _, batch in strategy.experimental_distribute_dataset(data.batch(4))
    ]
    assert [[part.tolist() for part in step] for step in parts] == [[[0, 1], [2, 3]], [[4], [5]]]
    stacked = strategy.experimental_make_numpy_dataset([np.array([1, 2]), np.array([3, 4])])
    assert [row.tolist() for row in stacked] == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="first dimension"):
        strategy.make_numpy_dataset((np.zeros(3), np.zeros(4)))
    strategy.group.close()


def test_the_default_strategy_hands_components_to_update_functions() -> None:
    default = wb.distribute.get_strategy()
    variable, value = wb.Variable(1.0), default.distribute_values_from_function(lambda context: np.float32(2))
    extended = default.extended

    assert extended.update_non_slot(None, lambda x, *, y: x * y, args=(value,), kwargs={"y": value}) == 4
    assert extended.update(variable, lambda v, x: v.assign_add(x), args=(value,)) == 3


def test_what_an_update_returns_is_a_tuple_of_components_without_grouping(threads: Any) -> None:
    central = wb.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"])
    for strategy in (wb.distribute.get_strategy(), central):
        with strategy.scope():
            variable = wb.Variable(1.0)
        found = strategy.extended.update(variable, lambda v: {"v": v.assign(2.0), "n": 3}, group=False)
        assert found["n"] == (3,)
        assert [float(np.asarray(each)) for each in found["v"]] == [2.0]


def test_a_strategy_knows_its_own_variables(threads: Any) -> None:
    outside, one = wb.Variable(1.0), OneDeviceStrategy("CPU:1")
    with one.scope():
        inside = wb.Variable(2.0)
    values = (inside, outside, 3.0)

    assert [one.extended.variable_created_in_scope(value) for value in values] == [True, False, False]
    default = wb.distribute.get_strategy().extended
    assert [default.variable_created_in_scope(value) for value in values] == [False, True, False]
    assert not one.extended.experimental_require_static_shapes


def test_a_component_stands_for_its_variable_where_it_is_the_only_one(threads: Any, strategy: Any) -> None:
    one = OneDeviceStrategy("CPU:1")
    for each in (one, strategy):
        with each.scope():
            variable = wb.Variable(1.0)
        component = each.local_results(variable)[0]
        if each is one:
            with each.scope(), each.extended.colocate_vars_with(component):
                assert wb.Variable(2.0).strategy is one
        else:
            with (
                pytest.raises(ValueError, match="needs a variable of"),
                each.extended.colocate_vars_with(component),
            ):
                pass


def test_iterators_and_the_extended_api_tell_whose_they_are(strategy: Any) -> None:
    iterator = iter(strategy.distribute_dataset(wb.data.Dataset.range(8).batch(4)))
    next(iterator)
    assert repr(iterator).startswith("<DistributedIterator of <DistributedDataset: 2 replicas")
    assert repr(iterator).endswith(": 1 given>")
    assert repr(strategy.extended) == f"<StrategyExtended of {strategy!r}>"
