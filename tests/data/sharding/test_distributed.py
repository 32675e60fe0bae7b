"""What each host's replicas get in each step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.data import overtaking
from workbench.data import (
    AutoShardPolicy,
    Dataset,
    HostPipeline,
    InputContext,
    InputOptions,
    InputReplicationMode,
    Options,
    TensorSpec,
    TextLineDataset,
    distribute_for_host,
    distribute_function_for_host,
)
from workbench.data.sharding.distributed import lockstep
from workbench.data.tables import Failed
from workbench.device_names import Device
from workbench.distribute.input.plan import plan_input
from workbench.errors import InvalidArgumentError

PER_REPLICA = InputReplicationMode.PER_REPLICA


def with_policy(dataset: Dataset, policy: str) -> Dataset:
    options = Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy[policy]
    return dataset.with_options(options)


def hosts_of(dataset: Dataset, hosts: int, replicas: int) -> list[HostPipeline]:
    return [
        distribute_for_host(dataset, num_hosts=hosts, host=host, replicas_per_host=replicas)
        for host in range(hosts)
    ]


def steps(pipeline: HostPipeline, **kwargs: Any) -> list[list[Any]]:
    return [[value.tolist() for value in step.values] for step in pipeline.steps(**kwargs)]


def test_batches_are_cut_evenly_by_default_and_by_schedule_when_sharding_is_off() -> None:
    dataset = Dataset.range(9).batch(4)
    even = distribute_for_host(dataset, replicas_per_host=3)
    assert (even.algorithm, steps(even)) == (
        "even split",
        [[[0, 1], [2, 3], []], [[4, 5], [6, 7], []], [[8], [], []]],
    )
    schedule = distribute_for_host(with_policy(dataset, "OFF"), replicas_per_host=3)
    assert (schedule.algorithm, schedule.sizes) == ("schedule", (2, 1, 1))
    assert steps(schedule) == [[[0, 1], [2], [3]], [[4, 5], [6], [7]], [[8], [], []]]


def test_the_schedule_needs_a_detectable_batch_size() -> None:
    dataset = with_policy(Dataset.range(8).batch(4).map(lambda x: x), "OFF")
    assert distribute_for_host(dataset, replicas_per_host=3).algorithm == "even split"


def test_hosts_get_every_other_piece() -> None:
    got = [steps(p) for p in hosts_of(Dataset.range(8).batch(8), 2, 2)]
    assert got == [[[[0, 1], [4, 5]]], [[[2, 3], [6, 7]]]]


def test_one_replica_gets_the_dataset_as_it_is() -> None:
    pipeline = distribute_for_host(Dataset.range(2))
    assert pipeline.algorithm == "as given"
    assert [step.values for step in pipeline.steps()] == [[0], [1]]


def test_scalars_are_refused_with_advice() -> None:
    for policy in ("AUTO", "OFF"):
        with pytest.raises(InvalidArgumentError, match=r"dataset\.batch\(global_batch_size\)"):
            distribute_for_host(with_policy(Dataset.range(4), policy), replicas_per_host=2)


def test_an_element_that_turns_out_a_scalar_is_refused_when_it_comes() -> None:
    shapes = iter([np.zeros(4), np.float64(1)])
    dataset = Dataset.from_generator(lambda: shapes, output_signature=TensorSpec(None, np.float64))
    pipeline = distribute_for_host(dataset, replicas_per_host=2)
    iterator = pipeline.steps()
    next(iterator)
    with pytest.raises(InvalidArgumentError, match="batch the dataset first"):
        next(iterator)


@given(
    n=st.integers(0, 60),
    batch=st.integers(1, 12),
    hosts=st.integers(1, 3),
    replicas=st.integers(1, 4),
    policy=st.sampled_from(["AUTO", "DATA", "OFF"]),
    drop=st.booleans(),
    shuffled=st.booleans(),
)
def test_every_row_reaches_exactly_the_replicas_it_should(
    n: int, batch: int, hosts: int, replicas: int, policy: str, drop: bool, shuffled: bool
) -> None:
    dataset = with_policy(Dataset.range(n), policy)
    dataset = (dataset.shuffle(7, seed=n) if shuffled else dataset).batch(batch, drop_remainder=drop)
    whole = sorted(int(row) for b in dataset for row in b)
    groups = list(lockstep(hosts_of(dataset, hosts, replicas), epoch=0, provenance=True))
    reached = sorted(
        int(row) for group in groups for step in group for value in step.values for row in np.ravel(value)
    )
    copies = hosts if policy == "OFF" and hosts > 1 else 1
    assert reached == sorted(whole * copies)
    for group in groups:
        assert [len(step.values) for step in group] == [replicas] * hosts
        for step in group:
            for value, ids in zip(step.values, step.ids, strict=True):
                assert value.dtype == np.int64
                assert ids.tolist() == value.tolist()


def test_a_host_without_elements_learns_from_the_others_what_they_look_like(tmp_path: Path) -> None:
    def number(line: Any) -> Any:
        return np.float32(int(line))  # a made-up text is not a number

    (tmp_path / "0.txt").write_text("1\n2\n3\n4\n")
    (tmp_path / "1.txt").write_text("")
    files = Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)
    dataset = with_policy(files.flat_map(TextLineDataset).map(number).batch(2), "FILE")

    plan = plan_input(
        [Device("CPU", 0, host, host, task) for task, host in enumerate("ab")],
        lambda hosts, host, replicas: distribute_for_host(
            dataset, num_hosts=hosts, host=host, replicas_per_host=replicas
        ),
    )

    assert [pipeline.element_spec for pipeline in plan.pipelines] == [TensorSpec((None,), np.float32)] * 2
    first, *_ = lockstep(list(plan.pipelines))
    assert [[part.tolist() for part in step.values] for step in first] == [[[1.0]], [[]]]


def test_hosts_that_end_early_get_empty_batches_until_all_are_done() -> None:
    dataset = Dataset.from_tensor_slices(np.zeros((9, 2), np.float32)).batch(4)
    last = list(lockstep(hosts_of(dataset, 2, 1)))[-1]
    assert [step.values[0].shape for step in last] == [(1, 2), (0, 2)]

    def uneven(context: InputContext) -> Dataset:
        return Dataset.range(4 - context.input_pipeline_id * 2).batch(1)

    pipelines = [distribute_function_for_host(uneven, num_hosts=2, host=host) for host in range(2)]
    groups = [[step.values[0].tolist() for step in group] for group in lockstep(pipelines)]
    assert groups == [[[0], [0]], [[1], [1]], [[2], []], [[3], []]]
    assert pipelines[1].empty_step().values[0].dtype == np.int64


def test_missing_batches_have_zero_for_unknown_dimensions() -> None:
    rows = Dataset.range(1, 4).map(lambda x: np.ones((int(x), 3), np.float32)).padded_batch(1)
    pipeline = distribute_function_for_host(lambda context: rows, replicas_per_host=2)
    assert [value.shape for value in list(pipeline.steps())[-1].values] == [(1, 3, 3), (0, 0, 3)]


def test_an_incomplete_last_step_is_dropped_on_one_host_if_shapes_are_static() -> None:
    def of(batches: Dataset, **kwargs: Any) -> list[list[Any]]:
        return steps(distribute_function_for_host(lambda context: batches, replicas_per_host=2, **kwargs))

    assert of(Dataset.range(6).batch(2, True)) == [[[0, 1], [2, 3]]]
    assert of(Dataset.range(6).batch(2)) == [[[0, 1], [2, 3]], [[4, 5], []]]
    assert of(Dataset.range(3)) == [[0, 1]]
    assert of(Dataset.range(6).batch(2, True), num_hosts=2, host=0)[-1] == [[4, 5], []]


def test_sizes_that_only_one_element_shows_do_not_drop_an_incomplete_last_step() -> None:
    rows = {10: [1, 1], 11: [2, 2], 12: [3, 3]}  # a table refuses made-up values
    batches = Dataset.range(10, 13).map(lambda x: np.array(rows[int(x)], np.int32))
    found = steps(distribute_function_for_host(lambda context: batches, replicas_per_host=2))
    assert found == [[[1, 1], [2, 2]], [[3, 3], []]]


def test_batches_of_parsed_examples_are_static_without_a_look_at_them() -> None:
    features = {"x": wb.io.FixedLenFeature((2,), np.int64)}
    texts = Dataset.from_tensor_slices([b"damaged"] * 4)
    batches = texts.map(lambda text: wb.io.parse_single_example(text, features)["x"]).batch(2, True)
    assert distribute_for_host(batches, replicas_per_host=2).pad_last is False
    assert batches.element_spec == TensorSpec((2, 2), np.int64)


def test_endless_datasets_never_give_empty_batches() -> None:
    pipeline = distribute_for_host(Dataset.range(3).repeat().batch(4), replicas_per_host=2)
    iterator = pipeline.steps()
    got = [[v.tolist() for v in next(iterator).values] for _ in range(3)]
    assert got == [[[0, 1], [2, 0]], [[1, 2], [0, 1]], [[2, 0], [1, 2]]]


def test_a_function_is_told_its_place_once_per_host_or_replica() -> None:
    seen: list[InputContext] = []

    def make(context: InputContext) -> Dataset:
        seen.append(context)
        return Dataset.range(8).batch(context.get_per_replica_batch_size(8))

    distribute_function_for_host(make, num_hosts=2, host=1, replicas_per_host=2)
    assert seen == [InputContext(2, 1, 4)]
    seen.clear()
    pipeline = distribute_function_for_host(
        make, replicas_per_host=2, options=InputOptions(experimental_replication_mode=PER_REPLICA)
    )
    assert seen == [InputContext(2, 0, 2), InputContext(2, 1, 2)]
    assert steps(pipeline) == [[[0, 1, 2, 3]] * 2, [[4, 5, 6, 7]] * 2]
    with pytest.raises(TypeError, match="int"):
        distribute_function_for_host(lambda context: 3)  # type: ignore[arg-type, return-value]


def test_per_replica_pipelines_of_different_length_are_padded_or_cut() -> None:
    options = InputOptions(experimental_replication_mode=PER_REPLICA)

    def make(static: bool) -> Any:
        return lambda context: Dataset.range(4 - 2 * context.input_pipeline_id).batch(2, static)

    padded = distribute_function_for_host(make(False), replicas_per_host=2, options=options)
    assert steps(padded) == [[[0, 1], [0, 1]], [[2, 3], []]]
    cut = distribute_function_for_host(make(True), replicas_per_host=2, options=options)
    assert steps(cut) == [[[0, 1], [0, 1]]]


@pytest.mark.parametrize("name", ["experimental_fetch_to_device", "experimental_prefetch_to_device"])
def test_options_have_the_names_of_all_releases(name: str) -> None:
    assert InputOptions().experimental_fetch_to_device is True
    options = InputOptions(
        **{name: False},  # type: ignore[arg-type]
        experimental_replication_mode=PER_REPLICA,
        experimental_place_dataset_on_device=True,
        experimental_per_replica_buffer_size=2,
    )
    assert options.experimental_fetch_to_device is options.experimental_prefetch_to_device is False
    assert steps(distribute_function_for_host(lambda c: Dataset.range(1).batch(1), options=options)) == [
        [[0]]
    ]


def test_contradicting_input_options_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="distribute_datasets_from_function"):
        distribute_for_host(
            Dataset.range(4).batch(2), options=InputOptions(experimental_replication_mode=PER_REPLICA)
        )
    with pytest.raises(InvalidArgumentError, match="PER_REPLICA"):
        distribute_function_for_host(
            lambda context: Dataset.range(3), options=InputOptions(experimental_place_dataset_on_device=True)
        )
    with pytest.raises(InvalidArgumentError, match="two names of one option"):
        InputOptions(experimental_fetch_to_device=True, experimental_prefetch_to_device=False)
    with pytest.raises(InvalidArgumentError, match="at least 1, got 0"):
        InputOptions(experimental_per_replica_buffer_size=0)
    with pytest.raises(ValueError, match="use 4 or 6"):
        InputContext(1, 0, 2).get_per_replica_batch_size(5)


def test_pipelines_travel_as_descriptions_and_shuffle_alike_on_every_host() -> None:
    dataset = Dataset.range(40).shuffle(40).batch(8)
    sent = [cloudpickle.loads(cloudpickle.dumps(pipeline)) for pipeline in hosts_of(dataset, 2, 2)]
    for epoch in range(2):
        rows = [
            row
            for p in sent
            for step in p.steps(epoch=epoch)
            for value in step.values
            for row in value.tolist()
        ]
        assert sorted(rows) == list(range(40))
    assert steps(sent[0], epoch=0) != steps(sent[0], epoch=1)
    assert steps(sent[0], epoch=1) == steps(sent[0], epoch=1)


def test_only_the_pieces_of_a_host_are_gathered() -> None:
    """Sharding by DATA is index arithmetic: the other hosts' rows are not read."""

    class Counting(np.ndarray):
        taken = 0

        def take(self, *args: Any, **kwargs: Any) -> Any:
            Counting.taken += len(args[0])
            return super().take(*args, **kwargs)

    dataset = Dataset.from_tensor_slices(np.zeros((64, 2))).shuffle(64).batch(16)
    table = dataset.source.table  # type: ignore[attr-defined]
    table.columns = tuple(column.view(Counting) for column in table.columns)
    for _ in hosts_of(dataset, 4, 1)[0].steps():
        pass
    assert Counting.taken == 16


def test_prefetch_asks_for_reading_ahead() -> None:
    assert distribute_for_host(Dataset.range(8).batch(4).prefetch(5), replicas_per_host=2).read_ahead == 5
    assert distribute_for_host(Dataset.range(8).batch(4), replicas_per_host=2).read_ahead == 2


def test_values_for_some_replicas_are_those_of_the_steps() -> None:
    dataset = Dataset.range(23).shuffle(9, seed=1).batch(5)
    pipeline = distribute_for_host(dataset, replicas_per_host=3)
    some = [[value.tolist() for value in values] for values in pipeline.values_for([2, 0], epoch=1)]
    assert some == [[step[2], step[0]] for step in steps(pipeline, epoch=1)]


def test_placements_agree_with_the_steps() -> None:
    dataset = Dataset.range(23).shuffle(9, seed=1).map(lambda x: x).batch(5)
    pipeline = distribute_for_host(dataset, replicas_per_host=3)
    placed = [[p.ids.tolist() for p in step] for step in pipeline.placements(epoch=1)]
    assert placed == steps(pipeline, epoch=1)


def _of_varying_length(times: int) -> Dataset:
    """Six elements of each length: first some of length 1, then as many of length 2, and so on."""
    return Dataset.from_generator(
        lambda: (np.zeros(number // times + 1) for number in range(6)),
        output_signature=TensorSpec((None,), np.float64),
    )


@pytest.mark.parametrize("algorithm", ["schedule", "even split"])
@pytest.mark.parametrize("replicas", [2, 3, 5])
def test_unknown_dimensions_of_a_part_without_rows(replicas: int, algorithm: str) -> None:
    """As in TensorFlow: 0 where the schedule has no part, those of the batch where that is cut."""
    data = _of_varying_length(2).batch(2)
    data = with_policy(data, "OFF" if algorithm == "schedule" else "DATA")
    pipeline = distribute_for_host(data, replicas_per_host=replicas)
    assert pipeline.algorithm == algorithm
    nothing = [0] * 3 if algorithm == "schedule" else [1, 2, 3]
    wanted = [
        [(1, step + 1) if replica < 2 else (0, nothing[step]) for replica in range(replicas)]
        for step in range(3)
    ]
    assert [[part.shape for part in step] for step in pipeline.values_for(range(replicas))] == wanted
    assert [[part.shape for part in step.values] for step in pipeline.steps()] == wanted


def test_unknown_dimensions_are_zero_where_the_last_step_is_not_full() -> None:
    data = with_policy(_of_varying_length(6).take(3).batch(2), "OFF")
    pipeline = distribute_for_host(data, replicas_per_host=2)
    shapes = [[part.shape for part in step] for step in pipeline.values_for(range(2))]
    assert shapes == [[(1, 1), (1, 1)], [(1, 1), (0, 0)]]
    assert [[part.shape for part in step.values] for step in pipeline.steps()] == shapes


def test_replicas_get_the_same_order_again_where_functions_may_change_it() -> None:
    numbers = Dataset.range(40).map(overtaking.made, num_parallel_calls=2, deterministic=False).batch(4)
    pipeline = distribute_for_host(numbers, replicas_per_host=2)

    orders = []
    overtaking.SECOND_MADE.clear()
    for _ in range(2):  # element 0 is late in the first epoch only
        steps = [step for step in pipeline.values_for([0, 1]) if not isinstance(step, Failed)]
        orders.append([int(number) for step in steps for half in step for number in half])
    assert orders == 2 * [list(range(40))]
