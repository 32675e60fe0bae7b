"""Programs of the repository that pages and docstrings name: each says what it does when asked with `--help`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
ELSEWHERE: Final = "tests.differential.cases.tensorflow"
"""Its programs run only where TensorFlow is installed."""
ASK_ALL: Final = """
import contextlib, io, json, runpy, sys
answers = {}
for name in sys.argv[1:]:
    sys.argv = [name, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    answers[name] = said.getvalue()
print(json.dumps(answers))
"""


def named_programs() -> list[str]:
    """Modules that a text of the repository runs by `python -m`."""
    files = chain(
        [ROOT / "CONTRIBUTING.md"],
        (ROOT / "notebooks" / "guide").rglob("*.md"),
        (ROOT / "tests").rglob("*.md"),
        (ROOT / "tests").rglob("*.py"),
    )
    found = {
        name
        for file in files
        for name in re.findall(r"python -m (tests(?:\.\w+)+)", file.read_text(encoding="utf-8"))
    }
    return sorted(name for name in found if not name.startswith(ELSEWHERE))


@pytest.fixture(scope="module")
def answers() -> dict[str, str]:
    """What each program says, asked by one process, as starting Python for each would take long."""
    asked = subprocess.run(
        [sys.executable, "-c", ASK_ALL, *named_programs()],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        timeout=120,
        check=True,
    )
    told: dict[str, str] = json.loads(asked.stdout)
    return told


@pytest.mark.parametrize("name", named_programs())
def test_a_program_says_what_it_does(name: str, answers: dict[str, str]) -> None:
    usage, _, description = answers[name].partition("\n\n")

    assert usage.startswith("usage: ")
    assert description
    assert not description.startswith(("options:", "positional arguments:"))
