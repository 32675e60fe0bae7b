"""Workers and dispatchers of the data service are killed: each element arrives once (faults 29 and 30)."""

from __future__ import annotations

import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.data.service.servers import PATIENCE_SECONDS, Processes
from tests.until import until
from workbench.data.passes import Pass
from workbench.data.service.dispatch.journal import framed, read_entries
from workbench.errors import DataLossError

N = 4000


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path)
    try:
        yield started
    finally:
        started.close()


def one_by_one() -> wb.data.Dataset:
    """Elements through a stage that holds some back, and one that gives them one by one: faults count what it gives."""
    return (
        wb.data.Dataset.range(N).shuffle(64, seed=3).flat_map(lambda x: wb.data.Dataset.from_tensors(3 * x))
    )


def pipeline(target: str, **options: Any) -> wb.data.Dataset:
    return one_by_one().apply(
        wb.data.service.distribute("distributed_epoch", target, max_outstanding_requests=16, **options)
    )


def test_the_pipeline_of_these_tests_gives_elements_one_by_one() -> None:
    # Otherwise a worker would make all of its elements at once, and faults would count blocks of them.
    assert {len(run) for run in one_by_one().open(Pass(wb.data.Dataset, 0))} == {1}


def audit(elements: list[int]) -> None:
    counts = Counter(elements)
    assert {x: n for x, n in counts.items() if n > 1} == {}, "some arrived twice"
    assert counts.keys() == {3 * x for x in range(N)}, "some are lost"


@pytest.mark.parametrize("nth", random.Random(29).sample(range(1, N // 2), 3))
def test_each_element_arrives_once_although_a_worker_is_killed(
    processes: Processes, tmp_path: Path, nth: int
) -> None:
    # The scheduler decides how many elements a worker makes, so a fault in one worker may never happen. One of two
    # makes at least half of them; the first that gets there is killed.
    once = tmp_path / "killed"
    fault = {"point": "data_worker.element", "nth": nth, "action": "kill", "once": str(once)}
    processes.start_dispatcher()
    processes.start_worker(faults=[fault])
    processes.start_worker(faults=[fault])

    elements = [int(x) for x in pipeline(processes.target)]

    audit(elements)
    until(lambda: [worker.poll() for worker in processes.workers].count(-signal.SIGKILL) == 1, "the fault")


@pytest.mark.parametrize(
    ("joins", "ends"),
    [
        (1, 2),
        (500, 900),
        *(pytest.param(*each, marks=pytest.mark.thorough) for each in ((78, 156), (1500, 3000))),
    ],
)
def test_each_element_arrives_once_although_a_worker_joins_and_the_earlier_one_is_killed(
    processes: Processes, joins: int, ends: int
) -> None:
    processes.start_dispatcher()
    processes.start_worker()
    iterator = iter(pipeline(processes.target))
    elements = [int(next(iterator)) for _ in range(joins)]
    processes.start_worker()
    until(lambda: wb.data.service.status(processes.target).jobs[0].lanes == 2, "a second lane")
    elements += [int(next(iterator)) for _ in range(ends - joins)]

    processes.kill(processes.workers[0])

    audit(elements + [int(x) for x in iterator])


def test_each_element_arrives_once_although_a_worker_stands_still_until_its_work_was_given_away(
    processes: Processes,
) -> None:
    processes.start_dispatcher()
    processes.start_worker()
    processes.start_worker()
    iterator = iter(pipeline(processes.target))
    elements = [int(next(iterator)) for _ in range(100)]
    still = processes.workers[0]
    still.send_signal(signal.SIGSTOP)
    until(lambda: len(wb.data.service.status(processes.target).workers) == 1, "giving up the worker")
    elements += [int(next(iterator)) for _ in range(1000)]

    still.send_signal(signal.SIGCONT)  # and continues with the elements that another worker has by now

    audit(elements + [int(x) for x in iterator])


def test_each_element_arrives_once_although_the_only_worker_is_killed_and_another_comes(
    processes: Processes,
) -> None:
    processes.start_dispatcher()
    processes.start_worker()
    iterator = iter(pipeline(processes.target))
    elements = [int(next(iterator)) for _ in range(700)]

    processes.kill(processes.workers[0])
    processes.start_worker()

    audit(elements + [int(x) for x in iterator])


@pytest.mark.parametrize("point", ["data_journal.before_append", "data_journal.after_append"])
@pytest.mark.parametrize("nth", [77, pytest.param(45, marks=pytest.mark.thorough)])
def test_each_element_arrives_once_although_the_dispatcher_is_killed(
    processes: Processes, point: str, nth: int
) -> None:
    processes.start_dispatcher(faults=[{"point": point, "nth": nth, "action": "kill"}])
    processes.start_worker()
    processes.start_worker()
    dataset = pipeline(processes.target)
    killed = processes.dispatcher
    assert killed is not None

    def start_again() -> None:
        killed.wait(PATIENCE_SECONDS)
        processes.start_dispatcher()

    starting = threading.Thread(target=start_again)
    starting.start()
    try:
        elements = [int(x) for x in dataset]
    finally:
        starting.join(PATIENCE_SECONDS)

    audit(elements)
    assert killed.returncode == -signal.SIGKILL
    assert killed.stdout is not None
    killed.stdout.close()


def test_each_element_arrives_once_although_both_are_killed(processes: Processes) -> None:
    processes.start_dispatcher()
    processes.start_worker()
    processes.start_worker()
    iterator = iter(pipeline(processes.target))
    elements = [int(next(iterator)) for _ in range(1234)]

    processes.kill(processes.dispatcher)
    processes.kill(processes.workers[0])
    processes.start_dispatcher()

    audit(elements + [int(x) for x in iterator])


def test_a_consumer_that_stops_leaves_what_it_did_not_take_to_the_others(processes: Processes) -> None:
    processes.start_dispatcher()
    processes.start_worker()
    first = iter(pipeline(processes.target, job_name="shared"))
    elements = [int(next(first)) for _ in range(16)]
    del first

    elements += [int(x) for x in pipeline(processes.target, job_name="shared")]

    counts = Counter(elements)
    assert max(counts.values()) == 1
    # Elements that it had acknowledged and not read are lost with it: at most the rest of one block.
    assert N - 16 <= len(counts) <= N


ENTRIES = [{"what": "ack", "job": "a", "number": number} for number in range(4)]
JOURNAL = b"".join(map(framed, ENTRIES))
ENDS = [sum(len(framed(entry)) for entry in ENTRIES[:count]) for count in range(5)]


def test_a_journal_that_is_cut_anywhere_has_its_complete_entries() -> None:
    for size in range(len(JOURNAL) + 1):
        complete = sum(end <= size for end in ENDS[1:])

        assert read_entries(JOURNAL[:size], "journal") == (ENTRIES[:complete], ENDS[complete])


def test_a_journal_with_any_byte_flipped_is_refused_at_the_record(tmp_path: Path) -> None:
    for position in range(len(JOURNAL)):
        damaged = bytearray(JOURNAL)
        damaged[position] ^= 0x20
        start = max(end for end in ENDS if end <= position)

        with pytest.raises(DataLossError, match=rf"'journal'.*at byte {start:,}"):
            read_entries(bytes(damaged), "journal")


def test_a_dispatcher_starts_with_a_journal_that_is_cut_anywhere_in_its_last_entry(tmp_path: Path) -> None:
    config = wb.data.service.DispatcherConfig(work_dir=tmp_path, fault_tolerant_mode=True)
    with wb.data.service.DispatchServer(config) as dispatcher:
        ids = [
            int(wb.data.service.register_dataset(dispatcher.target, wb.data.Dataset.range(n))) for n in (1, 2)
        ]
    journal = tmp_path / "journal"
    whole = journal.read_bytes()
    _, end = read_entries(whole, "")
    first = len(framed(read_entries(whole, "")[0][0]))

    for size in range(first, end):
        journal.write_bytes(whole[:size])
        with wb.data.service.DispatchServer(config) as dispatcher:
            target = dispatcher.target
            again = [int(wb.data.service.register_dataset(target, wb.data.Dataset.range(n))) for n in (1, 2)]
        assert again == ids


def test_a_dispatcher_refuses_a_damaged_journal(tmp_path: Path) -> None:
    config = wb.data.service.DispatcherConfig(work_dir=tmp_path, fault_tolerant_mode=True)
    with wb.data.service.DispatchServer(config) as dispatcher:
        wb.data.service.register_dataset(dispatcher.target, wb.data.Dataset.range(1))
    damaged = bytearray((tmp_path / "journal").read_bytes())
    damaged[20] ^= 1
    (tmp_path / "journal").write_bytes(damaged)

    with pytest.raises(DataLossError, match=r"journal.*byte 0"):
        wb.data.service.DispatchServer(config)
    assert (tmp_path / "journal").read_bytes() == damaged


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_each_element_arrives_once_through_many_kills(processes: Processes) -> None:
    dice = random.Random()
    processes.start_dispatcher()
    for _ in range(3):
        processes.start_worker()
    for _ in range(20):
        elements: list[int] = []
        kills = sorted(dice.sample(range(1, N), 6))
        for x in pipeline(processes.target):
            elements.append(int(x))
            if kills and len(elements) >= kills[0]:
                kills.pop(0)
                if dice.random() < 0.4:
                    processes.kill(processes.dispatcher)
                    processes.start_dispatcher()
                else:
                    processes.kill(processes.workers.pop(dice.randrange(3)))
                    processes.start_worker()
        audit(elements)
