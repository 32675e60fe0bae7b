"""The soak in small: half a minute of steps, with workers killed on the way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.soak
def test_nothing_grows_while_workers_are_killed_between_thousands_of_steps() -> None:
    command = [sys.executable, "-m", "tests.benchmarks.ours.soak", "--steps", "5000", "--seconds", "30"]
    done = subprocess.run(
        [*command, "--kill-seconds", "6"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=110,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("flat\n")
