"""`wb.collectives`, `wb.record` and `wb.open_run`: a table, its exports, and its file."""

from __future__ import annotations

import csv
import json
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from tests.ui.conftest import Tags


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
