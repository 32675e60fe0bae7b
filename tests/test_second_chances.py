"""`.ci/run` passes with one test of 3,000 that needed to be repeated, fails with more, and names them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.second_chances import allowed

ROOT = Path(__file__).parents[1]
FLAKY = """
from pathlib import Path

def test_flaky_{name}():
    marker = Path(__file__).with_suffix(".{name}")
    if not marker.exists():
        marker.touch()
        raise OSError("{name} was slow")
"""
STEADY = "def test_steady():\n    pass\n"
BROKEN = "def test_broken():\n    raise OSError('never right')\n"


def run(folder: Path, *tests: str) -> tuple[int, list[str]]:
    """Exit status and last lines of a run with second chances, of a file with these tests."""
    (folder / "test_some.py").write_text("\n".join([STEADY, *tests]), encoding="utf-8")
    plugins = ["-p", "tests.second_chances", "-p", "pytest_rerunfailures", "-p", "no:cacheprovider"]
    options = [*plugins, "--reruns", "1", "-c", os.devnull]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--rootdir={folder}", str(folder)],
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "COLUMNS": "100", "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
    )  # fmt: skip
    return done.returncode, [line for line in done.stdout.splitlines() if line][-4:]


def test_nothing_is_said_where_no_test_was_repeated(tmp_path: Path) -> None:
    status, lines = run(tmp_path)

    assert status == pytest.ExitCode.OK
    assert not any("repeated" in line for line in lines)
    assert "1 passed" in lines[-1]


def test_one_repeated_test_passes_and_is_named(tmp_path: Path) -> None:
    status, lines = run(tmp_path, FLAKY.format(name="a"))

    assert status == pytest.ExitCode.OK
    assert "tests that were repeated: 1, which this run may have" in lines[-3]
    assert lines[-2] == "test_some.py::test_flaky_a: OSError: a was slow"
    assert "2 passed, 1 rerun" in lines[-1]


def test_two_repeated_tests_fail_the_run_and_are_named(tmp_path: Path) -> None:
    status, lines = run(tmp_path, FLAKY.format(name="a"), FLAKY.format(name="b"))

    assert status == pytest.ExitCode.TESTS_FAILED
    assert "tests that were repeated: 2, which fails this run" in lines[-4]
    assert [line.split(": ")[0] for line in lines[-3:-1]] == [f"test_some.py::test_flaky_{n}" for n in "ab"]
    assert "3 passed, 2 rerun" in lines[-1]


def test_a_run_may_repeat_one_test_of_3000() -> None:
    assert [allowed(tests) for tests in (1, 3000, 5999, 6000, 11_000)] == [1, 1, 1, 2, 3]


def test_a_test_that_fails_twice_fails_the_run_as_ever(tmp_path: Path) -> None:
    status, lines = run(tmp_path, BROKEN)

    assert status == pytest.ExitCode.TESTS_FAILED
    assert "1 failed, 1 passed, 1 rerun" in lines[-1]
