"""Recorded runs: whole or not there, only for their owner, and the same views as live."""

from __future__ import annotations

import errno
import os
import pickle
import stat
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.telemetry.simulation import MS, Call, Replicas, steps
from workbench.errors import ClusterClosed, DataCorruption, InvalidArgumentError, NotFoundError, StorageFull
from workbench.telemetry.clocks import Anchor
from workbench.telemetry.events import Event
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.feed.stuck import STUCK_AFTER_NS
from workbench.telemetry.limits import Limit
from workbench.telemetry.records import ADDED_COLUMNS, COLUMNS
from workbench.telemetry.runs import recorder as recorder_module
from workbench.telemetry.runs import run_metadata
from workbench.telemetry.runs.checksummed import sealed
from workbench.telemetry.runs.recorded_run import open_run
from workbench.telemetry.runs.recorder import Recorder
from workbench.telemetry.runs.saved_models import LOOKS_KEY, MAX_MODEL_BYTES, Looks
from workbench.telemetry.told import EpochFacts, InputFacts, MemoryFacts, ResultCourse, SentSteps, Told

TOLD = Told(
    1,
    InputFacts((0.4, 0.1), 40, 2500.0, (8, 0), (0, 3)),
    MemoryFacts(1, 90, 100, 5, 2),
    ResultCourse("loss", "train", (3, 4), (1.5, None), ((1.0, 2.0), (2.0, None))),
    0.8,
    EpochFacts(2, 40, 100),
    SentSteps((3, 4), (1000, 2000), (0, 500)),
)
LATE = 91 * MS + STUCK_AFTER_NS


def record(path: Path, *, count: int = 40) -> Feed:
    """Records a run of 3 replicas with a straggler, losses and a collective that got stuck."""
    replicas = Replicas(["a", "a", "b"], {"b": 12345}, err_ns=50, capacity=16)
    feed = Feed(now_ns=lambda: LATE)
    with Recorder(path, anchor=Anchor(1, 2)) as recorder:
        for start in range(0, count, 10):
            replicas.record(*steps(10, [0, 5000, 400_000], first=start))
            replicas.rings[1].emit("log", "stdout", f"step {start}")
            for data in replicas.drain():
                feed.ingest(data)
                recorder.add(data)
        replicas.record(*steps(30, [0, 0, 400_000], first=count))  # more than the ring holds
        replicas.record(Call([90 * MS, 91 * MS, None], 0, step=99, state="entered"))
        for data in replicas.drain():
            feed.ingest(data)
            recorder.add(data)
        for sink in (feed, recorder):
            sink.add_event(Event("lifecycle", "replica_lost", "replica 2 was killed", 95 * MS, "error", 2))
    return feed


def test_a_reopened_run_shows_the_same_snapshot_as_the_live_feed(tmp_path: Path) -> None:
    feed = record(tmp_path / "run.parquet")
    run = open_run(tmp_path / "run.parquet")
    live = feed.snapshot()
    assert run.snapshot() == live
    assert run.table() == live.table
    assert live.counters.dropped > 0
    assert live.groups[0].stuck is not None
    assert live.groups[0].lateness.stragglers
    assert [event.name for event in run.events] == ["stdout"] * 4 + ["replica_lost"]
    assert run.anchor == Anchor(1, 2)


def test_the_records_come_back_as_they_were(tmp_path: Path) -> None:
    feed = record(tmp_path / "run.parquet")
    key = [("step", "ascending"), ("seq", "ascending"), ("replica", "ascending")]
    recorded = open_run(tmp_path / "run.parquet").to_arrow().sort_by(key)
    assert recorded.to_pylist() == feed.to_arrow().sort_by(key).to_pylist()
    assert list(open_run(tmp_path / "run.parquet").to_pandas().columns) == recorded.column_names


def test_a_run_folds_many_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_module, "_ROW_GROUP", 32)
    feed = record(tmp_path / "run.parquet")
    assert pq.ParquetFile(tmp_path / "run.parquet").metadata.num_row_groups > 2
    assert open_run(tmp_path / "run.parquet").snapshot() == feed.snapshot()


def test_the_file_appears_whole_and_only_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    path.write_bytes(b"an earlier run")
    recorder = Recorder(path)
    (partial,) = (file for file in tmp_path.iterdir() if file != path)
    assert stat.S_IMODE(partial.stat().st_mode) == 0o600
    assert path.read_bytes() == b"an earlier run"
    recorder.close()
    assert list(tmp_path.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert open_run(path).snapshot().table == ()


def test_an_error_in_the_run_does_not_lose_the_recording(tmp_path: Path) -> None:
    replicas = Replicas(["a"])
    replicas.record(*steps(3, [0]))

    def failing_run() -> None:
        with Recorder(tmp_path / "run.parquet") as recorder:
            recorder.add(replicas.drain()[0])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing_run()
    assert open_run(tmp_path / "run.parquet").to_arrow().num_rows == 3


def test_a_batch_that_comes_twice_is_recorded_once(tmp_path: Path) -> None:
    replicas = Replicas(["a"])
    replicas.record(*steps(3, [0]))
    (data,) = replicas.drain()
    with Recorder(tmp_path / "run.parquet") as recorder:
        recorder.add(data)
        recorder.add(data)
        recorder.add(b"")
    assert open_run(tmp_path / "run.parquet").to_arrow().num_rows == 3


def test_a_closed_recording_refuses_more(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run.parquet")
    assert recorder.close() == recorder.close() == tmp_path / "run.parquet"
    with pytest.raises(ClusterClosed, match=r"run\.parquet was closed"):
        recorder.add_event(Event("log", "stdout", "x", 0))


def test_a_full_disk_leaves_the_earlier_run_intact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.parquet"
    record(path)
    before = path.read_bytes()
    recorder = Recorder(path)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull, match=r"no space left for the recording .*run\.parquet"):
        recorder.close()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no recorded run .*nothing\.parquet"):
        open_run(tmp_path / "nothing.parquet")


def test_another_parquet_file_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    with pytest.raises(DataCorruption, match=r"x\.parquet is a Parquet file, but not a run"):
        open_run(tmp_path / "x.parquet")


def test_a_file_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_metadata, "VERSION", 7)
    record(tmp_path / "run.parquet")
    monkeypatch.undo()
    with pytest.raises(DataCorruption, match=r"run\.parquet: the run has version 7, .* reads 2"):
        open_run(tmp_path / "run.parquet")


def test_a_file_whose_facts_make_no_sense_is_refused(tmp_path: Path) -> None:
    record(tmp_path / "run.parquet")
    table = pq.read_table(tmp_path / "run.parquet")
    text = b'{"version": 2, "anchor": [1, 2], "dropped": 0, "dropped_events": 0, "events": [{"evil": 1}]}'
    for data in (b"%08x %s" % (zlib.crc32(text), text), b"00000000 " + text, b""):
        pq.write_table(table.replace_schema_metadata({run_metadata.RUN_KEY: data}), tmp_path / "bad.parquet")
        with pytest.raises(DataCorruption, match=r"bad\.parquet: the description of the run"):
            open_run(tmp_path / "bad.parquet")


def test_a_run_cut_anywhere_is_refused(tmp_path: Path) -> None:
    record(tmp_path / "run.parquet")
    whole = (tmp_path / "run.parquet").read_bytes()
    cut = tmp_path / "cut.parquet"
    for length in range(0, len(whole), max(1, len(whole) // 100)):
        cut.write_bytes(whole[:length])
        with pytest.raises(DataCorruption, match=r"cut\.parquet"):
            open_run(cut)


def test_a_flipped_byte_in_the_records_is_noticed(tmp_path: Path) -> None:
    record(tmp_path / "run.parquet")
    path = tmp_path / "run.parquet"
    whole = path.read_bytes()
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    begin, length = column.dictionary_page_offset, column.total_compressed_size
    damaged = tmp_path / "damaged.parquet"
    # The last bytes of the column chunk are page data, which the checksum covers (headers are not covered).
    changed = bytearray(whole)
    changed[begin + length - 1] ^= 0x10
    damaged.write_bytes(changed)
    with pytest.raises(DataCorruption, match=r"damaged\.parquet"):
        open_run(damaged).snapshot()


def test_damage_anywhere_is_noticed_or_harmless(tmp_path: Path) -> None:
    record(tmp_path / "run.parquet", count=10)
    whole = (tmp_path / "run.parquet").read_bytes()
    intact = open_run(tmp_path / "run.parquet")
    records, table = intact.to_arrow().to_pylist(), intact.table()
    damaged = tmp_path / "damaged.parquet"
    positions = range(0, len(whole), max(1, len(whole) // 300))
    unnoticed = 0
    for position in positions:
        changed = bytearray(whole)
        changed[position] ^= 0x04
        damaged.write_bytes(changed)
        try:
            run = open_run(damaged)
            found = run.to_arrow().to_pylist(), run.table(), run.events
        except DataCorruption:
            continue
        unnoticed += 1
        assert found == (records, table, intact.events), position
    assert unnoticed < len(positions) / 2  # the rest is in headers that change nothing


def test_opening_does_not_run_what_a_file_contains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path / "run.parquet")

    def forbidden(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a recorded run was unpickled or evaluated")

    for name in ("pickle.loads", "pickle.load", "marshal.loads", "builtins.eval"):
        monkeypatch.setattr(name, forbidden)
    assert open_run(tmp_path / "run.parquet").snapshot().table


def metadata_of(path: Path) -> dict[bytes, bytes]:
    """What a recorded run has beside its records."""
    found = pq.ParquetFile(path).metadata.metadata
    return {key: found[key] for key in (run_metadata.RUN_KEY, LOOKS_KEY)}


def rewritten(path: Path, change: Callable[[pa.Table], pa.Table]) -> Path:
    """A recorded run with other records in it."""
    other = path.with_name("other.parquet")
    table = pq.read_table(path)
    pq.write_table(change(table).replace_schema_metadata(metadata_of(path)), other)
    return other


def with_column(name: str, column: pa.Array) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.set_column(table.column_names.index(name), name, column(table))


@pytest.mark.parametrize(
    ("name", "column", "problem"),
    [
        ("seq", lambda table: pa.array(["1"] * len(table)), "column 'seq' has type string, not int64"),
        ("seq", lambda table: pa.array([1.5] * len(table)), "column 'seq' has type double, not int64"),
        ("host", lambda table: pa.array(range(len(table))), "column 'host' has type int64, not text"),
        ("host", lambda table: pa.array([b"a"] * len(table)), "column 'host' has type binary, not text"),
        ("n", lambda table: pa.array([2**31 - 1] * len(table), pa.int32()), "'n' has values that no run has"),
        ("replica", lambda table: pa.array([-1] * len(table), pa.int32()), "'replica' has values that no"),
        ("step", lambda table: pa.array([None] * len(table), pa.int64()), "lack"),
        ("op", lambda table: pa.array([None] * len(table), pa.string()), "lack"),
    ],
)
def test_records_of_other_types_or_with_senseless_numbers_are_refused(
    tmp_path: Path, name: str, column: Any, problem: str
) -> None:
    record(tmp_path / "run.parquet")
    other = rewritten(tmp_path / "run.parquet", with_column(name, column))

    with pytest.raises(DataCorruption, match=rf"other\.parquet.*{problem}"):
        open_run(other).snapshot()


def test_a_column_more_is_no_matter_and_one_less_is(tmp_path: Path) -> None:
    record(tmp_path / "run.parquet")
    whole = open_run(tmp_path / "run.parquet").snapshot()
    more = rewritten(
        tmp_path / "run.parquet", lambda table: table.append_column("later", pa.array(range(len(table))))
    )
    assert open_run(more).snapshot() == whole

    less = rewritten(tmp_path / "run.parquet", lambda table: table.drop_columns(["purpose"]))
    with pytest.raises(DataCorruption, match="not a run that workbench recorded"):
        open_run(less)


def test_a_run_recorded_before_a_column_came_opens_with_unknown_values(tmp_path: Path) -> None:
    record(tmp_path / "run.parquet")
    older = rewritten(tmp_path / "run.parquet", lambda table: table.drop_columns(list(ADDED_COLUMNS)))
    run, whole = open_run(older), open_run(tmp_path / "run.parquet")

    assert list(ADDED_COLUMNS) == ["inputs"]
    assert run.to_arrow().schema.equals(whole.to_arrow().schema)
    assert set(run.to_arrow().column("inputs").to_pylist()) == {""}
    assert (
        run.to_arrow().drop_columns(["inputs"]).to_pylist()
        == whole.to_arrow().drop_columns(["inputs"]).to_pylist()
    )
    assert run.span() == whole.span()
    assert run.snapshot().groups[0].stuck == whole.snapshot().groups[0].stuck
    assert run.snapshot().table == whole.snapshot().table
    assert list(run.to_pandas().columns) == list(COLUMNS)


def test_a_column_that_came_later_is_checked_where_it_is_there(tmp_path: Path) -> None:
    record(tmp_path / "run.parquet")
    other = rewritten(
        tmp_path / "run.parquet", with_column("inputs", lambda table: pa.array(range(len(table))))
    )

    with pytest.raises(DataCorruption, match="'inputs' has type int64, not text"):
        open_run(other)


def test_a_pickle_is_no_run_and_is_not_loaded(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return open, (str(tmp_path / "hit"), "w")

    record(tmp_path / "run.parquet")
    bomb = pickle.dumps(Evil())
    (tmp_path / "bomb.parquet").write_bytes(bomb)
    with pytest.raises(DataCorruption, match=r"bomb\.parquet"):
        open_run(tmp_path / "bomb.parquet")
    table = pq.read_table(tmp_path / "run.parquet")
    for key in (run_metadata.RUN_KEY, LOOKS_KEY):
        metadata = metadata_of(tmp_path / "run.parquet") | {key: sealed(bomb)}
        pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "bomb.parquet")
        with pytest.raises(DataCorruption, match=r"bomb\.parquet.*makes no sense"):
            open_run(tmp_path / "bomb.parquet")
    assert not (tmp_path / "hit").exists()


def test_steps_are_shown_by_themselves(tmp_path: Path) -> None:
    record(tmp_path / "run.parquet")
    run = open_run(tmp_path / "run.parquet")

    some = run.snapshot_of(range(10, 13))

    assert sum(row.samples for row in some.table) == 3
    assert {item.step for group in some.groups for item in group.items} == {10, 11, 12}
    assert [group.stuck for group in some.groups] == [None]
    stuck = run.snapshot_of(range(99, 100)).groups[0].stuck
    assert stuck is not None
    assert stuck.missing == (2,)
    with pytest.raises(InvalidArgumentError, match="such as range"):
        run.snapshot_of(range(-1, 3))


def test_how_much_was_recorded_is_read_without_its_texts(tmp_path: Path) -> None:
    record(tmp_path / "run.parquet")
    run = open_run(tmp_path / "run.parquet")

    span, table = run.span(), run.to_arrow()

    assert (span.records, span.replicas) == (len(table), 3)
    assert (span.first_step, span.last_step) == (0, 99)
    assert span.begin_ns == min(row["t_enter_ns"] + row["clock_offset_ns"] for row in table.to_pylist())
    assert span.seconds > 0


def test_an_empty_run_has_no_span(tmp_path: Path) -> None:
    Recorder(tmp_path / "run.parquet").close()
    run = open_run(tmp_path / "run.parquet")

    assert run.span().seconds == 0
    assert (run.span().records, run.span().first_step) == (0, -1)
    assert run.snapshot().table == ()
    assert run.transfers() == {}


def test_what_views_have_shown_and_measured_limits_come_back(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    replicas = Replicas(["a", "a"])
    replicas.record(*steps(3, [0, 0]))
    with Recorder(path) as recorder:
        for data in replicas.drain():
            recorder.add(data)
        recorder.keep("topology", {"run": "first"})
        recorder.keep("topology", {"run": "<b>second</b> €"})
        recorder.keep("values", {"text": "x" * MAX_MODEL_BYTES})
        recorder.set_limit("g", Limit(copy={4096: 10.0}))
        recorder.set_told("g", TOLD)
    recorder.keep("topology", {"run": "too late"})

    run = open_run(path)

    assert run.looks.model("topology") == {"run": "<b>second</b> €"}
    assert run.looks.model("devices") is None
    assert run.looks.left_out == ("values",)
    assert run.looks.limits == {"g": Limit(copy={4096: 10.0})}
    assert run.looks.told == {"g": TOLD}
    assert run.snapshot().groups[0].told == TOLD
    (row,) = run.table()
    assert row.limit_percent == pytest.approx(10.0 * (row.busbw or 0))


def test_a_number_of_the_steps_that_is_not_known_by_step_is_damage() -> None:
    course = replace(TOLD.result, mean=(1.0,)) if TOLD.result else None
    for damaged in (
        replace(TOLD, result=course),
        *(
            replace(TOLD, sent=sent)
            for sent in (SentSteps((3, 4), (1000,)), SentSteps((3,), (1000,), (0, 5)))
        ),
    ):
        with pytest.raises(DataCorruption, match="by step"):
            Looks.decode(Looks(told={"g": damaged}).encode())


def test_a_run_of_a_version_that_kept_no_views_still_opens(tmp_path: Path) -> None:
    feed = record(tmp_path / "run.parquet")
    table = pq.read_table(tmp_path / "run.parquet")
    metadata = {run_metadata.RUN_KEY: metadata_of(tmp_path / "run.parquet")[run_metadata.RUN_KEY]}
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "old.parquet")

    assert open_run(tmp_path / "old.parquet").snapshot() == feed.snapshot()
