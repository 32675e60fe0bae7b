"""`wb.collectives`, `wb.record` and `wb.open_run`: a table, its exports, and its file."""

from __future__ import annotations

import csv
import json
import os
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import workbench as wb
from tests.ui.conftest import Tags
from workbench.telemetry.snapshot import Counters, Snapshot
from workbench.ui.collectives.limits import measure_limits
from workbench.ui.collectives.timings import Timings
from workbench.ui.collectives.timings_table import HEADINGS, timing_cells


@pytest.fixture(scope="module")
def train(strategy: wb.MirroredStrategy) -> Callable[[], None]:
    """Runs five steps with one all_reduce each, and waits for them."""

    @wb.function
    def step() -> np.ndarray:
        return wb.distribute.get_replica_context().all_reduce("sum", np.ones(256, np.float32))

    def run() -> None:
        for _ in range(5):
            result = strategy.run(step)
        strategy.local_results(result)

    return run


def test_the_table_has_what_just_ran(strategy: wb.MirroredStrategy, train: Callable[[], None]) -> None:
    train()
    found = wb.collectives(strategy)

    assert [(row.op, row.redop, row.size_bytes, row.n) for row in found.rows] == [
        ("all_reduce", "sum", 1024, 2)
    ]
    assert "all_reduce 1 KiB  f32 sum" in repr(found)
    assert max(map(len, repr(found).splitlines())) <= 88


def test_no_column_of_percentages_says_a_false_0_or_100(
    strategy: wb.MirroredStrategy, train: Callable[[], None]
) -> None:
    train()
    row = replace(wb.collectives(strategy).rows[0], cv_percent=0.3, limit_percent=99.8, wait_percent=0.2)
    cells = dict(zip(HEADINGS, timing_cells(row), strict=True))

    assert [cells[title] for title in ("cv %", "lim %", "wait %")] == ["<1", ">99", "<1"]


def test_bandwidth_is_compared_with_a_measured_limit(
    strategy: wb.MirroredStrategy, train: Callable[[], None]
) -> None:
    train()
    own = wb.MirroredStrategy()
    own.run(lambda: wb.distribute.get_replica_context().all_reduce("sum", np.ones(1 << 18)))
    step = own.group.committed_step
    (row,) = wb.collectives(own).rows
    limit = own.group.gang.cluster.feed.limit(row.group)

    assert limit is not None
    assert row.busbw is not None
    assert row.limit_percent == pytest.approx(100 * row.busbw / limit.of(row.size_bytes))
    assert set(limit.copy) == {1 << 16, 1 << 20, 1 << 24}
    assert min(limit.copy.values()) > 0
    assert own.group.committed_step == step  # looking is not a user step


def test_one_replica_has_no_limit(cluster: wb.Cluster) -> None:
    alone = wb.OneDeviceStrategy("CPU:0")
    alone.run(lambda: wb.distribute.get_replica_context().all_reduce("sum", np.ones(1000)))
    (row,) = wb.collectives(alone).rows

    assert (row.n, row.algbw, row.busbw, row.limit_percent) == (1, None, None, None)
    assert cluster.feed.limit(row.group) is None


def test_what_was_lost_is_explained_where_nobody_can_ask() -> None:
    class Lossy:
        def snapshot(self) -> Snapshot:
            return Snapshot(version=1, counters=Counters(collectives=9, dropped=5000))

        def to_arrow(self) -> pa.Table:
            raise AssertionError("nobody has asked for records")

    found = Timings(Lossy())
    assert "9 collectives, 5,000 records dropped" in repr(found)
    assert "the job itself lost nothing" in " ".join(repr(found).split())
    drawn = Tags(found._repr_html_())
    assert "5,000 records dropped" in drawn.text
    assert "the job itself lost nothing" in drawn.text


def test_what_is_busy_is_not_measured(strategy: wb.MirroredStrategy, tmp_path: Path) -> None:
    own, go = wb.MirroredStrategy(), tmp_path / "go"

    def wait(path: str) -> None:
        deadline = time.monotonic() + 30
        while not os.path.exists(path) and time.monotonic() < deadline:
            os.sched_yield()

    waiting = threading.Thread(target=own.run, args=(wait, (str(go),)))
    waiting.start()
    try:
        while not own.group.in_flight and waiting.is_alive():
            os.sched_yield()
        measure_limits(own.group.gang.cluster)
        assert own.group.gang.cluster.feed.limit(own.group.name) is None
    finally:
        go.touch()
        waiting.join(30)


def test_collectives_of_workbench_itself_are_hidden_unless_asked_for(strategy: wb.MirroredStrategy) -> None:
    own = wb.MirroredStrategy()
    data = wb.data.Dataset.range(8).batch(4).map(lambda x: x + 1)
    for batch in own.distribute_dataset(data):
        own.run(
            lambda x: wb.distribute.get_replica_context().all_reduce("sum", np.float32(x.sum())),
            args=(batch,),
        )
    users, everything = wb.collectives(own), wb.collectives(own, internal=True)

    assert {row.purpose for row in users.rows} == {""}
    assert {row.purpose for row in everything.rows} == {"", "input", "limit"}
    assert set(users.to_arrow()["purpose"].to_pylist()) == {""}
    assert set(everything.to_arrow()["purpose"].to_pylist()) == {"", "input", "limit"}
    assert "input" not in repr(users)
    assert "all_gather input" in repr(everything)
    assert max(map(len, repr(everything).splitlines())) <= 88


def test_a_strategy_shows_its_own_collectives_only(
    strategy: wb.MirroredStrategy, train: Callable[[], None]
) -> None:
    train()
    other = wb.MirroredStrategy()
    other.run(lambda: wb.distribute.get_replica_context().all_reduce("sum", np.ones(3)))

    assert {row.dtype for row in wb.collectives(other).rows} == {"float64"}
    assert "float64" not in {row.dtype for row in wb.collectives(strategy).rows}
    assert {row.dtype for row in wb.collectives().rows} == {"float32", "float64"}
    assert set(wb.collectives(other).to_arrow()["bytes"].to_pylist()) == {24}


def test_html_has_the_figures_and_no_script(strategy: wb.MirroredStrategy, train: Callable[[], None]) -> None:
    train()
    drawn = Tags(wb.collectives(strategy)._repr_html_())

    assert "all_reduce" in drawn.text
    assert "script" not in drawn.tags


def test_exports_hold_a_row_per_replica_and_collective(
    strategy: wb.MirroredStrategy, train: Callable[[], None], tmp_path: Path
) -> None:
    train()
    found = wb.collectives(strategy)
    found.to_csv(tmp_path / "t.csv")
    found.to_perfetto(tmp_path / "t.json")
    with open(tmp_path / "t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    trace = json.loads((tmp_path / "t.json").read_text())

    assert len(rows) == len(found.to_pandas()) == found.to_arrow().num_rows
    assert {row["replica"] for row in rows} == {"0", "1"}
    assert any(event["name"] == "all_reduce" for event in trace["traceEvents"])
    assert found.to_nccl_tests().startswith("# all_reduce")
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_recording_can_be_opened_again(
    strategy: wb.MirroredStrategy, train: Callable[[], None], tmp_path: Path
) -> None:
    path = tmp_path / "run.parquet"
    with wb.record(path) as recording:
        train()
        assert recording.status == "live"
        assert not path.exists()
    replay = wb.open_run(path)

    assert recording.status == "stopped"
    assert replay.status == "replay"
    assert sum(row.samples for row in replay.rows if row.size_bytes == 1024) >= 5
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "replay" in Tags(replay._repr_html_()).text


def test_closing_a_recording_twice_is_fine(cluster: wb.Cluster, tmp_path: Path) -> None:
    recording = wb.record(tmp_path / "run.parquet", cluster)

    assert recording.close() == recording.close() == tmp_path / "run.parquet"
    assert cluster.telemetry_listeners == []
    assert repr(recording) == f"<Recording: {str(tmp_path / 'run.parquet')!r}, stopped>"


def test_what_has_no_collectives_is_refused() -> None:
    with pytest.raises(TypeError, match=r"got int; write wb\.collectives\(strategy\)"):
        wb.collectives(3)  # type: ignore[arg-type]
