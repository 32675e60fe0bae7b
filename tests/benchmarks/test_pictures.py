"""Pictures of the guide: one that cannot be taken, or gets too large, leaves the one that is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks import pictures
from tests.benchmarks.environments import Environment
from tests.benchmarks.pictures import PICTURES, take
from tests.benchmarks.scripts import end, run_script
from tests.benchmarks.suites import SUITES

PICTURE = PICTURES[0]
JOB = next(job for job in SUITES["views"] if job.command == PICTURE.command)
BEFORE = b"the picture before"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a picture that the guide has."""
    monkeypatch.setattr(pictures, "IMAGES", tmp_path / "images")
    file = tmp_path / "images" / f"{PICTURE.name}.webp"
    file.parent.mkdir()
    file.write_bytes(BEFORE)
    return file


def stand_in(folder: Path, script: str) -> Environment:
    """An environment whose interpreter runs this instead, with `$last` as the file to write."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\nfor last; do :; done\n{script}\n")
    program.chmod(0o755)
    return Environment(str(program), {})


def taken(folder: Path, pixels: np.ndarray) -> Environment:
    """One that takes this picture, of shape (height, width, 3), uint8."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install -e '.[images]'")
    image.fromarray(pixels).save(folder / "taken.png")
    return stand_in(folder, f'cp "{folder}/taken.png" "$last"')


def test_a_picture_is_replaced(kept: Path, tmp_path: Path) -> None:
    assert take(PICTURE, JOB, taken(tmp_path, np.zeros((20, 30, 3), np.uint8))) == ""
    assert kept.read_bytes()[8:12] == b"WEBP"


def test_one_that_is_too_large_leaves_the_one_before(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "MOST_BYTES", 10)
    noise = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)

    assert "bytes are more than 10" in take(PICTURE, JOB, taken(tmp_path, noise))
    assert kept.read_bytes() == BEFORE


@pytest.mark.parametrize(
    ("script", "trouble"),
    [("echo one >&2; echo two >&2; exit 3", "ended with 3: two"), ("exit 0", "no picture")],
)
def test_one_that_cannot_be_taken_leaves_the_one_before(
    kept: Path, tmp_path: Path, script: str, trouble: str
) -> None:
    assert take(PICTURE, JOB, stand_in(tmp_path, script)) == trouble
    assert kept.read_bytes() == BEFORE


def test_a_script_that_does_not_end_is_ended(tmp_path: Path) -> None:
    environment = stand_in(tmp_path, "exec tail -f /dev/null")

    assert run_script(environment.python, "ours.views.page", seconds=0.1) == "not done after 0 s"


def test_what_a_script_has_started_ends_with_it() -> None:
    child = "import signal; print('ready', flush=True); signal.pause()"
    parent = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], start_new_session=True)"
    )
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    with process.stdout as output:
        process.stdout = None
        end(process)
        assert output.read() == ""  # end of file, because no process has the other end any more
