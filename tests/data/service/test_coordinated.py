"""Coordinated reads: in each round all consumers get an element of the same worker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.data.service.servers import PATIENCE_SECONDS, Processes, service
from tests.until import until
from workbench.data.service.consumer.rounds import Rounds
from workbench.data.service.consumer.turns import Block, Worker
from workbench.data.service.lanes.round_shelf import RoundShelf
from workbench.data.service.lanes.shelf import Request
from workbench.data.structure import LEAF
from workbench.data.tables import RangeTable, Run
from workbench.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError

Dataset = wb.data.Dataset


def rounds_of(count: int) -> wb.data.Dataset:
    """Elements `(worker's stream, round, place)`, `count` in a row of each round, without end."""
    return Dataset.counter().map(lambda x: np.array([x // count, x % count]))


def consumer(target: str, index: int, count: int, **options: Any) -> Iterator[Any]:
    mode = options.pop("mode", "parallel_epochs")
    name = options.pop("job_name", "training")
    distributed = wb.data.service.distribute(
        mode, target, name, consumer_index=index, num_consumers=count, **options
    )
    return iter(rounds_of(count).apply(distributed))


def read(consumers: list[Iterator[Any]], rounds: int) -> list[list[list[int]]]:
    """What each consumer gets in each round; all read at the same time, as those of a training do."""
    found: list[list[list[int]]] = [[] for _ in consumers]

    def loop(iterator: Iterator[Any], into: list[list[int]]) -> None:
        into += [next(iterator).tolist() for _ in range(rounds)]

    threads = [threading.Thread(target=loop, args=pair) for pair in zip(consumers, found, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert not any(thread.is_alive() for thread in threads), "hang"
    return found


@pytest.mark.parametrize(("workers", "count"), [(1, 1), (1, 3), (3, 1), (3, 2), (2, 5)])
def test_all_consumers_get_the_same_round_of_the_same_worker_and_workers_take_turns(
    workers: int, count: int
) -> None:
    with service(workers) as target:
        found = read([consumer(target, index, count) for index in range(count)], 24)

    for index in range(count):
        assert found[index] == [[nth // workers, index] for nth in range(24)]


def test_a_consumer_that_prefetches_keeps_the_order() -> None:
    with service(3) as target:
        found = read([consumer(target, 0, 1, max_outstanding_requests=n) for n in [1]], 30)
        more = read([consumer(target, 0, 1, max_outstanding_requests=50, job_name="wide")], 30)

    assert found == more == [[[nth // 3, 0] for nth in range(30)]]


def test_a_dealt_source_is_read_in_rounds_too() -> None:
    with service(2) as target:
        found = read([consumer(target, index, 2, mode="distributed_epoch") for index in range(2)], 600)

    # A lane has splits of 1,024 elements, so consecutive elements belong together.
    for one, two in zip(*found, strict=True):
        assert (one[0], one[1], two[1]) == (two[0], 0, 1)


def test_a_slow_consumer_keeps_the_others_from_running_far_ahead_and_loses_nothing() -> None:
    with service(1) as target:
        fast, slow = (consumer(target, index, 2, max_outstanding_requests=1) for index in range(2))
        got: list[list[int]] = []

        def run() -> None:
            for _ in range(100):
                got.append(next(fast).tolist())  # noqa: PERF401 - the other thread looks at its length

        running = threading.Thread(target=run)
        running.start()
        first: list[list[int]] = []
        for nth in range(100):
            assert len(got) <= nth + 12
            first.append(next(slow).tolist())
        running.join(PATIENCE_SECONDS)

        assert first == [[nth, 1] for nth in range(100)]
        assert got == [[nth, 0] for nth in range(100)]


def test_the_rounds_go_on_although_a_worker_is_killed(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    try:
        processes.start_dispatcher()
        for _ in range(3):
            processes.start_worker()
        consumers = [consumer(processes.target, index, 2) for index in range(2)]
        before = read(consumers, 20)
        processes.kill(processes.workers[1])
        after = read(consumers, 40)
        del consumers
    finally:
        processes.close()

    for index in range(2):
        assert before[index] + after[index] == [[nth // 3, index] for nth in range(60)]


def test_the_rounds_go_on_although_the_dispatcher_is_killed_and_started_again(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    try:
        processes.start_dispatcher()
        processes.start_worker()
        processes.start_worker()
        consumers = [consumer(processes.target, index, 2) for index in range(2)]
        before = read(consumers, 11)
        processes.kill(processes.dispatcher)
        processes.start_dispatcher()
        after = read(consumers, 30)
        del consumers
    finally:
        processes.close()

    for index in range(2):
        assert before[index] + after[index] == [[nth // 2, index] for nth in range(41)]


def test_a_consumer_that_is_started_again_goes_on_in_its_round() -> None:
    with service(2) as target:
        one, two = (consumer(target, index, 2) for index in range(2))
        read([one, two], 7)
        del two
        found = read([one, consumer(target, 1, 2)], 7)

    for index in range(2):
        assert found[index] == [[nth // 2, index] for nth in range(7, 14)]


def test_two_consumers_with_one_index_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.data.service.dispatch.coordinator._SEAT_SECONDS", 0.1)
    with service(1) as target:
        first = consumer(target, 0, 1)
        next(first)

        with pytest.raises(FailedPreconditionError, match="as consumer_index 0 of 1; give each"):
            next(consumer(target, 0, 1))
        assert next(first).tolist() == [1, 0]


def test_a_consumer_without_the_others_says_whom_it_waits_for() -> None:
    with service(1) as target:
        alone = consumer(target, 1, 3, timeout_seconds=0.3)

        with pytest.raises(UnavailableError, match=r"nobody reads as consumer_index 0, 2 of 3; start it"):
            next(alone)


def test_batches_of_one_bucket_come_to_all_consumers_in_each_round() -> None:
    lengths = np.random.default_rng(0).integers(1, 60, 500)
    dataset = (
        Dataset.from_tensor_slices(lengths)
        .repeat()
        .map(lambda n: np.arange(n), deterministic=True)
        .bucket_by_sequence_length(len, [20, 40], [4, 4, 4], drop_remainder=True)
        .group_by_window(
            lambda x: np.int64(x.shape[1] // 20), lambda key, window: window.batch(1), window_size=2
        )
        .unbatch()
    )
    with service(2) as target:
        both = [
            iter(
                dataset.apply(
                    wb.data.service.distribute(
                        "parallel_epochs", target, "bucketed", consumer_index=index, num_consumers=2
                    )
                )
            )
            for index in range(2)
        ]
        found: list[list[int]] = [[], []]

        def loop(index: int) -> None:
            for _ in range(20):
                found[index].append(next(both[index]).shape[1] // 20)

        threads = [threading.Thread(target=loop, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)

    assert len(found[0]) == 20
    assert found[0] == found[1]
    assert len(set(found[0])) > 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"consumer_index": 0}, "coordinated reads need both"),
        ({"num_consumers": 2}, "coordinated reads need both"),
        ({"consumer_index": 2, "num_consumers": 2}, r"from 0 to num_consumers - 1"),
        (
            {"consumer_index": -1, "num_consumers": 2},
            "consumer_index must be an integer of at least 0, got -1",
        ),
        ({"consumer_index": 0.5, "num_consumers": 2}, "consumer_index must be an integer .*, got 0.5"),
        ({"consumer_index": 0, "num_consumers": 0}, "num_consumers must be an integer of at least 1, got 0"),
        ({"consumer_index": 0, "num_consumers": 1.5}, "num_consumers must be an integer .*, got 1.5"),
        ({"consumer_index": 0, "num_consumers": 2, "job_name": None}, "they need its name"),
        ({"consumer_index": 0, "num_consumers": 2, "target_workers": "LOCAL"}, "cannot be 'LOCAL'"),
    ],
)
def test_arguments_that_do_not_go_together_fail_at_once(options: dict[str, Any], message: str) -> None:
    given = {"job_name": "a"} | options
    with pytest.raises(InvalidArgumentError, match=message):
        wb.data.service.distribute("parallel_epochs", "grpc://localhost:1", **given)  # type: ignore[arg-type]


def test_a_dataset_with_an_end_is_refused() -> None:
    with service(1) as target:
        rounds = {"job_name": "a", "consumer_index": 0, "num_consumers": 1}
        distribute = wb.data.service.distribute("parallel_epochs", target, **rounds)  # type: ignore[arg-type]

        with pytest.raises(FailedPreconditionError, match=r"put \.repeat\(\) at its end"):
            Dataset.range(3).apply(distribute)
        known = wb.data.service.register_dataset(target, Dataset.range(3))
        spec = Dataset.range(3).element_spec
        read_in_rounds = wb.data.service.from_dataset_id(
            "parallel_epochs",
            target,
            known,
            spec,
            **rounds,  # type: ignore[arg-type]
        )
        with pytest.raises(FailedPreconditionError, match=r"put \.repeat\(\) at its end"):
            list(read_in_rounds)
        # It is unknown how many elements a filter keeps.
        unknown = iter(Dataset.range(3).filter(lambda x: x >= 0).apply(distribute))
        assert [int(next(unknown)) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(FailedPreconditionError, match="has come to the end of the dataset"):
            next(unknown)


def test_the_cardinality_is_infinite_and_the_seats_are_free_after_the_end() -> None:
    with service(1) as target:
        rounds = wb.data.service.distribute("parallel_epochs", target, "a", consumer_index=0, num_consumers=1)
        dataset = rounds_of(1).apply(rounds)

        assert dataset.cardinality() == wb.data.INFINITE_CARDINALITY
        for _ in range(2):  # each iteration is a job of its own
            assert [x.tolist()[0] for x in dataset.take(3)] == [0, 1, 2]
        until(lambda: not any(job.consumers for job in wb.data.service.status(target).jobs), "leaving")


def row(number: int) -> Run:
    return Run(RangeTable(0, 1, np.dtype(np.int64), LEAF), range(number, number + 1))


def test_a_shelf_makes_at_most_eight_rounds_for_the_slowest_and_gives_each_element_to_its_consumer() -> None:
    shelf = RoundShelf(0, 0, 2)
    made = 0
    while shelf.has_room(8):
        shelf.put(row(made), 8)
        made += 1

    assert made == 16
    for number in range(0, 16, 2):
        request = Request("a", 1, due={0: number}, unread={0: number})
        shelf.free(request)
        taken = shelf.take(request)
        assert taken is not None
        assert taken[0] == number
        assert list(taken[1][0].rows) == [number]
    assert not shelf.has_room(8), "consumer 1 has taken nothing"
    assert shelf.take(Request("b", 1, due={0: 3}, unread={0: 1})) is not None
    assert shelf.take(Request("b", 1, due={0: 1}, unread={0: 1})) is not None, "asked for again"
    shelf.free(Request("b", 1, due={0: 3}, unread={0: 3}))
    assert shelf.has_room(8)


def test_a_shelf_makes_the_round_that_the_slowest_waits_for_however_large_its_elements_are() -> None:
    shelf = RoundShelf(0, 0, 3)
    for number in range(3):
        assert shelf.has_room(1 << 40)
        shelf.put(row(number), 1 << 40)

    assert not shelf.has_room(1 << 40)


def test_rounds_take_elements_in_order_whatever_order_they_come_in() -> None:
    rounds = Rounds(1, 2, 0)
    worker = Worker("w", (0, 1), 2, 1)

    ask = rounds.plan(worker, 1)
    assert ask is not None
    assert ask.due == {0: 1, 1: 1}
    rounds.add(Block("w", 1, 1, 1, []))
    assert rounds.next() is None
    rounds.add(Block("w", 0, 1, 1, []))
    rounds.add(Block("v", 0, 1, 1, []))  # again, from a worker that has lost the lane
    assert [block and (block.lane, block.start) for block in (rounds.next(), rounds.next())] == [
        (0, 1),
        (1, 1),
    ]
    assert rounds.next() is None
    ask = rounds.plan(worker, 1)
    assert ask is not None
    assert ask.due == {0: 3, 1: 3}
