"""What a replica keeps in memory that outlives its process can be read whole, however much there was."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from workbench.runtime.driver.gang.flight_reader import batch_of
from workbench.telemetry.recording.batches import decode
from workbench.telemetry.recording.flight_memory import (
    POSITION,
    ROW,
    ROWS,
    Flight,
    FlightMemory,
    FlightReader,
    Identity,
)
from workbench.telemetry.recording.ring import Ring
from workbench.telemetry.records import COLUMNS, Record, Signature

WHO = Identity("d", "run", 1, "a", "cpu:1", 2)
SIGNATURE = Signature(3, "g", "all_reduce", "sum", "float32", "direct", 1, "shm", "ok", "In[1]:3")


@pytest.fixture
def memory() -> Iterator[FlightMemory]:
    made = FlightMemory("7-1", WHO)
    yield made
    made.words.release()  # pytest still holds it when it looks for leftovers
    made.buffer.close()


@pytest.fixture
def reader(memory: FlightMemory) -> Iterator[FlightReader]:
    (path,) = [
        path
        for path in (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
        if os.path.exists(path) and "workbench-flight-7-1" in os.readlink(path)
    ]
    found = FlightReader(path)
    yield found
    found.close()


def written(memory: FlightMemory, steps: int, sites: int = 1) -> Ring:
    ring = Ring(ROWS, replica=1, host="a", device="cpu:1", run_id="run", size=2, memory=memory)
    for step in range(steps):
        memory.begin(step)
        for seq in range(2):
            memory.words[POSITION] = seq
            signature = SIGNATURE._replace(site=f"In[{step % sites}]:3")
            ring.write(ring.number(signature), step, seq, 1, 4, 10 * step, 10 * step + 1, 10 * step + 2)
    return ring


@pytest.mark.parametrize("steps", [1, 20, ROWS // 2, ROWS // 2 + 7, 3 * ROWS])
def test_the_newest_records_are_there_in_their_order(
    memory: FlightMemory, reader: FlightReader, steps: int
) -> None:
    written(memory, steps)
    found = reader.read()
    assert (found.identity, found.signatures) == (WHO, [SIGNATURE._replace(site="In[0]:3")])
    assert (found.step, found.seq, found.inside) == (steps - 1, 1, False)
    expected = [(step, seq) for step in range(steps) for seq in range(2)][-ROWS:]
    assert [row[2:4] for row in ROW.iter_unpack(found.rows)] == expected


def test_where_the_replica_was_and_all_collectives_that_it_completed_are_kept(
    memory: FlightMemory, reader: FlightReader
) -> None:
    ring = written(memory, 3)
    memory.begin(3)
    before = reader.read()
    assert (before.step, before.seq, before.inside) == (3, -1, False)
    for seq in range(2):
        memory.words[POSITION] = seq
        entered = reader.read()
        assert (entered.step, entered.seq, entered.inside) == (3, seq, True)
        ring.write(ring.number(SIGNATURE), 3, seq, 1, 4, 1, 2, 3)
        left = reader.read()
        assert (left.step, left.seq, left.inside) == (3, seq, False)
        assert [*ROW.iter_unpack(left.rows)][-1][2:4] == (3, seq)


def test_a_step_that_is_tried_again_is_not_taken_for_the_one_before(
    memory: FlightMemory, reader: FlightReader
) -> None:
    written(memory, 1)
    memory.begin(0)
    memory.words[POSITION] = 1
    assert reader.read().inside


def test_draining_takes_no_record_away_from_who_reads_after_a_kill(
    memory: FlightMemory, reader: FlightReader
) -> None:
    ring = written(memory, 3)
    drained = ring.take()
    assert drained.rows == reader.read().rows
    assert not ring.take()


def test_a_memory_without_room_for_more_call_sites_leaves_their_records_out(
    memory: FlightMemory, reader: FlightReader
) -> None:
    written(memory, 4000, sites=4000)
    found = reader.read()
    known = [row for row in ROW.iter_unpack(found.rows) if row[1] < len(found.signatures)]
    assert 0 < len(known) < ROWS
    header, _ = decode(batch_of(found, (-1, -1), "g", 3))
    assert header.count == len(known)


def test_what_has_not_been_sent_becomes_a_batch(memory: FlightMemory, reader: FlightReader) -> None:
    written(memory, 5)
    flight: Flight = reader.read()._replace(clock=(17, 5))
    columns = decode(batch_of(flight, (2, 0), "g", 3))[1]
    records = [Record(*row) for row in zip(*(columns[name].tolist() for name in COLUMNS), strict=True)]
    assert [(record.step, record.seq) for record in records] == [(2, 1), (3, 0), (3, 1), (4, 0), (4, 1)]
    assert {(record.replica, record.host, record.device, record.n) for record in records} == {
        (1, "a", "cpu:1", 2)
    }
    assert {(record.clock_offset_ns, record.clock_err_ns) for record in records} == {(17, 5)}
    assert batch_of(flight, (4, 1), "g", 3) == b""
    assert batch_of(flight, (-1, -1), "g", 2) == b""  # of another generation
