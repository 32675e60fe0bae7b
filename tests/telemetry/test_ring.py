"""The ring: nothing is lost silently, nothing comes out twice, text comes out as it went in."""

from __future__ import annotations

import threading
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.telemetry import batches
from workbench.telemetry.records import COLUMNS, InFlight, Signature, schema
from workbench.telemetry.ring import _MAX_SIGNATURES, Ring


def write(ring: Ring, seq: int, *, site: str = "train.py:84", step: int = 0) -> None:
    enter = 1_000_000 + seq * 1000
    number = ring.number(
        Signature(1, "g", "all_reduce", "sum", "float32", "direct", 2, "shm", "ok", site, "input")
    )
    ring.write(number, step, seq, 256, 1024, enter, enter + 100, enter + 300)


def table(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()


def test_a_drained_batch_has_the_documented_schema_and_values() -> None:
    ring = Ring(8, replica=3, host="b", device="cpu:1", run_id="run", size=4)
    ring.clock_offset_ns, ring.clock_err_ns = 17, 5
    write(ring, 7)
    batch = table(ring.drain())
    assert batch.schema.equals(schema())
    assert batch.column_names == list(COLUMNS)
    assert batch.to_pylist() == [
        {
            "run_id": "run",
            "generation": 1,
            "step": 0,
            "seq": 7,
            "group": "g",
            "op": "all_reduce",
            "redop": "sum",
            "dtype": "float32",
            "count": 256,
            "bytes": 1024,
            "algorithm": "direct",
            "packs": 2,
            "transport": "shm",
            "replica": 3,
            "host": "b",
            "device": "cpu:1",
            "t_enter_ns": 1_007_000,
            "t_start_ns": 1_007_100,
            "t_end_ns": 1_007_300,
            "clock_offset_ns": 17,
            "clock_err_ns": 5,
            "state": "ok",
            "site": "train.py:84",
            "purpose": "input",
            "n": 4,
        }
    ]


def test_draining_an_idle_ring_gives_nothing() -> None:
    ring = Ring(8, replica=0)
    assert ring.drain() == b""
    write(ring, 0)
    assert ring.drain() != b""
    assert ring.drain() == b""


def test_a_full_ring_keeps_the_newest_records_and_counts_the_lost_ones() -> None:
    ring = Ring(5, replica=0)
    for seq in range(12):
        write(ring, seq)
    header, columns = batches.decode(ring.drain())
    assert columns["seq"].tolist() == [7, 8, 9, 10, 11]
    assert (header.count, header.dropped) == (5, 7)


@given(capacity=st.integers(1, 9), bursts=st.lists(st.integers(0, 30), max_size=20))
def test_every_record_is_drained_once_or_counted_as_dropped(capacity: int, bursts: list[int]) -> None:
    ring = Ring(capacity, replica=0)
    written = 0
    drained: list[int] = []
    for burst in bursts:
        for _ in range(burst):
            write(ring, written)
            written += 1
        if data := ring.drain():
            drained += map(int, batches.decode(data)[1]["seq"].tolist())
    assert drained == sorted(set(drained))
    assert len(drained) + ring.dropped == written
    assert not bursts or not bursts[-1] or drained[-1] == written - 1


def test_records_written_after_the_reader_has_looked_come_with_the_next_batch() -> None:
    ring = Ring(4, replica=0)
    for seq in range(4):
        write(ring, seq)
    columns = ring._columns

    def interrupted(rows: object) -> object:
        for seq in range(4, 10):  # the writer goes on while the reader makes columns
            write(ring, seq)
        return columns(rows)  # type: ignore[arg-type]

    ring._columns = interrupted  # type: ignore[method-assign,assignment]
    first = ring.drain()
    ring._columns = columns  # type: ignore[method-assign]
    seqs = [batches.decode(data)[1]["seq"].tolist() for data in (first, ring.drain())]
    assert seqs == [[0, 1, 2, 3], [6, 7, 8, 9]]
    assert ring.dropped == 2


def test_each_distinct_text_is_stored_once() -> None:
    ring = Ring(64, replica=0)
    for seq in range(64):
        write(ring, seq, site=f"cell:{seq % 3}")
    assert len(ring._signatures) == 3
    _, columns = batches.decode(ring.drain())
    assert isinstance(columns["site"], batches.Text)
    assert columns["site"].values == ("cell:0", "cell:1", "cell:2")
    assert columns["site"].tolist() == [f"cell:{seq % 3}" for seq in range(64)]


def test_endless_new_call_sites_do_not_grow_the_ring() -> None:
    ring = Ring(8, replica=0)
    for seq in range(_MAX_SIGNATURES + 50):
        write(ring, seq, site=f"cell:{seq}")
    assert len(ring._signatures) == _MAX_SIGNATURES + 1
    assert {record.site for record in ring.recent()} == {""}


def test_recent_shows_the_newest_records_and_takes_nothing_out() -> None:
    ring = Ring(8, replica=2, host="a", size=3)
    for seq in range(6):
        write(ring, seq)
    ring.drain()
    assert [record.seq for record in ring.recent(2)] == [4, 5]
    write(ring, 6)
    record = ring.recent()[-1]
    assert (record.seq, record.host, record.op, record.n) == (6, "a", "all_reduce", 3)
    assert record.site == "train.py:84"
    assert type(record.as_dict()["seq"]) is int
    assert batches.decode(ring.drain())[0].count == 1


def test_a_collective_that_lasts_is_told_once_as_entered() -> None:
    signature = Signature(1, "g", "all_gather", "", "float32", "ring", 0, "tcp", "entered", "x.py:1")
    waiting = InFlight(signature, step=0, seq=9, count=256, bytes=1024, t_enter_ns=5000)
    ring = Ring(8, replica=2, host="a", device="cpu:2", run_id="run", size=3)
    write(ring, 8)
    rows = table(ring.drain(waiting)).to_pylist()
    assert [(row["seq"], row["state"], row["op"]) for row in rows] == [
        (8, "ok", "all_reduce"),
        (9, "entered", "all_gather"),
    ]
    entered = rows[1]
    assert (entered["t_enter_ns"], entered["t_end_ns"], entered["site"]) == (5000, 0, "x.py:1")
    assert (entered["replica"], entered["host"], entered["run_id"], entered["n"]) == (2, "a", "run", 3)
    assert ring.drain(waiting) == b""
    assert ring.drain(None) == b""
    assert table(ring.drain(replace(waiting, seq=10))).num_rows == 1


def test_events_travel_with_the_batch_and_are_bounded() -> None:
    ring = Ring(8, replica=1, host="a")
    ring.emit("alert", "nan", "loss is NaN", severity="error", step=118)
    header, columns = batches.decode(ring.drain())
    (event,) = header.events
    assert (event.name, event.replica, event.host, event.step) == ("nan", 1, "a", 118)
    assert len(columns["seq"]) == 0
    for line in range(3000):
        ring.emit("log", "stdout", f"{line}")
    header, _ = batches.decode(ring.drain())
    assert header.events[-1].message == "2999"
    assert len(header.events) + header.dropped_events == 3000


def test_an_endless_line_of_output_is_cut() -> None:
    ring = Ring(8, replica=0)
    ring.emit("log", "stdout", "x" * 100_000)
    (event,) = batches.decode(ring.drain())[0].events
    assert len(event.message) == 8192
    assert event.message.endswith("…")


def test_writer_and_reader_at_once_lose_and_tear_nothing() -> None:
    ring, total = Ring(64, replica=0), 20_000
    parts: list[bytes] = []

    def write_all() -> None:
        for seq in range(total):
            write(ring, seq, step=seq)

    writer = threading.Thread(target=write_all)
    writer.start()
    while writer.is_alive():
        parts.append(ring.drain())
    writer.join(timeout=10)
    parts.append(ring.drain())
    rows = [row for data in parts if data for row in table(data).to_pylist()]
    seqs = [row["seq"] for row in rows]
    assert seqs == sorted(set(seqs))
    assert len(seqs) + ring.dropped == total
    assert all(row["step"] == row["seq"] for row in rows)
    assert all(row["t_end_ns"] == 1_000_300 + row["seq"] * 1000 for row in rows)


def test_a_ring_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Ring(0, replica=0)
