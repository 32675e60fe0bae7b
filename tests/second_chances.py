"""A pytest plugin for `.ci/run`: names the tests that passed only when they were repeated, and fails if they are many.

One such test in some thousand may be the machine's fault. More are likely ours.
"""

from __future__ import annotations

import pytest
from _pytest.terminal import TerminalReporter

_TESTS_PER_REPEATED = 3000


def needed(reporter: TerminalReporter) -> dict[str, str]:
    """Each test that was repeated, and in one line how it failed before."""
    lines: dict[str, str] = {}
    for report in reporter.getreports("rerun"):
        crash = getattr(report.longrepr, "reprcrash", None)
        text = crash.message if crash else report.longreprtext
        lines.setdefault(report.nodeid, (text.splitlines() or ["?"])[0])
    return lines


def allowed(tests: int) -> int:
    """How many repeated tests a run of so many may have."""
    return max(1, tests // _TESTS_PER_REPEATED)


def _reporter(config: pytest.Config) -> TerminalReporter:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    assert isinstance(reporter, TerminalReporter)
    return reporter


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Makes a run that would pass fail."""
    reporter = _reporter(session.config)
    repeated = len(needed(reporter))
    if session.exitstatus == pytest.ExitCode.OK and repeated > allowed(len(reporter.getreports("passed"))):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Prints the names just before pytest's last line."""
    repeated = needed(terminalreporter)
    if not repeated:
        return
    few = len(repeated) <= allowed(len(terminalreporter.getreports("passed")))
    verdict = "which this run may have" if few else "which fails this run"
    terminalreporter.section(f"tests that were repeated: {len(repeated)}, {verdict}", yellow=True)
    for nodeid, line in repeated.items():
        terminalreporter.line(f"{nodeid}: {line}")
