"""Programs for the contrib MirroredStrategy run, in one process and over processes."""

from __future__ import annotations

import operator
import warnings

import numpy as np
import pytest

import workbench as wb
from workbench.compat.towers import MirroredStrategy, get_tower_context, get_variable, trainable_variables

pytestmark = pytest.mark.filterwarnings("ignore:.* is a spelling of TensorFlow 1:DeprecationWarning")


@pytest.fixture
def distribution(cluster: wb.Cluster) -> MirroredStrategy:
    return MirroredStrategy(["/cpu:0", "/cpu:1"])


def _merge_name(distribution: MirroredStrategy, value: object) -> str:
    return f"{type(distribution).__module__} of {distribution.num_towers}, {len(distribution.unwrap(value))}"


def _merging() -> str:
    context = get_tower_context()
    assert context is not None
    return str(context.merge_call(_merge_name, np.float32(context.tower_id)))


def test_a_training_step_in_the_old_spelling_trains(distribution: MirroredStrategy) -> None:
    with distribution.scope():
        w = get_variable("w", np.zeros, shape=(2,), dtype="float32")
        inputs = wb.data.Dataset.from_tensor_slices(np.eye(2, dtype=np.float32)).repeat(4)
        iterator = distribution.distribute_dataset(inputs)
        for _ in range(3):
            gradients = distribution.call_for_each_tower(lambda x: w - x, iterator.get_next())
            mean = distribution.reduce("mean", gradients, destinations=w)
            distribution.group(distribution.update(w, lambda v, g: v.assign_sub(g), mean))
        values = [np.asarray(component) for component in distribution.unwrap(w)]

    np.testing.assert_allclose(values, [[0.5, 0.5]] * 2)


def test_a_merge_function_gets_the_distribution_and_is_in_cross_tower_context(
    distribution: MirroredStrategy,
) -> None:
    with distribution.scope():
        result = distribution.call_for_each_tower(_merging)

    assert result == "workbench.compat.tower_strategy of 2, 2"


def test_one_scope_may_be_entered_many_times_also_inside_itself(distribution: MirroredStrategy) -> None:
    scope = distribution.scope()

    for _ in range(2):
        with scope as outer, scope as inner:
            assert outer is inner is distribution
            assert wb.distribute.get_strategy() is distribution.strategy
        assert not wb.distribute.has_strategy()


def test_each_tower_takes_an_element_until_too_few_are_left(distribution: MirroredStrategy) -> None:
    with distribution.scope():
        iterator = distribution.distribute_dataset(lambda: wb.data.Dataset.range(4))
        steps = [[int(x) for x in distribution.unwrap(iterator.get_next())] for _ in range(2)]
        with pytest.raises(wb.errors.OutOfRangeError):
            iterator.get_next()

    assert sorted(steps[0] + steps[1]) == [0, 1, 2, 3]


def test_map_deals_the_items_to_the_towers(distribution: MirroredStrategy) -> None:
    with distribution.scope():
        outputs = distribution.map([1, 2, 3], lambda item, factor: item * factor, 10)

    assert [output.get() for output in distribution.unwrap(outputs)] == [[10, 30], [20]]


def test_a_tower_local_variable_is_fetched_combined_and_the_function_applied_after(
    distribution: MirroredStrategy,
) -> None:
    with distribution.scope():
        with distribution.tower_local_var_scope("sum"):
            count = get_variable("count", np.float32(3.0))
        w = get_variable("w", np.float32(1.0))

        assert distribution.fetch(count, fn=lambda value: value**2) == 36.0
        assert trainable_variables() == [w]
        with pytest.raises(ValueError, match="'sum' or 'mean'"):
            distribution.tower_local_var_scope("max")


def test_a_variable_that_stays_mirrored_in_a_tower_local_scope_is_told(
    distribution: MirroredStrategy,
) -> None:
    with (
        distribution.scope(),
        pytest.warns(UserWarning, match="w:0.* was made by wb.Variable: it is mirrored|w was made by"),
        distribution.tower_local_var_scope("mean"),
    ):
        w = wb.Variable(1.0, name="w")

    assert w.synchronization is wb.VariableSynchronization.ON_WRITE


def test_fetch_takes_the_component_of_the_tower_on_the_destination(distribution: MirroredStrategy) -> None:
    with distribution.scope():
        ids = distribution.call_for_each_tower(lambda i: np.int32(i), distribution.worker_device_index)

        assert int(distribution.fetch(ids, "/device:CPU:1")) == 1
        assert int(distribution.fetch(ids, "/device:CPU:0", fn=lambda x: x + 5)) == 5
        assert distribution.fetch(7) == 7


def test_arrays_stay_with_their_towers_and_equal_python_values_collapse(
    distribution: MirroredStrategy,
) -> None:
    with distribution.scope():
        arrays, number, differing = distribution.call_for_each_tower(
            lambda: (np.ones(2), 3, get_tower_context().tower_id)  # type: ignore[union-attr]
        )

    assert isinstance(arrays, wb.distribute.PerReplica)
    assert number == 3
    assert distribution.unwrap(differing) == [0, 1]
    assert distribution.unwrap(number) == [3]


def test_a_result_goes_to_each_device_of_a_list(distribution: MirroredStrategy) -> None:
    with distribution.scope():
        ids = distribution.call_for_each_tower(lambda i: np.float32(i), distribution.worker_device_index)
        both, one = distribution.batch_reduce("sum", [(ids, ["/cpu:0", "/cpu:1"]), (ids, "/cpu:0")])

    assert [float(x) for x in distribution.unwrap(both)] == [1.0, 1.0]
    assert [float(x) for x in distribution.unwrap(one)] == [1.0]


def test_one_value_for_all_towers_is_its_mean_and_has_no_sum(distribution: MirroredStrategy) -> None:
    with distribution.scope():
        w = get_variable("w", 1.0)
        for where, count in ((None, 2), (w, 2), ("/cpu:1", 1), (["/cpu:0"], 1)):
            assert distribution.unwrap(distribution.reduce("mean", np.float32(5), where)) == [5] * count
        assert distribution.reduce("sum", 0) == 0
        with pytest.raises(ValueError, match="multiply it by 2"):
            distribution.reduce("sum", 5.0)
        ids = distribution.call_for_each_tower(lambda i: np.float32(i), distribution.worker_device_index)
        found = distribution.batch_reduce(
            "mean", [(3.0, "/cpu:0"), (ids, None), (np.float32(4), w), (ids, "/cpu:0")]
        )
        assert [distribution.unwrap(value) for value in found] == [[3.0], [0.5, 0.5], [4, 4], [0.5]]
        with pytest.raises(ValueError, match="empty list"):
            distribution.reduce("sum", ids, [])


def test_updates_and_merge_calls_collapse_equal_python_values_too(distribution: MirroredStrategy) -> None:
    def merged() -> object:
        context = get_tower_context()
        assert context is not None
        return context.merge_call(
            lambda of, one, two, *, three: [of.unwrap(value) for value in (one, two, three)],
            5,
            context.tower_id,
            three="x",
        )

    with distribution.scope():
        w = get_variable("w", 1.0)
        devices = distribution.non_slot_devices([w])
        assert distribution.unwrap(distribution.update(w, lambda v: 5)) == [5]
        assert distribution.unwrap(distribution.update_non_slot(devices, lambda: "text")) == ["text"]
        assert distribution.call_for_each_tower(merged) == [[5], [0, 1], ["x"]]


def test_variables_can_be_colocated_with_the_devices_of_no_slot(distribution: MirroredStrategy) -> None:
    with distribution.scope():
        w = get_variable("w", 1.0)
        with distribution.colocate_vars_with(distribution.non_slot_devices([w])):
            beta = get_variable("beta", 0.5)
        assert len(distribution.unwrap(beta)) == 2
        with pytest.raises(ValueError, match="needs a variable"):
            distribution.colocate_vars_with(["/cpu:7"]).__enter__()


@pytest.mark.parametrize("unknown", [False, True])
def test_a_step_without_an_element_for_each_tower_is_left_out(
    distribution: MirroredStrategy, unknown: bool
) -> None:
    batches = wb.data.Dataset.range(6 if unknown else 5).batch(2)
    elements = batches.filter(lambda x: True) if unknown else batches
    with distribution.scope():
        iterator = distribution.distribute_dataset(elements)
        assert [x.tolist() for x in distribution.unwrap(iterator.get_next())] == [[0, 1], [2, 3]]
        with pytest.raises(wb.errors.OutOfRangeError):
            iterator.get_next()


def test_a_last_batch_that_is_smaller_is_an_element_of_its_own(distribution: MirroredStrategy) -> None:
    batches = wb.data.Dataset.range(10).filter(lambda x: True).batch(3)
    with distribution.scope():
        iterator = distribution.distribute_dataset(batches)
        steps = [[x.tolist() for x in distribution.unwrap(iterator.get_next())] for _ in range(2)]
    assert steps == [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9]]]


@pytest.mark.parametrize("name", ["call_for_each_tower", "colocate_vars_with", "worker_device_index"])
def test_what_needs_the_scope_names_it(distribution: MirroredStrategy, name: str) -> None:
    with pytest.raises(RuntimeError, match=f"{name} was called outside of the strategy's scope"):
        operator.methodcaller(name, lambda: 1)(distribution)


def test_update_refuses_what_differs_by_tower_and_says_what_to_do(distribution: MirroredStrategy) -> None:
    with distribution.scope():
        w = get_variable("w", 1.0)
        value = distribution.call_for_each_tower(lambda i: np.float32(i), distribution.worker_device_index)
        with pytest.raises(TypeError, match=r"reduce\('sum', value, destinations=var\)"):
            distribution.update(w, lambda v, g: v.assign_add(g), value)
        with pytest.raises(TypeError, match="update needs a variable, got 3"):
            distribution.update(3, lambda v: v)
        with pytest.raises(TypeError, match="update_non_slot got a value that differs by tower"):
            distribution.update_non_slot(distribution.non_slot_devices([w]), lambda g: g, value)


def test_two_ways_to_name_the_devices_are_refused() -> None:
    with pytest.raises(ValueError, match="give one of them"):
        MirroredStrategy(devices=["/cpu:0"], num_gpus=1)


def test_outside_of_all_scopes_there_is_one_tower() -> None:
    context = get_tower_context()

    assert context is not None
    assert (context.tower_id, context.num_towers, context.is_single_tower) == (0, 1, True)
    assert context.merge_call(lambda distribution, x: x + 1, 2) == 3


def test_an_old_spelling_warns_once_with_the_modern_one(distribution: MirroredStrategy) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            distribution.unwrap(5)

    assert [str(warning.message) for warning in told] == [
        "unwrap(value) is a spelling of TensorFlow 1; write strategy.local_results(value)"
    ]
    assert told[0].category is DeprecationWarning
    assert told[0].filename == __file__
