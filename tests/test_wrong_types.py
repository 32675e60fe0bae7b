"""Arguments of a wrong type: the error is a TypeError, and also a ValueError where TensorFlow 2.21 raises one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.data import Dataset
from workbench.distribute import get_replica_context, get_strategy
from workbench.errors import WrongType

_DATASET = Dataset.range(6)
_NO_NUMBER: tuple[Any, ...] = (None, {}, object(), len)
_NO_FUNCTION: tuple[Any, ...] = (None, 1, 1.5, "x", [1], {}, object())
_STAGES: dict[str, Callable[[Any], Any]] = {
    "batch": _DATASET.batch,
    "take": _DATASET.take,
    "skip": _DATASET.skip,
    "shuffle": _DATASET.shuffle,
    "window": _DATASET.window,
    "enumerate": _DATASET.enumerate,
    "shard": lambda n: _DATASET.shard(n, 0),
    "range": Dataset.range,
    "drop_remainder": lambda flag: _DATASET.batch(2, drop_remainder=flag),
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "map": _DATASET.map,
    "filter": _DATASET.filter,
    "flat_map": _DATASET.flat_map,
    "interleave": _DATASET.interleave,
    "take_while": _DATASET.take_while,
    "reduce": lambda function: _DATASET.reduce(0, function),
}


@pytest.fixture(scope="module")
def strategy() -> Iterator[wb.MirroredStrategy]:
    with wb.connect(replicas=2, replace=True):
        yield wb.MirroredStrategy()


def _refuses(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("stage", _STAGES)
@pytest.mark.parametrize("value", _NO_NUMBER)
def test_a_stage_wants_numbers(stage: str, value: Any) -> None:
    _refuses(lambda: list(_STAGES[stage](value)))


@pytest.mark.parametrize("stage", _FUNCTIONS)
@pytest.mark.parametrize("value", _NO_FUNCTION)
def test_a_stage_wants_a_function(stage: str, value: Any) -> None:
    _refuses(lambda: list(_FUNCTIONS[stage](value)))


@pytest.mark.parametrize("value", [object(), len])
def test_an_element_holds_numbers(value: Any) -> None:
    _refuses(lambda: Dataset.from_tensors(value))
    _refuses(lambda: Dataset.from_tensor_slices(value))


@pytest.mark.parametrize("value", [None, object(), {}, {"a": 1}, {1}, [None], [1, "a"]])
def test_a_variable_holds_numbers(value: Any) -> None:
    _refuses(lambda: wb.Variable(value))
    _refuses(lambda: wb.Variable([1.0, 2.0]).assign(value))


@pytest.mark.parametrize("value", [1.5, "x", True, b"x"])
def test_rows_have_whole_numbers(value: Any) -> None:
    table = wb.Variable([[1.0], [2.0]])

    _refuses(lambda: table.sparse_read(value))
    _refuses(lambda: table.gather_nd(value))
    _refuses(lambda: table.scatter_nd_add(value, [1.0]))
    _refuses(lambda: wb.nn.embedding_lookup(table, value))


@pytest.mark.parametrize("value", [1, 1.5, "x", {}, object(), len])
def test_arguments_of_a_function_are_a_tuple(strategy: wb.MirroredStrategy, value: Any) -> None:
    for each in (strategy, get_strategy()):
        _refuses(lambda each=each: each.run(lambda *_: 1, args=value))  # type: ignore[misc]


@pytest.mark.parametrize("axis", [None, 1.5, [1], (1, 2)])
def test_an_axis_is_a_number(strategy: wb.MirroredStrategy, axis: Any) -> None:
    _refuses(lambda: strategy.gather(strategy.run(lambda: np.ones(1)), axis=axis))
    _refuses(lambda: strategy.run(lambda: get_replica_context().all_gather(np.ones(1), axis)))


def test_sums_are_of_numbers(strategy: wb.MirroredStrategy) -> None:
    for value in (np.array([True]), np.array(["x"])):
        made = strategy.run(lambda value=value: value)
        for axis in (None, 0):
            _refuses(lambda made=made, axis=axis: strategy.reduce("SUM", made, axis=axis))  # type: ignore[misc]
        _refuses(
            lambda value=value: strategy.run(lambda: get_replica_context().all_reduce("SUM", value))  # type: ignore[misc]
        )


@pytest.mark.parametrize("value", ["x", [1], {}, object(), b"x"])
def test_options_are_numbers(value: Any) -> None:
    _refuses(lambda: wb.distribute.experimental.CommunicationOptions(bytes_per_pack=value))
    _refuses(lambda: wb.distribute.NcclAllReduce(value))
    _refuses(lambda: wb.distribute.HierarchicalCopyAllReduce(value))


@pytest.mark.parametrize("value", [1, "x", {}, object()])
def test_how_to_read_is_told_by_input_options(strategy: wb.MirroredStrategy, value: Any) -> None:
    _refuses(lambda: strategy.experimental_distribute_dataset(_DATASET.batch(2), value))
    _refuses(lambda: strategy.distribute_datasets_from_function(lambda _: _DATASET.batch(2), value))
    _refuses(lambda: strategy.experimental_distribute_dataset(value))


@pytest.mark.parametrize("value", [1, 1.5, [1], {}])
def test_names_of_devices_and_folders_are_texts(value: Any) -> None:
    _refuses(lambda: wb.DeviceSpec.from_string(value))
    _refuses(lambda: wb.debugging.experimental.enable_dump_debug_info(value))


def test_a_choice_is_among_datasets() -> None:
    for value in (None, 1, object()):
        _refuses(lambda value=value: Dataset.sample_from_datasets(value))  # type: ignore[misc]


@pytest.mark.parametrize("value", [None, "x", [1], {}, object()])
def test_records_have_a_number_of_bytes(value: Any) -> None:
    _refuses(lambda: wb.data.FixedLengthRecordDataset(["file"], value))


def test_inputs_of_hosts_come_from_a_function(strategy: wb.MirroredStrategy) -> None:
    for value in (None, 1, _DATASET):
        _refuses(lambda value=value: strategy.distribute_datasets_from_function(value))  # type: ignore[misc]


@pytest.mark.parametrize("value", [1, 1.5, [1], {}, object(), b"x"])
def test_variables_and_devices_have_names(value: Any) -> None:
    _refuses(lambda: wb.Variable(1.0, name=value))
    _refuses(lambda: wb.OneDeviceStrategy(value))


@pytest.mark.parametrize("value", [None, 1, 1.5, object()])
def test_a_partitioner_divides_a_shape(value: Any) -> None:
    _refuses(
        lambda: wb.distribute.experimental.partitioners.MaxSizePartitioner(4)(value, np.dtype("float32"))
    )


@pytest.mark.parametrize("value", [1, 1.5, "x", True])
def test_a_table_has_rows(value: Any) -> None:
    _refuses(lambda: wb.nn.embedding_lookup(value, [0]))


def test_operands_of_assertions_have_one_kind() -> None:
    _refuses(lambda: wb.debugging.assert_near("x", 1.0))
    _refuses(lambda: wb.debugging.assert_near(True, 1.0))


_NO_PLACE: tuple[Any, ...] = (None, 1, 1.5, [1], {}, object(), len, b"x")


@pytest.mark.parametrize("value", _NO_PLACE)
def test_what_was_written_is_opened_by_its_path(value: Any) -> None:
    for call in (wb.open_run, wb.open_dump, wb.record):
        _refuses(lambda call=call: call(value))  # type: ignore[misc]


@pytest.mark.parametrize("value", [None, 1, 1.5, "x", object(), len])
def test_values_of_replicas_are_a_list(value: Any) -> None:
    for kind in (wb.distribute.PerReplica, wb.distribute.Mirrored):
        _refuses(lambda kind=kind: kind(value))  # type: ignore[misc]


@pytest.mark.parametrize("value", [1, -1, 1.5, True, "", "x", b"x", object(), len, {1}, 1j, (1, 2), {"a": 1}])
def test_a_dtype_has_a_name(value: Any) -> None:
    _refuses(lambda: wb.Variable(1.0, dtype=value))
    _refuses(lambda: wb.debugging.assert_type(1, value))
    _refuses(lambda: wb.debugging.assert_same_float_dtype([1.0], value))


@pytest.mark.parametrize("value", [1.5, "x", [1], {}, object(), float("nan"), np.array([1, 2])])
def test_shards_are_counted(value: Any) -> None:
    partitioners = wb.distribute.experimental.partitioners
    _refuses(lambda: partitioners.FixedShardsPartitioner(value))
    _refuses(lambda: partitioners.MinSizePartitioner(value))
    _refuses(lambda: partitioners.MaxSizePartitioner(value))
    for partitioner in (partitioners.FixedShardsPartitioner(2), partitioners.MinSizePartitioner()):
        _refuses(lambda partitioner=partitioner: partitioner((4, 2), "float32", value))  # type: ignore[misc]
        _refuses(lambda partitioner=partitioner: partitioner([value, 2], "float32"))  # type: ignore[misc]


@pytest.mark.parametrize("value", [[1], {}, {1}, 1.5, None, object()])
def test_tasks_have_names_and_numbers(value: Any) -> None:
    spec = wb.distribute.ClusterSpec({"worker": ["a:1"]})
    for ask in (spec.num_tasks, spec.task_indices, spec.job_tasks, lambda job: spec.task_address(job, 0)):
        _refuses(lambda ask=ask: ask(value))  # type: ignore[misc]
    _refuses(lambda: spec.task_address("worker", value))


@pytest.mark.parametrize("value", [None, 1, 1.5, object(), len])
def test_assertions_about_several_values_want_a_list(value: Any) -> None:
    _refuses(lambda: wb.debugging.assert_rank_in([1], value))
    _refuses(lambda: wb.debugging.assert_shapes(value))
    _refuses(lambda: wb.debugging.assert_shapes([value]))
    if value is not None:
        _refuses(lambda: wb.debugging.assert_same_float_dtype(value))
        _refuses(lambda: wb.debugging.assert_shapes([(np.ones(2), value)]))


@pytest.mark.parametrize("value", [None, "x", [1], {}, object(), 1.5])
def test_a_global_batch_has_a_number_of_rows(value: Any) -> None:
    _refuses(lambda: wb.distribute.InputContext(2, 0, 2).get_per_replica_batch_size(value))


@pytest.mark.parametrize("value", ["x", {}, object(), len, {1}])
def test_a_norm_is_a_number(value: Any) -> None:
    _refuses(lambda: wb.nn.embedding_lookup(np.ones((2, 2)), [0], max_norm=value))


@pytest.mark.parametrize("value", [[1], {"a": 1}, 1, "x", object(), len, np.array([1, 2])])
def test_options_of_collectives_are_communication_options(strategy: wb.MirroredStrategy, value: Any) -> None:
    def reduced() -> None:
        get_replica_context().all_reduce("SUM", np.ones(2), value)

    def gathered() -> None:
        get_replica_context().all_gather(np.ones(2), 0, value)

    for step in (reduced, gathered):
        if type(value) is not object:  # which cannot travel
            _refuses(lambda step=step: strategy.run(step))  # type: ignore[misc]
        _refuses(lambda step=step: get_strategy().run(step))  # type: ignore[misc]
    made = strategy.run(lambda: np.ones(2))
    _refuses(lambda: strategy.extended.reduce_to("SUM", made, made, value))
    _refuses(lambda: strategy.extended.batch_reduce_to("SUM", [(made, made)], value))
    _refuses(lambda: wb.distribute.RingAllReduce().reduce("SUM", made, made, value))
    _refuses(lambda: wb.distribute.RingAllReduce().batch_reduce("SUM", [(made, made)], value))


@pytest.mark.parametrize("value", [None, 1, "x", [1], {}, object()])
def test_functions_for_replicas_are_functions(strategy: wb.MirroredStrategy, value: Any) -> None:
    with strategy.scope():
        variable = wb.Variable(1.0)
    for each in (strategy, get_strategy()):
        _refuses(lambda each=each: each.extended.update_non_slot(variable, value))  # type: ignore[misc]
        _refuses(lambda each=each: each.experimental_distribute_values_from_function(value))  # type: ignore[misc]
        if type(value) is not object:  # which cannot travel
            _refuses(lambda each=each: each.run(lambda: get_replica_context().merge_call(value)))  # type: ignore[misc]
    _refuses(lambda: strategy.extended.update(variable, value))
    _refuses(lambda: get_strategy().extended.update(wb.Variable(1.0), value))


@pytest.mark.parametrize("value", [1, 1.5, "x", {}, len])
def test_arguments_of_other_functions_are_a_tuple(strategy: wb.MirroredStrategy, value: Any) -> None:
    with strategy.scope():
        variable = wb.Variable(1.0)
    for each in (strategy, get_strategy()):
        _refuses(lambda each=each: each.extended.update_non_slot(variable, lambda *_: 1, value))  # type: ignore[misc]
        _refuses(
            lambda each=each: each.run(lambda: get_replica_context().merge_call(lambda *_: 1, value))  # type: ignore[misc]
        )
    _refuses(lambda: strategy.extended.update(variable, lambda *_: 1, value))
    _refuses(lambda: strategy.extended.update(variable, lambda *_: 1, (), [value]))
    _refuses(lambda: strategy.extended.update(variable, lambda *_: 1, (), {1: value}))
    _refuses(lambda: strategy.run(lambda: get_replica_context().merge_call(lambda *_: 1, (), {1: value})))


@pytest.mark.parametrize("value", [None, 1, 1.5, object(), len])
def test_values_to_reduce_come_in_pairs(strategy: wb.MirroredStrategy, value: Any) -> None:
    for pairs in (value, [value], [(value,)]):
        _refuses(lambda pairs=pairs: strategy.extended.batch_reduce_to("SUM", pairs))  # type: ignore[misc]
        _refuses(lambda pairs=pairs: wb.distribute.RingAllReduce().batch_reduce("SUM", pairs))  # type: ignore[misc]


@pytest.mark.parametrize("value", [1, 1.5, object(), len])
def test_devices_of_an_update_have_names(strategy: wb.MirroredStrategy, value: Any) -> None:
    _refuses(lambda: strategy.extended.update_non_slot(value, lambda: 1))
    _refuses(lambda: strategy.extended.read_var(value))


@pytest.mark.parametrize("value", [None, 1, "x", [], {}, object(), [1], [None]])
def test_shards_are_variables_on_servers(value: Any) -> None:
    _refuses(lambda: wb.distribute.ShardedVariable(value))
    _refuses(lambda: wb.distribute.ShardedVariable([wb.Variable([1.0])]))


@pytest.mark.parametrize("value", [1, 1.5, [1], {"a": 1}, object(), len, b"x"])
def test_the_folder_of_journals_is_a_path(strategy: wb.MirroredStrategy, value: Any) -> None:
    _refuses(lambda: wb.distribute.ParameterServerStrategy(servers=1, journal_folder=value))


def _flags(variable: wb.Variable, strategy: wb.MirroredStrategy) -> dict[str, Callable[[Any], Any]]:
    """Arguments that are True or False, and others that could be taken for that, by what names them in errors."""
    options, service = wb.distribute.RunOptions, wb.data.experimental.service
    return {
        "trainable": lambda value: wb.Variable(1.0, trainable=value),
        "read_value": lambda value: variable.assign_add(1.0, read_value=value),
        "update: group": lambda value: strategy.extended.update(variable, lambda _: 1, group=value),
        "update_non_slot: group": lambda value: strategy.extended.update_non_slot(None, int, group=value),
        "dynamic_batch_size": lambda value: options(experimental_enable_dynamic_batch_size=value),
        "bucketizing": lambda value: options(experimental_bucketizing_dynamic_shape=value),
        "auto_set_gpu": lambda value: wb.distribute.cluster_resolver.SlurmClusterResolver(auto_set_gpu=value),
        "processes": lambda value: wb.connect(processes=value),
        "replace": lambda value: wb.connect(replace=value),
        "fetch_to_device": lambda value: wb.data.InputOptions(experimental_fetch_to_device=value),
        "prefetch_to_device": lambda value: wb.data.InputOptions(experimental_prefetch_to_device=value),
        "place_dataset": lambda value: wb.data.InputOptions(experimental_place_dataset_on_device=value),
        "input_process": lambda value: wb.data.InputOptions(input_process=value),
        "fault_tolerant_mode": lambda value: service.DispatcherConfig(fault_tolerant_mode=value),
        "difference": lambda value: wb.inspect(variable, difference=value),
        "exact": lambda value: wb.inspect(variable, exact=value),
        "allow_missing": lambda value: wb.io.FixedLenSequenceFeature([], np.int64, allow_missing=value),
        "open_run: internal": lambda value: wb.open_run("no.parquet", internal=value),
        "collectives: internal": lambda value: wb.collectives(strategy, internal=value),
        "inspect: replica": lambda value: wb.inspect(variable, elements=..., replica=value),
        "inspect: name": lambda value: wb.inspect(variable, name=value),
        "run: options": lambda value: strategy.run(int, options=value),
        "push": lambda value: wb.run_cell("1", strategy, push=value),
        "source": lambda value: wb.run_cell(value, strategy),
        "cache: filename": lambda value: _DATASET.cache(value),
        "window_size": lambda value: _DATASET.group_by_window(
            int, lambda _, x: x.batch(2), window_size=value
        ),
        "compression_type": lambda value: wb.data.TFRecordDataset("no", compression_type=value),
        "buffer_size": lambda value: wb.data.TFRecordDataset("no", buffer_size=value),
        "the folder of runs": wb.runs,
        "gpus": lambda value: wb.connect(gpus=value),
        "tpu": lambda value: wb.connect(tpu=value),
        "replicas must": lambda value: wb.connect(replicas=value, replace=True),
        "replicas_per_worker": lambda value: wb.connect(replicas_per_worker=value),
        "memory_limit": lambda value: wb.connect(memory_limit=value),
        "environment": lambda value: wb.connect(environment=value),
        "checkpoint": lambda value: wb.connect(checkpoint=value),
    }


def test_an_array_in_the_place_of_another_argument_is_named(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        variable = wb.Variable(1.0)
    for name, call in _flags(variable, strategy).items():
        for value in (np.ones(2), [np.ones(2)]):
            with pytest.raises(TypeError, match=name) as caught:
                call(value)
            assert isinstance(caught.value, WrongType), name
    assert float(variable) == 1.0


@pytest.mark.parametrize("value", [1, np.ones(2)])
def test_names_of_keyword_arguments_are_texts(strategy: wb.MirroredStrategy, value: Any) -> None:
    for run in (strategy.run, strategy.extended.call_for_each_replica, get_strategy().run):
        with pytest.raises(WrongType, match="the names in kwargs must be strings, got 1"):
            run(lambda **_: 1, kwargs={1: value})
