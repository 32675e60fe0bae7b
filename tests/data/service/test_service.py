"""What consumers get from a data service, and which errors."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.data import overtaking
from tests.data.service.servers import free_port, service, worker_of
from tests.until import until
from workbench.data.service import methods
from workbench.data.service.channel import Channel
from workbench.data.service.dispatch.acknowledged import Acknowledged
from workbench.data.service.dispatch.coordinator import Coordinator, Limits
from workbench.data.service.dispatch.ledger import Ledger
from workbench.data.service.dispatch.state import Job, Registered
from workbench.data.service.policy import ShardingPolicy
from workbench.data.service.server import Session
from workbench.data.service.splits import split_counts
from workbench.data.service.worker import DataWorker
from workbench.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError

Dataset = wb.data.Dataset
distribute = wb.data.service.distribute


MADE: list[int] = []
GOES_ON: list[bool] = []


def _large(x: Any) -> Any:
    MADE.append(int(x))
    return np.zeros(10_000_000, np.uint8)


def _made() -> list[int]:
    """The elements made from those from 100 on. Leaves out the made-up ones that show the element spec."""
    return [x for x in MADE if x >= 100]


def numbers(dataset: wb.data.Dataset) -> list[int]:
    return sorted(int(x) for x in dataset)


def test_parallel_epochs_give_a_copy_per_worker_and_distributed_epoch_gives_each_element_once() -> None:
    with service(3) as target:
        dataset = Dataset.range(100).map(lambda x: x + 1)

        assert numbers(dataset.apply(distribute("parallel_epochs", target))) == sorted(
            3 * list(range(1, 101))
        )
        assert numbers(dataset.apply(distribute("distributed_epoch", target))) == list(range(1, 101))


@pytest.mark.parametrize(
    ("elements", "told"),
    [
        (Dataset.range(4).window(2), "elements that hold datasets cannot be stored or sent"),
        (
            Dataset.from_tensor_slices(np.zeros(2, [("x", np.int32)])),
            r"elements that are stored or sent hold numbers, times and text, not .*map each field to a component",
        ),
        (
            Dataset.range(2).map(lambda x: {1.5: x}),
            "elements that are stored or sent are records, tuples, and dicts with text or numbers as keys, not dict",
        ),
    ],
    ids=["dataset", "fields", "key"],
)
def test_what_cannot_be_sent_is_refused(elements: Any, told: str) -> None:
    with service(1) as target, pytest.raises(InvalidArgumentError, match=told):
        elements.apply(distribute("parallel_epochs", target))


@pytest.mark.parametrize("mode", ["parallel_epochs", "distributed_epoch"])
def test_a_reply_that_is_lost_costs_no_element(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    lost, asked_again = threading.Event(), threading.Event()
    once, ended = Channel._once, DataWorker.ended

    def loses(channel: Channel, fields: Any, *rest: Any) -> Any:
        reply, data = once(channel, fields, *rest)
        if lost.is_set() and fields["method"] == "fetch":
            asked_again.set()
        if "count" in reply and not lost.is_set():
            lost.set()
            raise ConnectionError("lost on its way")
        return reply, data

    def late(worker: DataWorker, session: Any) -> None:
        """The worker notices the end of the connection after it has answered on the next one."""
        if lost.is_set():
            asked_again.wait(60)
        ended(worker, session)

    with service(1) as target:
        monkeypatch.setattr(Channel, "_once", loses)
        monkeypatch.setattr(DataWorker, "ended", late)

        assert numbers(Dataset.range(1).apply(distribute(mode, target))) == [0]
        assert lost.is_set()


@pytest.mark.parametrize("mode", ["parallel_epochs", "distributed_epoch"])
def test_a_lost_worker_costs_no_element_where_functions_may_change_the_order(mode: str) -> None:
    with wb.data.service.DispatchServer() as dispatcher:
        first = worker_of(dispatcher.target)
        dataset = Dataset.range(100).map(
            lambda x: overtaking.made(x), num_parallel_calls=2, deterministic=False
        )
        overtaking.SECOND_MADE.clear()
        iterator = iter(dataset.apply(distribute(mode, dispatcher.target, max_outstanding_requests=1)))
        found = [int(next(iterator))]
        first.stop()
        with worker_of(dispatcher.target):  # where the first element is not late
            found += [int(x) for x in iterator]

    assert sorted(found) == list(range(100))


def test_elements_keep_their_structure_dtypes_and_texts() -> None:
    Pair = collections.namedtuple("Pair", "left right")
    columns = {
        "pair": Pair(np.arange(6, dtype=np.int16), np.arange(12.0).reshape(6, 2)),
        "text": np.array([b"", b"a\0", b"\xff", b"d", b"e", b"f"], object),
        "flag": np.arange(6) % 2 == 0,
    }
    dataset = Dataset.from_tensor_slices(columns)
    for compression in (None, "SNAPPY", "GZIP"):
        with service(1) as target:
            found = list(dataset.apply(distribute("distributed_epoch", target, compression=compression)))

        assert found[1]["pair"]._fields == ("left", "right")
        assert found[1]["pair"].left.dtype == np.int16
        np.testing.assert_array_equal(np.stack([x["pair"].right for x in found]), columns["pair"].right)
        assert [x["text"] for x in found] == columns["text"].tolist()
        assert [bool(x["flag"]) for x in found] == columns["flag"].tolist()


def test_elements_of_different_shapes_travel() -> None:
    with service(1) as target:
        dataset = Dataset.range(5).map(lambda x: np.arange(x)).apply(distribute("distributed_epoch", target))

        assert [x.tolist() for x in dataset] == [list(range(n)) for n in range(5)]


def test_batches_go_over_the_ends_of_splits() -> None:
    with service(1) as target:
        dataset = (
            Dataset.range(1000).batch(7, drop_remainder=True).apply(distribute("distributed_epoch", target))
        )

        assert [x.tolist() for x in dataset] == [list(range(7 * k, 7 * k + 7)) for k in range(142)]


def test_a_function_that_fails_fails_at_its_element_and_the_next_one_follows() -> None:
    def check(x: Any) -> Any:
        if x == 2:
            raise KeyError("two")
        return x

    with service(1) as target:
        iterator = iter(Dataset.range(4).map(check).apply(distribute("distributed_epoch", target)))
        found: list[Any] = []
        for _ in range(4):
            try:
                found.append(int(next(iterator)))
            except KeyError as error:
                found.append(error)

        assert [x for x in found if isinstance(x, int)] == [0, 1, 3]
        (error,) = (x for x in found if not isinstance(x, int))
        assert any("element 2" in note for note in error.__notes__)
        assert any("raised on data worker 127.0.0.1:" in note for note in error.__notes__)
        with pytest.raises(StopIteration):
            next(iterator)


def test_each_repetition_is_a_new_job_and_repeats_before_are_dealt() -> None:
    with service(2) as target:
        after = Dataset.range(5).apply(distribute("distributed_epoch", target)).repeat(2)
        before = Dataset.range(5).repeat(2).apply(distribute("distributed_epoch", target))

        assert numbers(after) == numbers(before) == sorted(2 * list(range(5)))


def test_readers_with_one_job_name_share_elements_and_a_late_one_gets_nothing() -> None:
    with service(2) as target:

        def reader() -> wb.data.Dataset:
            return Dataset.range(500).apply(
                distribute("distributed_epoch", target, job_name="one", max_outstanding_requests=4)
            )

        first, second = iter(reader()), iter(reader())
        got: dict[int, list[int]] = {0: [], 1: []}
        live = {0: first, 1: second}
        while live:
            for which, iterator in list(live.items()):
                try:
                    got[which].append(int(next(iterator)))
                except StopIteration:
                    del live[which]

        assert Counter(got[0] + got[1]) == Counter(range(500))
        assert got[0]
        assert got[1]
        assert list(reader()) == []


def test_a_job_name_cannot_be_used_for_another_dataset() -> None:
    with service(1) as target:
        list(Dataset.range(3).apply(distribute("parallel_epochs", target, job_name="mine")))

        with pytest.raises(InvalidArgumentError, match="'mine' is in use for another dataset"):
            list(Dataset.range(4).apply(distribute("parallel_epochs", target, job_name="mine")))


def _in_two_parts(x: Any) -> Any:
    if x >= 150:
        until(lambda: GOES_ON, "the second half")
    return x


def test_a_worker_that_comes_later_takes_part() -> None:
    GOES_ON.clear()  # otherwise the first worker might make everything before the second one starts
    with service(0) as target:
        dataset = Dataset.range(300).map(_in_two_parts)
        iterator = iter(dataset.apply(distribute("distributed_epoch", target, max_outstanding_requests=2)))
        with worker_of(target):
            found = [int(next(iterator)) for _ in range(10)]
            with worker_of(target):
                until(lambda: wb.data.service.status(target).jobs[0].lanes == 2, "a second lane")
                GOES_ON.append(True)

                assert sorted(found + numbers(iterator)) == list(range(300))  # type: ignore[arg-type]


def test_without_workers_a_reader_fails_in_time() -> None:
    with service(0) as target:
        dataset = Dataset.range(3).apply(distribute("distributed_epoch", target, timeout_seconds=0.2))

        with pytest.raises(UnavailableError, match=r"had no worker for 0\.2 seconds"):
            list(dataset)


def test_no_more_elements_are_outstanding_than_asked_for() -> None:
    with service(1) as target:
        dataset = Dataset.range(100, 140).map(_large)
        iterator = iter(dataset.apply(distribute("distributed_epoch", target, max_outstanding_requests=1)))
        next(iterator)
        until(lambda: len(_made()) >= 6, "working ahead")

        # A worker holds 64 MiB of waiting elements, one that it makes, and those that the reader requested.
        assert len(_made()) <= 10
        del iterator


@pytest.mark.parametrize("policy", ["DATA", "FILE_OR_DATA"])
def test_fixed_parts_need_the_addresses_of_all_workers(policy: str) -> None:
    mode = wb.data.service.ShardingPolicy[policy]
    ports = [free_port(), free_port()]
    with (
        service(0, worker_addresses=[f"127.0.0.1:{port}" for port in ports]) as target,
        worker_of(target, port=ports[1]),
        worker_of(target, port=ports[0]),
    ):
        assert numbers(Dataset.range(20).apply(distribute(mode, target))) == list(range(20))
    with service(1) as target, pytest.raises(FailedPreconditionError, match="worker_addresses"):
        list(Dataset.range(3).apply(distribute(mode, target)))


def test_files_and_row_groups_are_splits(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number in range(2):
        pq.write_table(
            pa.table({"x": np.arange(10) + 10 * number}), tmp_path / f"{number}.parquet", row_group_size=3
        )
        (tmp_path / f"{number}.txt").write_text(f"{number}a\n{number}b\n")
    tables = wb.data.ParquetDataset([str(tmp_path / f"{n}.parquet") for n in range(2)])
    lines = wb.data.TextLineDataset(Dataset.list_files(str(tmp_path / "*.txt"), shuffle=True))

    assert split_counts(tables) == [8]
    assert split_counts(lines) == [2]
    with service(2) as target:
        rows = [int(row["x"]) for row in tables.apply(distribute("distributed_epoch", target))]
        assert sorted(rows) == list(range(20))
        assert sorted(lines.apply(distribute("distributed_epoch", target))) == [b"0a", b"0b", b"1a", b"1b"]


def test_zips_and_concatenations_of_sources_are_divided() -> None:
    zipped = Dataset.zip((Dataset.range(300), Dataset.from_tensor_slices(np.arange(300) * 2)))
    both = Dataset.range(100).concatenate(Dataset.range(100, 250).map(lambda x: x))
    with service(2) as target:
        pairs = [(int(a), int(b)) for a, b in zipped.apply(distribute("distributed_epoch", target))]

        assert sorted(pairs) == [(x, 2 * x) for x in range(300)]
        assert numbers(both.apply(distribute("distributed_epoch", target))) == list(range(250))


@pytest.mark.parametrize("workers", [1, 3])
def test_a_dataset_without_elements_ends_as_a_local_one_does(workers: int) -> None:
    with service(workers) as target:
        divided = distribute("distributed_epoch", target)
        assert list(Dataset.range(0).apply(divided)) == []
        assert list(Dataset.range(0).repeat(2).batch(3).apply(divided).repeat(2)) == []
        with pytest.raises(FailedPreconditionError, match="expected 3"):
            list(Dataset.range(0).assert_cardinality(3).apply(divided))


@pytest.mark.parametrize("mode", ["distributed_epoch", "parallel_epochs"])
def test_consumers_share_a_job_although_each_has_drawn_its_own_seeds(mode: str) -> None:
    def dataset(count: int, name: str) -> Dataset:
        shuffled = Dataset.range(count).shuffle(count)
        drawn = Dataset.sample_from_datasets([shuffled, Dataset.range(100, 104)])
        return drawn.apply(distribute(mode, target, job_name=name))

    with service(1) as target:
        first, second = iter(dataset(4, "j")), iter(dataset(4, "j"))
        assert sorted(int(x) for x in [next(first), *second, *first]) == [0, 1, 2, 3, 100, 101, 102, 103]
        with pytest.raises(InvalidArgumentError, match="'j' is in use for another dataset"):
            list(dataset(5, "j"))


def test_consumers_that_chose_different_seeds_share_no_job() -> None:
    with service(1) as target:
        shared = distribute("parallel_epochs", target, job_name="j")
        first, second = (Dataset.random(seed=seed).take(3).apply(shared) for seed in (1, 2))
        assert len(list(first)) == 3
        with pytest.raises(InvalidArgumentError, match="'j' is in use for another dataset"):
            list(second)


def test_datasets_among_which_is_chosen_are_divided_where_the_choices_give_all() -> None:
    datasets = [Dataset.range(100), Dataset.range(200, 300).map(lambda x: x), Dataset.range(400, 403)]
    everything = [*range(100), *range(200, 300), *range(400, 403)]
    turns = Dataset.range(3).repeat()
    with service(3) as target:
        divided = distribute("distributed_epoch", target)
        assert numbers(Dataset.sample_from_datasets(datasets, seed=3).apply(divided)) == everything
        choices = Dataset.choose_from_datasets(datasets, turns, stop_on_empty_dataset=False)
        assert numbers(choices.repeat(2).apply(divided)) == sorted(2 * everything)
        for ending in (
            Dataset.choose_from_datasets(datasets, turns),
            Dataset.choose_from_datasets(datasets, turns.take(9), stop_on_empty_dataset=False),
        ):
            with pytest.raises(InvalidArgumentError, match="'choose_from_datasets' cannot be divided"):
                ending.apply(divided)


def test_what_cannot_be_divided_is_refused_when_it_is_distributed() -> None:
    dataset = Dataset.from_generator(lambda: iter([1, 2]), output_types=np.int32, output_shapes=[])
    with service(1) as target, pytest.raises(InvalidArgumentError, match="choose 'parallel_epochs'"):
        dataset.apply(distribute("distributed_epoch", target))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"service": "localhost:5000"}, "must be protocol://address"),
        ({"service": "grpc://localhost"}, "not an address"),
        ({"processing_mode": "x"}, "processing_mode is 'x'"),
        ({"max_outstanding_requests": 0}, "an integer of at least 1, or None, got 0"),
        ({"max_outstanding_requests": 1.5}, "an integer of at least 1, or None, got 1.5"),
        ({"job_name": ""}, "job_name is ''"),
        ({"data_transfer_protocol": "rdma"}, "'grpc' only"),
        ({"target_workers": "NEAR"}, "'AUTO', 'ANY' or 'LOCAL'"),
    ],
)
def test_bad_arguments_fail_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        distribute(**({"processing_mode": "parallel_epochs", "service": "grpc://localhost:1"} | options))


def test_a_dataset_of_which_nobody_knows_what_elements_are_does_not_look_ended() -> None:
    def fails(x: Any) -> Any:
        raise LookupError(f"element {x}")

    with pytest.raises(InvalidArgumentError, match=r"the data service has to know.*LookupError: element 0"):
        Dataset.range(4).map(fails).apply(distribute("parallel_epochs", "grpc://127.0.0.1:1"))


def test_a_dataset_is_registered_once_and_read_by_its_id() -> None:
    with service(1) as target:
        dataset = Dataset.range(7)
        one, two = (wb.data.service.register_dataset(target, Dataset.range(7)) for _ in range(2))
        named = wb.data.service.register_dataset(target, dataset, dataset_id="seven")
        spec = dataset.element_spec

        assert one == two
        assert named == "seven"
        for known in (one, named):
            read = wb.data.service.from_dataset_id("parallel_epochs", target, known, spec)
            assert numbers(read) == list(range(7))
        with pytest.raises(InvalidArgumentError, match="another dataset is registered as 'seven'"):
            wb.data.service.register_dataset(target, Dataset.range(8), dataset_id="seven")
        for known in (one, named):  # the dispatcher knows the spec
            read = wb.data.service.from_dataset_id("parallel_epochs", target, known)
            assert read.element_spec == spec
            assert numbers(read) == list(range(7))
        with pytest.raises(wb.errors.NotFoundError, match="no dataset 5"):
            wb.data.service.from_dataset_id("parallel_epochs", target, 5)
        with pytest.raises(wb.errors.NotFoundError, match="no dataset 5"):
            list(wb.data.service.from_dataset_id("parallel_epochs", target, 5, spec))


def test_a_dataset_that_an_earlier_version_registered_is_read_with_its_spec(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    described = methods._described
    monkeypatch.setattr(
        methods,
        "_described",
        lambda *args: {name: value for name, value in described(*args).items() if name != "spec"},
    )
    with service(1) as target:
        known = wb.data.service.register_dataset(target, Dataset.range(7))
        with pytest.raises(InvalidArgumentError, match="element_spec"):
            wb.data.service.from_dataset_id("parallel_epochs", target, known)
        read = wb.data.service.from_dataset_id(
            "parallel_epochs", target, known, Dataset.range(7).element_spec
        )
        assert numbers(read) == list(range(7))


def test_a_number_of_elements_is_known_where_workers_cannot_change_it() -> None:
    with service(1) as target:
        for mode in ("parallel_epochs", "distributed_epoch"):
            applied = distribute(mode, target, max_outstanding_requests=wb.data.AUTOTUNE)
            assert Dataset.range(0).apply(applied).cardinality() == 0
            assert Dataset.range(3).repeat().apply(applied).cardinality() == wb.data.INFINITE_CARDINALITY
            assert Dataset.range(3).apply(applied).cardinality() == wb.data.UNKNOWN_CARDINALITY
            assert numbers(Dataset.range(3).apply(applied)) == [0, 1, 2]


def test_a_dispatcher_without_a_journal_has_forgotten_jobs_when_it_is_started_again() -> None:
    config = wb.data.service.DispatcherConfig(port=free_port(), token="t")
    with wb.data.service.DispatchServer(config) as dispatcher:
        target = dispatcher.target
        worker = worker_of(target)
        iterator = iter(
            Dataset.range(100).apply(distribute("distributed_epoch", target, max_outstanding_requests=1))
        )
        next(iterator)
    with (
        wb.data.service.DispatchServer(config),
        pytest.raises(FailedPreconditionError, match="fault_tolerant_mode"),
    ):
        list(iterator)
    worker.stop()


def _restarted(folder: Path) -> wb.data.service.DispatcherConfig:
    return wb.data.service.DispatcherConfig(
        port=free_port(), work_dir=folder, fault_tolerant_mode=True, worker_timeout_ms=60_000
    )


@contextlib.contextmanager
def _away(monkeypatch: pytest.MonkeyPatch, worker: wb.data.service.WorkerServer) -> Iterator[threading.Event]:
    """Keeps a worker from its dispatcher until the event is set."""
    back, address, once = threading.Event(), worker._address, Channel._once

    def without(self: Channel, fields: Any, *others: Any) -> Any:
        if fields.get("address") == address and not back.is_set():
            raise ConnectionError("away")
        return once(self, fields, *others)

    monkeypatch.setattr(Channel, "_once", without)
    yield back
    back.set()


def test_an_epoch_waits_for_a_worker_that_is_not_back_yet_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = _restarted(tmp_path)
    with wb.data.service.DispatchServer(config) as dispatcher, contextlib.ExitStack() as stack:
        target = dispatcher.target
        _, second = (stack.enter_context(worker_of(target)) for _ in range(2))
        back = stack.enter_context(_away(monkeypatch, second))
        dispatcher.stop()
        stack.enter_context(wb.data.service.DispatchServer(config))
        iterator = iter(Dataset.range(10).apply(distribute("parallel_epochs", target)))
        found = [int(next(iterator)) for _ in range(10)]
        until(lambda: wb.data.service.status(target).jobs[0].lanes_complete == 1, "the first worker")
        back.set()
        found += [int(x) for x in iterator]

    assert sorted(found) == sorted(2 * list(range(10)))


def test_an_epoch_ends_without_a_worker_that_does_not_come_back_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = dataclasses.replace(_restarted(tmp_path), worker_timeout_ms=1_000)
    with wb.data.service.DispatchServer(config) as dispatcher, contextlib.ExitStack() as stack:
        target = dispatcher.target
        _, second = (stack.enter_context(worker_of(target)) for _ in range(2))
        stack.enter_context(_away(monkeypatch, second))
        dispatcher.stop()
        stack.enter_context(wb.data.service.DispatchServer(config))

        assert numbers(Dataset.range(10).apply(distribute("parallel_epochs", target))) == list(range(10))


def test_a_job_is_closed_although_its_dispatcher_was_killed_just_before(tmp_path: Path) -> None:
    folder = str(tmp_path)
    (tmp_path / "datasets").mkdir()
    ledger = Ledger(folder)
    job = Job("j", "", 0, 1000, ShardingPolicy.OFF.value, 0)
    registered = Registered(1000, "digest", "fingerprint", None, "", False, "")
    for entry in (
        {"what": "dataset", "dataset": dataclasses.asdict(registered)},
        {"what": "job", "job": job.described},
        {"what": "lane", "job": "j", "worker": "w"},
        {"what": "end", "job": "j", "lane": 0, "total": 0},
    ):
        ledger.write(entry)
    ledger.close()
    coordinator = Coordinator(folder, Limits(job_gc_check=60.0, job_gc=60.0, worker=60.0), ())
    try:
        until(lambda: coordinator.answer("status", {}, b"", Session())[0]["jobs"][0]["complete"], "closing")
    finally:
        coordinator.stop()


def test_a_job_that_nobody_reads_is_forgotten() -> None:
    with service(1, job_gc_check_interval_ms=1, job_gc_timeout_ms=1) as target:
        iterator = iter(
            Dataset.range(50).apply(
                distribute("parallel_epochs", target, job_name="left", max_outstanding_requests=1)
            )
        )
        next(iterator)
        del iterator

        until(lambda: not wb.data.service.status(target).jobs, "forgetting")


def test_the_status_shows_jobs_and_workers_as_text_and_as_text_in_html() -> None:
    with service(2) as target:
        iterator = iter(
            Dataset.range(1280).apply(
                distribute("distributed_epoch", target, job_name="<b>", max_outstanding_requests=1)
            )
        )
        for _ in range(100):
            next(iterator)
        found = wb.data.service.status(target)
        (job,) = found.jobs

        assert (job.processing_mode, job.consumers, job.complete) == ("DYNAMIC", 1, False)
        assert job.splits_done + job.splits_leased + job.splits_left == 128
        assert job.elements >= 100
        assert len(found.workers) == 2
        assert "<b>" in str(found)
        assert "&lt;b&gt;" in found._repr_html_()
        assert "<b>" not in found._repr_html_()
        assert target.partition("://")[2].partition("@")[0] not in str(found)
        del iterator


def test_hosts_do_not_divide_what_a_job_with_a_name_divides() -> None:
    with service(1) as target:
        shared = Dataset.range(8).apply(distribute("parallel_epochs", target, job_name="s"))
        own = Dataset.range(8).apply(distribute("parallel_epochs", target))

        assert wb.data.auto_shard(shared, 2, 0).choice.used is wb.data.experimental.AutoShardPolicy.OFF
        assert wb.data.auto_shard(own, 2, 0).choice.used is wb.data.experimental.AutoShardPolicy.DATA


def test_acknowledged_ranges_are_a_set() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        ranges, expected = Acknowledged(), set[int]()
        for _ in range(12):
            start = int(rng.integers(0, 30))
            stop = start + int(rng.integers(0, 8))
            missing = [x for a, b in ranges.missing(start, stop) for x in range(a, b)]
            assert missing == [x for x in range(start, stop) if x not in expected]
            ranges.add(start, stop)
            expected |= set(range(start, stop))
            assert len(ranges) == len(expected)
            assert ranges.prefix == next(x for x in range(100) if x not in expected)


def test_the_spellings_of_the_reference_are_the_same_names() -> None:
    ours = wb.data.service

    assert wb.data.experimental.service.DispatcherConfig is ours.DispatcherConfig
    assert wb.data.experimental.service.DispatchServer is ours.DispatchServer
    assert wb.data.experimental.service.WorkerConfig is ours.WorkerConfig
    assert wb.data.experimental.service.WorkerServer is ours.WorkerServer
    assert wb.data.experimental.service.distribute is ours.distribute
    assert wb.data.experimental.service.register_dataset is ours.register_dataset
    assert wb.data.experimental.service.from_dataset_id is ours.from_dataset_id
