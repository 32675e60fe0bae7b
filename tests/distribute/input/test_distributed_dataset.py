"""Distributed datasets: who gets what, read how often, and what happens at the end and after errors."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.data import Dataset, InputOptions
from workbench.distribute import get_replica_context
from workbench.errors import CaptureError, FailedPreconditionError, OutOfRangeError
from workbench.telemetry.told import EpochFacts


def _rows(strategy: Any, dataset: Any) -> list[list[list[int]]]:
    return [[part.tolist() for part in strategy.local_results(step)] for step in dataset]


def test_every_row_arrives_once_whoever_reads(strategy: Any) -> None:
    plain = Dataset.range(103).shuffle(50, seed=3).batch(8)
    pure = _rows(strategy, strategy.distribute_dataset(plain))
    mapped = _rows(strategy, strategy.distribute_dataset(plain.map(lambda x: x)))
    assert sorted(x for step in pure for part in step for x in part) == list(range(103))
    assert [[sorted(part) for part in step] for step in pure] == [
        [sorted(part) for part in step] for step in mapped
    ]
    assert len(pure) == 13


def test_structures_texts_and_large_arrays_arrive(strategy: Any) -> None:
    images = np.arange(12 * 3000, dtype=np.float32).reshape(12, 3000)
    names = np.array([b"n%d" % k for k in range(12)], object)
    for keep in (lambda d: d, lambda d: d.map(lambda e: e)):
        data = keep(Dataset.from_tensor_slices({"image": images, "name": names})).batch(4)
        steps = list(strategy.distribute_dataset(data))
        np.testing.assert_array_equal(strategy.gather(steps[1]["image"], 0), images[4:8])
        assert strategy.gather(steps[2]["name"], 0).tolist() == [b"n8", b"n9", b"n10", b"n11"]


def _large_only(x: Any) -> Any:
    if x.ndim == 0 and x < 1000:
        raise ValueError("made up")
    return 2.0 * x


def test_without_elements_functions_may_refuse_made_up_ones(strategy: Any, tmp_path: Path) -> None:
    """As in the reference, which never calls them."""
    there = tmp_path / "there"
    data = Dataset.range(1000, 1010).filter(lambda x: there.exists()).map(_large_only).batch(4)
    distributed = strategy.distribute_dataset(data)

    assert list(distributed) == []
    assert list(distributed) == []
    with pytest.raises(OutOfRangeError, match="the dataset has none"):
        _ = distributed.element_spec

    there.touch()
    with pytest.raises(FailedPreconditionError, match="distribute it again"):
        list(distributed)
    assert _rows(strategy, strategy.distribute_dataset(data))[0] == [[2000, 2002], [2004, 2006]]


def test_a_batch_belongs_to_its_replica(strategy: Any) -> None:
    images = np.ones((8, 2000), np.float32)

    def overwrite(x: Any) -> float:
        if x.flags.writeable:
            x += get_replica_context().replica_id_in_sync_group + 1
        return float(x[0, 0])

    data = Dataset.from_tensor_slices(images).map(lambda x: x * 1).batch(4)
    for step in strategy.distribute_dataset(data):
        assert strategy.run(overwrite, args=(step,)).values == (2, 3)


def test_map_functions_run_once_per_host(strategy: Any, tmp_path: Path) -> None:
    def noted(x: Any) -> Any:
        with open(tmp_path / "log", "a") as file:
            file.write(f"{int(x)}\n")
        return x

    data = Dataset.range(10).map(noted).batch(4)
    distributed = strategy.distribute_dataset(data)
    (tmp_path / "log").unlink()  # finding the element spec has tried the function in the notebook
    assert len(_rows(strategy, distributed)) == 3
    assert sorted(map(int, (tmp_path / "log").read_text().split())) == list(range(10))


def test_only_handles_come_to_the_notebook(strategy: Any) -> None:
    data = Dataset.from_tensor_slices(np.ones((8, 5000), np.float32)).batch(4)
    for step in strategy.distribute_dataset(data):
        assert step.handle.specs() == [("float32", (2, 5000))] * 2
        if strategy.group.gang.shipping.codec.by_reference is False:
            assert not any(step.handle.is_here(rank) for rank in range(2))


def test_every_iteration_is_a_new_epoch(strategy: Any) -> None:
    distributed = strategy.distribute_dataset(Dataset.range(64).shuffle(64, seed=1).batch(16))
    first, second = _rows(strategy, distributed), _rows(strategy, distributed)
    assert first != second
    again = strategy.distribute_dataset(Dataset.range(64).shuffle(64, seed=1).batch(16))
    assert _rows(strategy, again) == first


def test_iterators_do_not_disturb_each_other(strategy: Any) -> None:
    distributed = strategy.distribute_dataset(Dataset.range(12).batch(4))
    one, two = iter(distributed), iter(distributed)
    assert _rows(strategy, [next(one), next(two), next(one)]) == [
        [[0, 1], [2, 3]],
        [[0, 1], [2, 3]],
        [[4, 5], [6, 7]],
    ]


def test_the_end_is_told_in_each_way_and_again(strategy: Any) -> None:
    iterator = iter(strategy.distribute_dataset(Dataset.range(3).batch(2)))
    assert _rows(strategy, [iterator.get_next(), iterator.get_next_as_optional().get_value()]) == [
        [[0], [1]],
        [[2], []],
    ]
    for _ in range(2):
        assert not iterator.get_next_as_optional().has_value()
        with pytest.raises(OutOfRangeError):
            iterator.get_next()
        with pytest.raises(StopIteration):
            next(iterator)


@pytest.mark.parametrize("bad", range(5))
def test_an_error_comes_after_the_elements_before_it(strategy: Any, bad: int) -> None:
    def picky(x: Any) -> Any:
        if x == 2 * bad + 1:
            raise LookupError(f"element {x}")
        return x

    steps = iter(strategy.distribute_dataset(Dataset.range(20).map(picky).batch(2)))
    seen = [strategy.run(lambda x: x, args=(next(steps),)) for _ in range(bad)]
    with pytest.raises(LookupError, match=f"element {2 * bad + 1}"):
        next(steps)
    seen += [strategy.run(lambda x: x, args=(step,)) for step in steps]  # the error comes once, then the rest
    assert [strategy.gather(step, 0).tolist() for step in seen] == [
        [2 * k, 2 * k + 1] for k in range(10) if k != bad
    ]
    assert strategy.run(lambda: 1).values == (1, 1)


def test_reading_goes_on_after_a_failed_step(strategy: Any) -> None:
    for keep in (lambda d: d, lambda d: d.map(lambda e: e)):
        seen = []
        for step in strategy.distribute_dataset(keep(Dataset.range(40)).batch(4)):
            with pytest.raises(KeyError):
                strategy.run(lambda x: {}[0], args=(step,))
            seen += strategy.gather(step, 0).tolist()
        assert seen == list(range(40))


def test_an_iterator_outlives_the_failure_of_a_pipelined_step(strategy: Any) -> None:
    @wb.function
    def step(x: Any, number: int) -> Any:
        if number == 5:
            raise KeyError("five")
        return x

    elements = iter(strategy.distribute_dataset(Dataset.range(80).batch(4)))
    seen, failures = [], 0
    while True:
        try:
            element = next(elements)
        except StopIteration:
            break
        except KeyError:
            failures += 1
            continue
        with contextlib.suppress(KeyError):
            strategy.run(step, args=(element, len(seen)))
        seen.append(element)
    assert [strategy.gather(element, 0).tolist() for element in seen] == np.arange(80).reshape(20, 4).tolist()
    assert failures <= 1  # the step's own error; the rest continues


def test_datasets_and_iterators_stay_in_the_notebook(strategy: Any) -> None:
    distributed = strategy.distribute_dataset(Dataset.range(4).batch(2))
    for kept in (distributed, iter(distributed)):
        with pytest.raises(CaptureError, match="args="):
            pickle.dumps(kept)


def test_what_cannot_be_distributed_is_refused_at_once(strategy: Any) -> None:
    with pytest.raises(ValueError, match="batch"):
        strategy.distribute_dataset(Dataset.range(4))
    with pytest.raises(TypeError, match="from_tensor_slices"):
        strategy.distribute_dataset(np.arange(4))
    with pytest.raises(TypeError, match="must return a Dataset"):
        strategy.distribute_datasets_from_function(lambda context: 3)


@pytest.mark.parametrize("processes", [False, True])
def test_each_host_reads_its_own_part(processes: bool, tmp_path: Path) -> None:
    with wb.connect(hosts=2, replicas_per_host=2, processes=processes):
        strategy = wb.MultiWorkerMirroredStrategy()

        def noted(x: Any) -> Any:
            (tmp_path / f"{int(x)}-{os.getpid()}").touch()
            return x * 10

        def make(context: Any) -> Any:
            assert context.num_input_pipelines == 2
            shard = Dataset.range(7).shard(2, context.input_pipeline_id)
            return shard.map(noted).batch(context.get_per_replica_batch_size(4))

        steps = _rows(strategy, strategy.distribute_datasets_from_function(make))
        assert steps == [[[0], [20], [10], [30]], [[40], [60], [50], []]]
        calls = [
            path.name
            for path in tmp_path.iterdir()
            if not processes or not path.name.endswith(f"-{os.getpid()}")
        ]
        assert len(calls) == 7
        split = strategy.distribute_dataset(Dataset.range(9).batch(8))
        assert sorted(x for step in _rows(strategy, split) for part in step for x in part) == list(range(9))


@pytest.fixture
def forgetting(threads: Any) -> Any:
    """The table of what this process has opened."""
    from workbench.distribute.input import programs

    return programs._opened


def test_replicas_forget_datasets_that_are_gone(local: Any, forgetting: Any) -> None:
    distributed = local.distribute_dataset(Dataset.range(8).batch(2))
    name = distributed.input.id
    iterator = iter(distributed)
    next(iterator)
    assert len(forgetting[name].readers) == 1
    del iterator
    list(distributed)
    list(distributed)
    assert len(forgetting[name].readers) <= 1
    del distributed
    list(local.distribute_dataset(Dataset.range(8).batch(2)))
    assert name not in forgetting


def test_a_stage_whose_function_cannot_travel_names_what_it_captures(strategy: Any) -> None:
    lock = threading.Lock()
    data = Dataset.range(8).map(lambda x: (lock, x)[1]).batch(4)
    if strategy.group.gang.shipping.codec.by_reference:
        assert len(list(strategy.distribute_dataset(data))) == 2
        return
    with pytest.raises(CaptureError, match="it captures 'lock'"):
        strategy.distribute_dataset(data)


def test_the_traceback_of_a_failing_stage_begins_in_the_users_function(strategy: Any) -> None:
    def fails(x: Any) -> Any:
        return [0][int(x)]

    with pytest.raises(IndexError) as caught:
        list(strategy.distribute_dataset(Dataset.range(8).map(fails).batch(4)))

    _, _, told = str(caught.value).partition("\n\n")
    assert told.count('File "') == 1
    assert "in fails\n    return [0][int(x)]" in told
    assert "in stage map(fails) of a dataset, at element 1" in caught.value.__notes__


def test_progress_tells_at_which_step_each_replica_is(strategy: Any) -> None:
    distributed = strategy.distribute_dataset(Dataset.range(24).batch(4))
    assert distributed.progress is None

    for number, batch in enumerate(distributed):
        before = distributed.progress
        assert before is not None
        assert before.given == number + 1
        assert set(before.steps) == {number - 1}  # its step is yet to come
        strategy.run(lambda rows: rows.sum(), args=(batch,))
        after = distributed.progress
        assert after is not None
        assert set(after.steps) == {number}
    last = distributed.progress
    assert last is not None
    assert (last.epoch, last.given, len(last.steps)) == (0, 6, strategy.num_replicas_in_sync)
    next(iter(distributed))
    again = distributed.progress
    assert again is not None
    assert (again.epoch, again.given, set(again.steps)) == (1, 1, {-1})


def test_progress_of_a_resumed_epoch_begins_at_its_position(strategy: Any) -> None:
    distributed = strategy.distribute_dataset(Dataset.range(24).batch(4))
    first = iter(distributed)
    for _ in range(3):
        next(first)
    position = first.position()

    resumed = iter(distributed)
    resumed.go_to(position)
    progress = distributed.progress
    assert (progress.given, set(progress.steps), progress.sampled.steps) == (3, {2}, ())
    for number, batch in enumerate(resumed, 3):
        strategy.run(lambda rows: rows.sum(), args=(batch,))
        progress = distributed.progress
        assert (progress.given, set(progress.steps)) == (number + 1, {number})
        assert len(progress.sampled.steps) == number - 2


def test_the_cluster_knows_how_far_the_newest_loop_is(strategy: Any) -> None:
    distributed = strategy.distribute_dataset(Dataset.range(24).batch(4))
    iterator = iter(distributed)
    assert strategy.group.epoch() == EpochFacts(0, 0, 6)
    for _ in range(4):
        next(iterator)
    assert strategy.group.epoch() == EpochFacts(0, 4, 6)

    resumed = iter(distributed)
    resumed.go_to(iterator.position())
    assert strategy.group.epoch() == EpochFacts(0, 4, 6)

    for _ in strategy.distribute_dataset(Dataset.range(24).filter(lambda x: x < 8).batch(4)):
        pass
    assert strategy.group.epoch() == EpochFacts(0, 2, -1)  # how many are left was unknown


def test_progress_counts_an_element_that_failed(strategy: Any) -> None:
    def refuse_six(x: Any) -> Any:
        if x == 6:
            raise ValueError("made up")
        return x

    distributed = strategy.distribute_dataset(Dataset.range(16).map(refuse_six).batch(4))
    batches = iter(distributed)
    numbers = []
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            break
        except ValueError:
            continue
        strategy.run(lambda rows: rows.sum(), args=(batch,))
        numbers.append((distributed.progress.given, *set(distributed.progress.steps)))

    assert numbers == [(1, 0), (3, 2), (4, 3), (5, 4)]
    steps = distributed.progress.sampled.steps
    assert len(steps) == 5
    assert list(steps) == sorted(steps)


def test_a_replica_that_is_slow_is_at_an_earlier_step(strategy: Any, tmp_path: Path) -> None:
    if strategy.group.gang.shipping.codec.by_reference:
        pytest.skip("replicas of one worker report together")
    go_on = tmp_path / "go on"

    @wb.function
    def step(rows: Any, wait: bool) -> Any:
        ends = time.monotonic() + 60
        while wait and get_replica_context().replica_id_in_sync_group == 1 and not go_on.exists():
            if time.monotonic() > ends:
                raise TimeoutError("nobody lets replica 1 go on")
        return rows.sum()

    distributed = strategy.distribute_dataset(Dataset.range(40).batch(4))
    batches = iter(distributed)
    for number in range(3):
        strategy.run(step, args=(next(batches), number == 1))
    ends = time.monotonic() + 60
    while distributed.progress.steps[0] < 2 and time.monotonic() < ends:
        strategy.group.gang.receive_some()
    found = distributed.progress
    go_on.touch()
    strategy.group.wait()

    assert found.steps[:2] == (2, 1)
    assert distributed.progress.steps[:2] == (2, 2)


@pytest.mark.parametrize("mapped", [False, True])
def test_each_replica_tells_how_long_it_waited_for_input(strategy: Any, mapped: bool) -> None:
    data = Dataset.range(24).batch(4)
    distributed = strategy.distribute_dataset(data.map(lambda x: x) if mapped else data)
    waited = [distributed.progress.waited_seconds for _ in distributed]

    assert min(waited[0]) > 0
    assert all(before <= after for before, after in zip(waited[0], waited[-1], strict=True))
    shares = [distributed.progress.waited_share(rank) for rank in range(len(waited[0]))]
    assert all(0 < share <= 1 for share in shares)
    waits = distributed.progress.waits
    assert [wait.first for wait in waits] == list(
        itertools.accumulate([0, *(wait.count for wait in waits[:-1])])
    )
    assert sum(wait.count for wait in waits) == 6
    assert all(wait.passed_us > 0 for wait in waits)
    for rank, seconds in enumerate(distributed.progress.waited_seconds):
        # The last fetch, which found no more, waited for no element. Each time is truncated to whole microseconds.
        assert 0 < sum(wait.waited_us[rank] for wait in waits) <= 1e6 * seconds


def test_a_distributed_dataset_knows_its_number_of_steps(strategy: Any) -> None:
    rows = Dataset.range(32).batch(8)
    assert strategy.distribute_dataset(rows).cardinality == 4
    assert strategy.distribute_dataset(rows.repeat()).cardinality == -1
    assert strategy.distribute_dataset(rows.unbatch().filter(lambda x: True).batch(2)).cardinality == -2
    made = strategy.distribute_datasets_from_function(lambda context: Dataset.range(28).batch(4))
    assert made.cardinality == len(list(made))


@pytest.mark.parametrize("policy", [wb.data.AutoShardPolicy.OFF, wb.data.AutoShardPolicy.DATA])
@pytest.mark.parametrize(
    ("dataset", "by_schedule"),
    [
        (Dataset.range(10).batch(4), 3),
        (Dataset.range(10).batch(4).shuffle(3, seed=1).map(lambda x: x).repeat(1).prefetch(2), 3),
        (Dataset.range(8).batch(4, drop_remainder=True).repeat(3), 6),
        (Dataset.range(10).repeat(2).batch(4), 5),
        (Dataset.range(2).batch(4).repeat(2), -2),  # one step of four rows
        (Dataset.range(2).batch(4).concatenate(Dataset.range(2).batch(4)), -2),
        (Dataset.range(2).batch(4).repeat(2).prefetch(1).take(3), -2),
    ],
)
def test_the_number_of_steps_is_never_a_wrong_one(
    strategy: Any, dataset: Any, by_schedule: int, policy: Any
) -> None:
    options = wb.data.Options()
    options.experimental_distribute.auto_shard_policy = policy
    distributed = strategy.distribute_dataset(dataset.with_options(options))
    steps = len(list(distributed))
    if policy is wb.data.AutoShardPolicy.OFF:
        assert distributed.cardinality == by_schedule
        assert by_schedule in (-2, steps)
    else:
        assert distributed.cardinality == steps


def test_replicas_cannot_ask_an_iterator(local: Any) -> None:
    iterator = iter(local.distribute_dataset(Dataset.range(4).batch(2)))
    for ask in (lambda: next(iterator), iterator.get_next, iterator.get_next_as_optional):
        with pytest.raises(ValueError, match="inside a replica function"):
            local.run(ask)
    assert _rows(local, [next(iterator)]) == [[[0], [1]]]


def test_threads_of_the_notebook_have_no_input_process(local: Any) -> None:
    data = Dataset.range(8).batch(4).map(lambda x: x * 0 + os.getpid())
    dataset = local.distribute_dataset(data)

    assert dataset.read_by == "read by first replicas"
    assert {int(pid) for batch in dataset for pid in local.gather(batch, 0)} == {os.getpid()}
    with pytest.raises(ValueError, match=r"wb\.connect\(processes=True\)"):
        local.distribute_dataset(data, InputOptions(input_process=True))
