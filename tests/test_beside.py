"""The tests of `.ci/run` are parted between processes, and the reports of all come to one end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import beside
from tests.beside import ENDED, LOG, REPORTS

ROOT = Path(__file__).parents[1]
CALM = "def test_calm():\n    pass\n"
LATE = """
import pytest

def test_skipped():
    pytest.skip("never here")

@pytest.mark.parametrize("word", ["a b", "ü::[]"])
def test_words(word):
    pass
"""
BROKEN = "def test_broken():\n    raise OSError('never right')\n"
FLAKY = """
from pathlib import Path

def test_flaky():
    marker = Path(__file__).with_suffix(".marker")
    if not marker.exists():
        marker.touch()
        raise OSError("was slow")
"""
ENDING = "import os\n\ndef test_ending():\n    os._exit(9)\n"


class Run:
    """All processes over a folder with tests.

    Attributes:
      status: The exit status of the process that takes over.
      lines: What it printed.
    """

    def __init__(self, folder: Path, tests: dict[str, str], *options: str) -> None:
        exchange = folder / "exchange"
        for path, text in {".ci/beside/waiting": "tests/late\n", **tests}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        self._folder = folder
        for part in (folder / ".ci" / "beside").iterdir():
            own = exchange / part.name
            own.mkdir(parents=True)
            status, text = self._pytest(f"--beside-to={own}", *options)
            (own / LOG).write_text(text, encoding="utf-8")
            (own / ENDED).write_text(f"{status}\n", encoding="ascii")
        self.status, text = self._pytest(f"--beside-from={exchange}", *options)
        self.lines = [line for line in text.splitlines() if line]

    def _pytest(self, *options: str) -> tuple[int, str]:
        plugins = ["tests.beside", "tests.second_chances", "pytest_rerunfailures", "no:cacheprovider"]
        named = [part for plugin in plugins for part in ("-p", plugin)]
        folder = f"--rootdir={self._folder}"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *named, "--reruns=1", "-ra", "-c", os.devnull, folder, *options],
            env=os.environ
            | {"PYTHONPATH": str(ROOT), "COLUMNS": "100", "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            cwd=self._folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
        )  # fmt: skip
        return done.returncode, done.stdout


def test_each_test_runs_once_and_counts_once(tmp_path: Path) -> None:
    run = Run(tmp_path, {"tests/test_calm.py": CALM, "tests/late/test_late.py": LATE})

    assert run.status == pytest.ExitCode.OK
    assert "collected 4 items" in run.lines[4:8]
    assert any(line.startswith("SKIPPED [1] tests/late/test_late.py:5: never here") for line in run.lines)
    assert any(
        re.match(r"waiting: 3 tests in \d+ s, of which this process waited", line) for line in run.lines
    )
    assert "3 passed, 1 skipped" in run.lines[-1]


def test_what_fails_beside_fails_the_run_with_its_traceback(tmp_path: Path) -> None:
    run = Run(tmp_path, {"tests/test_calm.py": CALM, "tests/late/test_late.py": BROKEN})

    assert run.status == pytest.ExitCode.TESTS_FAILED
    assert "E       OSError: never right" in run.lines
    assert "FAILED tests/late/test_late.py::test_broken - OSError: never right" in run.lines
    assert "1 failed, 1 passed, 1 rerun" in run.lines[-1]


def test_what_was_repeated_beside_counts_with_the_rest(tmp_path: Path) -> None:
    flaky = {"tests/test_first.py": FLAKY, "tests/late/test_late.py": FLAKY}
    run = Run(tmp_path, flaky)

    assert run.status == pytest.ExitCode.TESTS_FAILED
    assert any("tests that were repeated: 2, which fails this run" in line for line in run.lines)
    assert "2 passed, 2 rerun" in run.lines[-1]


def test_a_process_that_ends_early_fails_the_run(tmp_path: Path) -> None:
    run = Run(tmp_path, {"tests/test_calm.py": CALM, "tests/late/test_late.py": LATE + ENDING + BROKEN})

    assert run.status == pytest.ExitCode.TESTS_FAILED
    assert any("2 of its tests did not end; its exit status: 9" in line for line in run.lines)
    assert "1 failed, 3 passed, 1 skipped" in run.lines[-1]


def test_a_name_that_leads_nowhere_fails_the_run(tmp_path: Path) -> None:
    run = Run(tmp_path, {".ci/beside/waiting": "tests/gone\n", "tests/test_calm.py": CALM})

    assert run.status == pytest.ExitCode.USAGE_ERROR
    assert any(".ci/beside/waiting names tests/gone, which is not there" in line for line in run.lines)


def test_several_processes_beside_each_run_their_own(tmp_path: Path) -> None:
    tests = {"tests/test_calm.py": CALM, "tests/late/test_late.py": LATE, "tests/bad/test_bad.py": BROKEN}
    run = Run(tmp_path, {".ci/beside/computing": "tests/bad/test_bad.py\n", **tests})

    assert run.status == pytest.ExitCode.TESTS_FAILED
    assert [line.split(" in ")[0] for line in run.lines if ", of which this process waited" in line] == [
        "computing: 1 tests",
        "waiting: 3 tests",
    ]
    assert "1 failed, 3 passed, 1 skipped, 1 rerun" in run.lines[-1]


def test_what_two_files_name_runs_once(tmp_path: Path) -> None:
    parts = {".ci/beside/computing": "tests/late/test_late.py\n", ".ci/beside/waiting": "tests/late\n"}
    run = Run(tmp_path, {**parts, "tests/test_calm.py": CALM, "tests/late/test_late.py": LATE})

    assert "3 passed, 1 skipped" in run.lines[-1]


@pytest.mark.parametrize("chosen", ["late or broken", "calm"])
def test_one_process_runs_what_the_file_names_completely_or_not_at_all(tmp_path: Path, chosen: str) -> None:
    run = Run(tmp_path, {"tests/test_calm.py": CALM, "tests/late/test_late.py": LATE}, "-k", chosen)

    assert run.status == pytest.ExitCode.OK
    assert (
        "1 passed, 3 deselected" if chosen == "calm" else "2 passed, 1 skipped, 1 deselected"
    ) in run.lines[-1]


def test_nobody_waits_long_for_a_process_that_reports_nothing_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "_PATIENCE_SECONDS", 0.5)
    (tmp_path / REPORTS).touch()
    (tmp_path / LOG).write_text("tests/test_hangs.py .", encoding="utf-8")
    reports: list[pytest.TestReport] = []
    hook = SimpleNamespace(pytest_runtest_logreport=lambda report: reports.append(report))

    beside._take_over(SimpleNamespace(hook=hook), tmp_path, {"tests/test_hangs.py::test_hangs"})  # type: ignore[arg-type]

    assert [report.outcome for report in reports] == ["failed"]
    assert "1 of its tests did not end" in str(reports[0].longrepr)
    assert "tests/test_hangs.py ." in str(reports[0].longrepr)
