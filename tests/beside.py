"""A pytest plugin for `.ci/run`: each file in `.ci/beside` names tests for a process; one more process runs the rest.

The latter takes over what the others report, so there is one list of failures, and one summary. None is a child of
another, because tests look at what their own process has started.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

REPORTS, ENDED, LOG = "reports", "ended", "log"
"""Files in the folder that two processes know: reports, the exit status of the one that wrote them, what it printed."""

_PATIENCE_SECONDS = 660.0
"""How long another process may report nothing. Its longest test takes less than two minutes."""
_TOLD_CHARACTERS = 4000
_MISSING = pytest.StashKey[dict[str, set[str]]]()
_TIMES = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """One option for either kind of process."""
    group = parser.getgroup("beside", "tests in several processes")
    group.addoption(
        "--beside-to",
        type=Path,
        metavar="FOLDER",
        help="run what the file in .ci/beside names that is called as this folder; reports go to the folder",
    )
    group.addoption(
        "--beside-from",
        type=Path,
        metavar="FOLDER",
        help="run the rest; take reports over from folders in this one",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Has reports written where they go to another process."""
    if folder := config.option.beside_to:
        config.pluginmanager.register(_Writer(config, folder / REPORTS))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Parts the tests. Where the files name all or none of them, the process that takes over runs them itself."""
    if not (config.option.beside_to or config.option.beside_from):
        return
    beside: dict[str, list[pytest.Item]] = {}
    rest = list(items)
    for file in sorted((config.rootpath / ".ci" / "beside").iterdir()):
        places = _places(config, file)
        beside[file.name] = [item for item in rest if _is_in(item.path, places)]
        rest = [item for item in rest if not _is_in(item.path, places)]
    if config.option.beside_to:
        items[:] = beside[config.option.beside_to.name] if rest else []
    elif 0 < len(rest) < len(items):
        items[:] = rest
        config.stash[_MISSING] = {name: {item.nodeid for item in part} for name, part in beside.items()}


def _places(config: pytest.Config, file: Path) -> list[Path]:
    names = file.read_text(encoding="utf-8").split()
    for name in names:
        if not (config.rootpath / name).exists():
            raise pytest.UsageError(f".ci/beside/{file.name} names {name}, which is not there")
    return [config.rootpath / name for name in names]


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, Any, Any]:
    """Takes reports over after the tests of this process."""
    config = session.config
    parts = {name: tests for name, tests in config.stash.get(_MISSING, {}).items() if tests}
    session.testscollected += sum(map(len, parts.values()))
    result = yield
    if parts and not config.option.collectonly:
        config.stash[_TIMES] = [
            _take_over(config, config.option.beside_from / name, tests) for name, tests in parts.items()
        ]
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints how well the tests are parted."""
    if times := config.stash.get(_TIMES, []):
        terminalreporter.section("tests beside these")
        for line in times:
            terminalreporter.line(line)


def _is_in(path: Path, places: list[Path]) -> bool:
    return any(place == path or place in path.parents for place in places)


class _Writer:
    """Appends reports to a file.

    Reopens it each time, because a forked child could write to an inherited descriptor.
    """

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._config = config
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        with self._path.open("ab") as file:
            pickle.dump(data, file)


def _take_over(config: pytest.Config, folder: Path, missing: set[str]) -> str:
    """Passes on all reports, with their duration.

    A report of a `missing` test that does not come, or the process's own failure, counts as a failure.
    """
    begun, took, tests = time.time(), 0.0, len(missing)
    while not (folder / ENDED).is_file() and not _is_silent(folder / REPORTS, begun):
        time.sleep(0.1)
    waited = time.time() - begun
    for report in _reports(config, folder / REPORTS):
        took += report.duration
        told = {"nodeid": report.nodeid, "location": report.location}
        if report.when == "setup":
            config.hook.pytest_runtest_logstart(**told)
        config.hook.pytest_runtest_logreport(report=report)
        if report.when == "teardown":
            config.hook.pytest_runtest_logfinish(**told)
            missing.discard(report.nodeid)
    status = (folder / ENDED).read_text().strip() if (folder / ENDED).is_file() else "none so far"
    if missing or status not in ("0", "1"):
        log = (folder / LOG).read_text(encoding="utf-8", errors="replace")[-_TOLD_CHARACTERS:]
        text = f"{len(missing)} of its tests did not end; its exit status: {status}. It printed:\n{log}"
        config.hook.pytest_runtest_logreport(report=_failure(folder.name, text))
    return f"{folder.name}: {tests} tests in {took:.0f} s, of which this process waited for {waited:.0f} s"


def _is_silent(reports: Path, begun: float) -> bool:
    """Whether a test hangs there, because nothing was reported for so long."""
    last = reports.stat().st_mtime if reports.is_file() else begun
    return time.time() - last > _PATIENCE_SECONDS


def _reports(config: pytest.Config, path: Path) -> Iterator[pytest.TestReport]:
    if not path.is_file():
        return
    with path.open("rb") as file:
        while file.peek(1):
            try:
                data = pickle.load(file)
            except (EOFError, pickle.UnpicklingError):  # the process ended while it was writing
                return
            yield config.hook.pytest_report_from_serializable(config=config, data=data)


def _failure(part: str, text: str) -> pytest.TestReport:
    name = f"the process with the tests of .ci/beside/{part}"
    return pytest.TestReport(name, (f".ci/beside/{part}", 0, name), {}, "failed", text, "call")
