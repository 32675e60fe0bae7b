"""The ring: nothing is lost silently, nothing comes out twice, text comes out as it went in."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.telemetry.reading import drained, records
from workbench.telemetry.recording import batches
from workbench.telemetry.recording import drain as draining
from workbench.telemetry.recording.ring import _MAX_SIGNATURES, Replica, Ring
from workbench.telemetry.records import COLUMNS, InFlight, Signature, schema


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
    batch = table(drained(ring))
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
            "inputs": "",
        }
    ]


def test_draining_an_idle_ring_gives_nothing() -> None:
    ring = Ring(8, replica=0)
    assert drained(ring) == b""
    write(ring, 0)
    assert drained(ring) != b""
    assert drained(ring) == b""


def test_a_full_ring_keeps_the_newest_records_and_counts_the_lost_ones() -> None:
    ring = Ring(5, replica=0)
    for seq in range(12):
        write(ring, seq)
    header, columns = batches.decode(drained(ring))
    assert columns["seq"].tolist() == [7, 8, 9, 10, 11]
    assert (header.count, header.dropped) == (5, 7)


@given(capacity=st.integers(1, 9), bursts=st.lists(st.integers(0, 30), max_size=20))
def test_every_record_is_drained_once_or_counted_as_dropped(capacity: int, bursts: list[int]) -> None:
    ring = Ring(capacity, replica=0)
    written = 0
    seqs: list[int] = []
    for burst in bursts:
        for _ in range(burst):
            write(ring, written)
            written += 1
        if data := drained(ring):
            seqs += map(int, batches.decode(data)[1]["seq"].tolist())
    assert seqs == sorted(set(seqs))
    assert len(seqs) + ring.dropped == written
    assert not bursts or not bursts[-1] or seqs[-1] == written - 1


def test_records_written_after_the_reader_has_looked_come_with_the_next_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ring = Ring(4, replica=0)
    for seq in range(4):
        write(ring, seq)
    columns = draining._columns

    def interrupted(parts: Any) -> Any:
        for seq in range(4, 10):  # the writer continues while the reader makes columns
            write(ring, seq)
        return columns(parts)

    with monkeypatch.context() as patch:
        patch.setattr(draining, "_columns", interrupted)
        first = drained(ring)
    seqs = [batches.decode(data)[1]["seq"].tolist() for data in (first, drained(ring))]
    assert seqs == [[0, 1, 2, 3], [6, 7, 8, 9]]
    assert ring.dropped == 2


def test_each_distinct_text_is_stored_once() -> None:
    ring = Ring(64, replica=0)
    for seq in range(64):
        write(ring, seq, site=f"cell:{seq % 3}")
    assert len(ring.signatures) == 3
    _, columns = batches.decode(drained(ring))
    assert isinstance(columns["site"], batches.Text)
    assert columns["site"].values == ("cell:0", "cell:1", "cell:2")
    assert columns["site"].tolist() == [f"cell:{seq % 3}" for seq in range(64)]


def test_endless_new_call_sites_do_not_grow_the_ring() -> None:
    ring = Ring(8, replica=0)
    for seq in range(_MAX_SIGNATURES + 50):
        write(ring, seq, site=f"cell:{seq}")
    assert len(ring.signatures) == _MAX_SIGNATURES + 1
    assert {record.site for record in records(ring)} == {""}


def test_the_rings_of_a_worker_are_drained_into_one_batch() -> None:
    rings = [Ring(8, replica=r, host="a", device=f"cpu:{r}", run_id="run", size=2) for r in range(2)]
    drain = draining.Drain()
    for seq in range(3):
        write(rings[0], seq, site="a.py:1")
    write(rings[1], 5, site="b.py:2")
    rings[1].emit("log", "stdout", "hello")
    header, columns = batches.decode(drain.take([(ring, None) for ring in rings]))
    assert (header.count, header.batch, len(header.events)) == (4, 0, 1)
    for name, expected in {
        "seq": [0, 1, 2, 5],
        "replica": [0, 0, 0, 1],
        "device": ["cpu:0", "cpu:0", "cpu:0", "cpu:1"],
        "site": ["a.py:1", "a.py:1", "a.py:1", "b.py:2"],
    }.items():
        assert columns[name].tolist() == expected
    assert drain.take([(ring, None) for ring in rings]) == b""


def test_a_batch_tells_what_all_rings_have_lost_so_far_also_those_that_are_gone() -> None:
    drain = draining.Drain()
    for replica in range(2):
        ring = Ring(4, replica=replica)
        for seq in range(10):
            write(ring, seq)
        header, _ = batches.decode(drain.take([(ring, None)]))
    assert (header.count, header.dropped, header.batch) == (4, 12, 1)


def test_a_record_that_holds_of_several_replicas_is_written_once_and_comes_out_for_each() -> None:
    ring = Ring(2, replica=4, host="a", device="tpu:0", size=8, others=[Replica(5, "tpu:1")])
    for seq in range(3):
        write(ring, seq)
    header, columns = batches.decode(drained(ring))
    assert (header.count, header.dropped) == (4, 2)
    assert columns["seq"].tolist() == [1, 1, 2, 2]
    assert columns["replica"].tolist() == [4, 5, 4, 5]
    assert columns["device"].tolist() == ["tpu:0", "tpu:1", "tpu:0", "tpu:1"]


def test_a_collective_that_lasts_is_told_once_as_entered() -> None:
    signature = Signature(1, "g", "all_gather", "", "float32", "ring", 0, "tcp", "entered", "x.py:1")
    waiting = InFlight(signature, step=0, seq=9, count=256, bytes=1024, t_enter_ns=5000)
    ring = Ring(8, replica=2, host="a", device="cpu:2", run_id="run", size=3)
    write(ring, 8)
    rows = table(drained(ring, waiting)).to_pylist()
    assert [(row["seq"], row["state"], row["op"]) for row in rows] == [
        (8, "ok", "all_reduce"),
        (9, "entered", "all_gather"),
    ]
    entered = rows[1]
    assert (entered["t_enter_ns"], entered["t_end_ns"], entered["site"]) == (5000, 0, "x.py:1")
    assert (entered["replica"], entered["host"], entered["run_id"], entered["n"]) == (2, "a", "run", 3)
    assert drained(ring, waiting) == b""
    assert drained(ring, None) == b""
    assert table(drained(ring, replace(waiting, seq=10))).num_rows == 1


def test_events_travel_with_the_batch_and_are_bounded() -> None:
    ring = Ring(8, replica=1, host="a")
    ring.emit("alert", "nan", "loss is NaN", severity="error", step=118)
    header, columns = batches.decode(drained(ring))
    (event,) = header.events
    assert (event.name, event.replica, event.host, event.step) == ("nan", 1, "a", 118)
    assert len(columns["seq"]) == 0
    for line in range(3000):
        ring.emit("log", "stdout", f"{line}")
    header, _ = batches.decode(drained(ring))
    assert header.events[-1].message == "2999"
    assert len(header.events) + header.dropped_events == 3000


def test_an_endless_line_of_output_is_cut() -> None:
    ring = Ring(8, replica=0)
    ring.emit("log", "stdout", "x" * 100_000)
    (event,) = batches.decode(drained(ring))[0].events
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
        parts.append(drained(ring))
    writer.join(timeout=10)
    parts.append(drained(ring))
    rows = [row for data in parts if data for row in table(data).to_pylist()]
    seqs = [row["seq"] for row in rows]
    assert seqs == sorted(set(seqs))
    assert len(seqs) + ring.dropped == total
    assert all(row["step"] == row["seq"] for row in rows)
    assert all(row["t_end_ns"] == 1_000_300 + row["seq"] * 1000 for row in rows)


def test_a_ring_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Ring(0, replica=0)
