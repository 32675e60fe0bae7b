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


@pytest.mark.parametrize("name", ["call_for_each_tower", "worker_device_index"])
def test_what_needs_the_scope_names_it(distribution: MirroredStrategy, name: str) -> None:
    with pytest.raises(RuntimeError, match=f"{name} was called outside of the strategy's scope"):
        operator.methodcaller(name, lambda: 1)(distribution)


def test_update_refuses_what_differs_by_tower_and_says_what_to_do(distribution: MirroredStrategy) -> None:
    with distribution.scope():
        w = get_variable("w", 1.0)
        value = distribution.call_for_each_tower(lambda i: np.float32(i), distribution.worker_device_index)
        with pytest.raises(TypeError, match=r"reduce\('sum', value, destinations=var\)"):
            distribution.update(w, lambda v, g: v.assign_add(g), value)


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
