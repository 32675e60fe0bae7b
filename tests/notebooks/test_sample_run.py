"""The recorded run that the guide shows: the views of today draw it, and its program still makes such a run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import workbench as wb
from tests.commands import output_of

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "notebooks" / "guide" / "sample"
PROGRAM = SAMPLE / "training.py"
VIEWS = ("collectives", "topology", "devices", "values", "array_sharding", "dataset_sharding", "input")


@pytest.fixture(params=["recorded now", "in the guide"])
def recording(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A run of the program: one of now, and the one that the guide shows."""
    if request.param == "in the guide":
        return SAMPLE / "digits.parquet"
    pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install -e '.[lab]'")
    path = tmp_path / "digits.parquet"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    output_of([sys.executable, PROGRAM, path], environment=environment, timeout_seconds=100, folder=tmp_path)
    return path


def test_the_sample_run_has_a_straggler_and_a_nan_at_the_lines_of_its_program(recording: Path) -> None:
    run = wb.open_run(recording).model()
    verdict = run["collectives"]["overview"]["verdict"]
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    (at,) = [number for number, line in enumerate(lines, 1) if ".all_reduce(" in line]
    (group,) = run["collectives"]["snapshot"]["groups"]

    assert [view for view in VIEWS if not run[view]] == []
    assert run["notes"] == []  # otherwise record it again: its docstring has the command
    assert (run["first_step"], run["last_step"]) == (0, 39)
    assert (verdict["code"], verdict["replica"], verdict["step"]) == ("nan", 3, 30)
    assert f"training.py:{at}" in verdict["sentence"]
    assert 1 in group["lateness"]["stragglers"]


def test_the_sample_run_tells_nothing_of_the_machine_that_recorded_it() -> None:
    content = (SAMPLE / "digits.parquet").read_bytes()

    assert len(content) < 100_000
    assert [part for part in (b"/home/", b"/root/", b"/tmp/", b"/work/") if part in content] == []
