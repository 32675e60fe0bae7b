"""Trainers that share what workers make (`CrossTrainerCache`), and readers of workers in their own process."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.data.service.servers import PATIENCE_SECONDS, ROOT, Processes, service, worker_of
from tests.until import until
from workbench.data.service.lanes.shelf import Request
from workbench.data.service.lanes.window_shelf import WindowShelf
from workbench.data.structure import LEAF
from workbench.data.tables import RangeTable, Run
from workbench.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError

Dataset = wb.data.Dataset
Cache = wb.data.service.CrossTrainerCache
MADE: list[int] = []


def _made(x: Any) -> Any:
    MADE.append(int(x))
    return x


def trainer(target: str, name: str, dataset: wb.data.Dataset | None = None, **options: Any) -> Iterator[Any]:
    distributed = wb.data.service.distribute(
        options.pop("mode", "parallel_epochs"),
        target,
        options.pop("job_name", "job"),
        cross_trainer_cache=Cache(name),
        **options,
    )
    return iter((Dataset.counter() if dataset is None else dataset).apply(distributed))


def first(iterator: Iterator[Any], count: int) -> list[int]:
    return [int(next(iterator)) for _ in range(count)]


def test_each_trainer_gets_all_elements_which_are_computed_once() -> None:
    dataset = Dataset.counter().map(_made)
    with service(1) as target:
        *trainers, late = (trainer(target, name, dataset) for name in ("a", "b", "c", "late"))
        MADE.clear()

        for nth in range(2000):
            assert [int(next(each)) for each in trainers] == [nth] * 3
        assert first(late, 2000) == list(range(2000))
        del trainers, late
    assert len(MADE) == len(set(MADE))


def test_consumers_of_one_trainer_share_its_elements() -> None:
    with service(1) as target:
        one, two = (trainer(target, "a", max_outstanding_requests=1) for _ in range(2))
        found = [int(next(each)) for _ in range(200) for each in (one, two)]
        other = first(trainer(target, "b"), 400)

    assert sorted(found) == other == list(range(400))


def _one_by_one(x: Any) -> Any:
    """The element itself. The branch keeps `map` from computing blocks of elements, of which a window holds many."""
    return x if x >= 0 else -x


def test_a_trainer_misses_what_has_left_the_window_and_goes_on_with_the_oldest() -> None:
    with (
        service(0) as target,
        worker_of(target, cross_trainer_cache_size_bytes=64 * 1024),
    ):
        dataset = Dataset.counter().map(_one_by_one)
        fast, slow, late_trainer = (
            trainer(target, name, dataset, max_outstanding_requests=1) for name in ("fast", "slow", "late")
        )
        begun = first(slow, 1)
        first(fast, 3_000)
        late = first(late_trainer, 10)
        found = begun + first(slow, 200)
        del fast, slow, late_trainer

    assert late[0] > 0
    assert late == list(range(late[0], late[0] + 10))
    gaps = [(a, b) for a, b in itertools.pairwise(found) if b != a + 1]
    assert len(gaps) == 1, "one jump to what is left"


def test_a_shuffled_dataset_is_the_same_for_all_trainers_of_a_job_and_jobs_have_caches_of_their_own() -> None:
    dataset = Dataset.range(1000).shuffle(100).repeat()
    with service(1) as target:
        found = first(trainer(target, "a", dataset), 500)

        assert first(trainer(target, "b", dataset), 500) == found
        assert first(trainer(target, "a", job_name="other"), 5) == [0, 1, 2, 3, 4]


def test_dealt_sources_of_several_workers_are_shared() -> None:
    with service(2) as target:
        found = [first(trainer(target, name, mode="distributed_epoch"), 3000) for name in ("a", "b")]

    for elements in found:
        assert len(set(elements)) == 3000, "none twice"
    assert set(found[0]) & set(found[1]), "how many depends on which worker was faster for whom"


def test_the_stream_of_a_lost_worker_begins_anew(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    try:
        processes.start_dispatcher()
        processes.start_worker()
        reading = trainer(processes.target, "a")
        assert first(reading, 100) == list(range(100))
        processes.kill(processes.workers[0])
        processes.start_worker()
        found = first(reading, 10_000)
        del reading
    finally:
        processes.close()

    assert found.count(0) == 1
    assert found[found.index(0) :] == list(range(len(found) - found.index(0)))


def test_a_cached_dataset_has_no_end_and_is_iterated_over_once() -> None:
    with service(1) as target:
        distributed = wb.data.service.distribute(
            "parallel_epochs", target, "job", cross_trainer_cache=Cache("a")
        )
        dataset = Dataset.counter().apply(distributed)

        assert dataset.cardinality() == wb.data.INFINITE_CARDINALITY
        assert [int(x) for x in dataset.take(3)] == [0, 1, 2]
        with pytest.raises(InvalidArgumentError, match="this is iteration 2"):
            next(iter(dataset))
        with pytest.raises(InvalidArgumentError, match=r"put \.repeat\(\) at its end"):
            Dataset.range(3).apply(distributed)
        job = {"job_name": "unknown"}
        ending = Dataset.range(3).filter(lambda x: True)
        readers = [trainer(target, name, ending, **job) for name in ("a", "b")]
        for reader in readers:
            assert first(reader, 3) == [0, 1, 2]
            with pytest.raises(InvalidArgumentError, match=r"put \.repeat\(\) at its end"):
                next(reader)
            assert list(reader) == []
        assert first(
            trainer(target, "a", Dataset.counter().filter(lambda x: True), job_name="endless"), 2
        ) == [0, 1]
        with pytest.raises(InvalidArgumentError, match="another cross_trainer_cache: True, got False"):
            next(iter(Dataset.counter().apply(wb.data.service.distribute("parallel_epochs", target, "job"))))


@pytest.mark.parametrize("trainer_id", ["", None, 3])
def test_a_trainer_needs_an_id(trainer_id: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="trainer_id is"):
        Cache(trainer_id)
    assert repr(Cache("one")) == "CrossTrainerCache(trainer_id='one')"
    assert wb.data.experimental.service.CrossTrainerCache is Cache


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"job_name": None, "cross_trainer_cache": Cache("a")}, "they need its name"),
        ({"cross_trainer_cache": "a"}, "must be a CrossTrainerCache"),
        (
            {"cross_trainer_cache": Cache("a"), "consumer_index": 0, "num_consumers": 1},
            "exclude each other",
        ),
    ],
)
def test_arguments_that_do_not_go_together_fail_at_once(options: dict[str, Any], message: str) -> None:
    given = {"job_name": "a"} | options
    with pytest.raises(InvalidArgumentError, match=message):
        wb.data.service.distribute("parallel_epochs", "grpc://localhost:1", **given)


def test_sizes_and_times_of_a_worker_are_checked() -> None:
    config = wb.data.service.WorkerConfig("a@localhost:1", heartbeat_interval_ms=np.int64(5))  # type: ignore[arg-type]
    assert (config.heartbeat_interval_ms, type(config.heartbeat_interval_ms)) == (5, int)
    for wrong in (0, 1.5, True, "2"):
        for name, least in (
            ("cross_trainer_cache_size_bytes", "1"),
            ("heartbeat_interval_ms", "1 millisecond, or None"),
            ("dispatcher_timeout_ms", "1 millisecond, or None"),
        ):
            says = rf"WorkerConfig\({name}\) must be an integer of at least {least}, got {wrong!r}"
            with pytest.raises(InvalidArgumentError, match=says):
                wb.data.service.WorkerConfig("a@localhost:1", **{name: wrong})  # type: ignore[arg-type]


def test_a_window_keeps_its_bound_and_its_newest_run_however_large() -> None:
    shelf = WindowShelf(0, 10_000)
    table = RangeTable(0, 1, np.dtype(np.int64), LEAF)
    position = 0
    rng = np.random.default_rng(0)
    for _ in range(5000):
        size = int(rng.integers(1, 5))
        shelf.put(Run(table, range(position, position + size)), int(rng.integers(1, 3000)))
        position += size
        request = Request("c", int(rng.integers(1, 20)), trainer=f"t{rng.integers(3)}")
        taken = shelf.take(request)
        if taken is not None:
            start, runs = taken
            rows = [row for run in runs for row in run.rows]
            assert rows == list(range(start, start + len(rows)))
            assert len(rows) <= request.most
    shelf.put(Run(table, range(position, position + 1)), 1 << 40)
    assert not shelf.has_room(1)
    taken = shelf.take(Request("c", 5, trainer="new"))
    assert taken is not None
    assert taken[0] == position
    assert shelf.has_room(1)


# Workers of the same process


def test_a_local_reader_reads_from_workers_in_its_process_only(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    dataset = Dataset.range(400).map(lambda x: (x, np.int64(os.getpid())))
    try:
        processes.start_dispatcher()
        processes.start_worker()
        target = processes.target
        with worker_of(target):
            until(lambda: len(wb.data.service.status(target).workers) == 2, "two workers")
            found = {}
            for where in ("local", "ANY"):
                for mode in ("parallel_epochs", "distributed_epoch"):
                    distributed = wb.data.service.distribute(mode, target, target_workers=where)
                    found[where, mode] = list(dataset.apply(distributed))
    finally:
        processes.close()

    for mode in ("parallel_epochs", "distributed_epoch"):
        assert {int(pid) for _, pid in found["local", mode]} == {os.getpid()}
        assert sorted(int(x) for x, _ in found["local", mode]) == list(range(400))
    assert len({int(pid) for _, pid in found["ANY", "parallel_epochs"]}) == 2


READER = """
import os, sys, workbench as wb
target = sys.argv[1]
with wb.data.service.WorkerServer(wb.data.service.WorkerConfig(target)):
    print("ready", flush=True)
    sys.stdin.readline()
    dataset = wb.data.Dataset.range(4000).map(lambda x: (x, os.getpid()))
    distributed = wb.data.service.distribute(
        "distributed_epoch", target, "shared", target_workers="LOCAL", max_outstanding_requests=4
    )
    for x, pid in dataset.apply(distributed):
        assert pid == os.getpid()
        print(int(x), flush=True)
"""


def test_local_readers_in_several_processes_divide_an_epoch_and_lose_nothing() -> None:
    with service(0) as target:
        readers = [
            subprocess.Popen(
                [sys.executable, "-c", READER, target],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
            )
            for _ in range(2)
        ]
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdin is not None
            assert reader.stdout.readline() == "ready\n"
        for reader in readers:
            assert reader.stdin is not None
            reader.stdin.write("\n")
            reader.stdin.flush()
        outputs = [reader.communicate(timeout=PATIENCE_SECONDS)[0] for reader in readers]

    numbers = [[int(line) for line in output.splitlines()] for output in outputs]
    assert [reader.returncode for reader in readers] == [0, 0]
    assert sorted(numbers[0] + numbers[1]) == list(range(4000))


def test_a_local_reader_without_a_worker_in_its_process_is_refused_or_fails_in_time() -> None:
    distribute = wb.data.service.distribute
    with service(0) as target, service(1):
        with pytest.raises(
            FailedPreconditionError, match="no data worker of this service runs in the process"
        ):
            list(Dataset.range(3).apply(distribute("parallel_epochs", target, target_workers="LOCAL")))
        worker = worker_of(target)
        iterator = iter(
            Dataset.counter().apply(
                distribute(
                    "parallel_epochs",
                    target,
                    target_workers="LOCAL",
                    max_outstanding_requests=1,
                    timeout_seconds=0.5,
                )
            )
        )
        next(iterator)
        worker.stop()
        with pytest.raises(UnavailableError, match="no worker in the process of this consumer"):
            list(iterator)
        any_, local = (
            Dataset.range(3).apply(distribute("parallel_epochs", target, "q", target_workers=where))
            for where in ("ANY", "LOCAL")
        )
        with worker_of(target):
            list(any_)
            with pytest.raises(InvalidArgumentError, match="another target_workers: ANY, got LOCAL"):
                list(local)
