"""The page of recorded runs, whatever happens meanwhile to what it lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.telemetry.runs.test_recorder import record
from workbench.dashboards.page import RunPage
from workbench.dashboards.recordings import Recordings


@pytest.mark.parametrize("damaged", [False, True])
def test_the_list_is_there_also_when_a_run_that_was_compared_has_gone(tmp_path: Path, damaged: bool) -> None:
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    record(first)
    record(second)
    page = RunPage(Recordings(tmp_path), lambda what: what())
    request = {"kind": "compare_runs", "first": str(first), "second": str(second)}
    page._list().answer(request)
    assert page._list().model()["compared"] == ["first", "second"]

    if damaged:
        first.write_bytes(b"")
    else:
        first.unlink()
    model = page._list().model()
    there = {"first", "second"} if damaged else {"second"}
    assert ({run["name"] for run in model["runs"]}, model["compared"]) == (there, [])
