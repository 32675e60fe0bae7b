"""The table of results by area, printed at the end of a run; nothing that did not run is hidden in it."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pytest

AREA, MISSING, NOT_EXPRESSIBLE = "reference area", "reference missing", "reference not expressible"
"""Names of the properties by which a test tells its area, and what kept it from running."""

_MISSING_WIDTH = 100
_HEADER = ("area", "cases", "passed", "failed", "missing", "not expressible", "what is missing")


@dataclass(slots=True)
class Area:
    """The results of one area.

    Attributes:
      passed: Cases met.
      failed: Cases not met although everything that they name exists.
      missing: How many cases lack each public name.
      not_expressible: The cases that one controller cannot say, with the reason of each.
    """

    passed: int = 0
    failed: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    not_expressible: dict[str, str] = field(default_factory=dict)

    @property
    def cases(self) -> int:
        """All of them."""
        return self.passed + self.failed + self.missing.total() + len(self.not_expressible)

    def row(self, name: str) -> tuple[str, ...]:
        """The area as a line of the table."""
        counts = (self.cases, self.passed, self.failed, self.missing.total(), len(self.not_expressible))
        names = ", ".join(f"{missing} ({count})" for missing, count in self.missing.most_common())
        return (name, *map(str, counts), names)


def collect(reports: Iterable[pytest.TestReport]) -> dict[str, Area]:
    """The areas of the vectors that `reports` are about, by name."""
    areas: dict[str, Area] = {}
    for report in reports:
        told = dict(report.user_properties)
        if AREA not in told:
            continue
        area = areas.setdefault(str(told[AREA]), Area())
        if MISSING in told:
            area.missing[str(told[MISSING])] += 1
        elif NOT_EXPRESSIBLE in told:
            case, _, reason = str(told[NOT_EXPRESSIBLE]).partition(": ")
            area.not_expressible[case] = reason
        elif report.passed:
            area.passed += 1
        else:
            area.failed += 1
    return dict(sorted(areas.items()))


def print_report(terminal: pytest.TerminalReporter) -> None:
    """Prints the table, then the cases that cannot be expressed with their reasons."""
    outcomes = ("passed", "failed", "skipped")
    reports = (report for outcome in outcomes for report in terminal.getreports(outcome))
    areas = collect(report for report in reports if report.when == "call")
    if not areas:
        return
    total = Area()
    for area in areas.values():
        total.passed += area.passed
        total.failed += area.failed
        total.missing += area.missing
        total.not_expressible |= area.not_expressible
    terminal.section("reference vectors")
    rows = [_HEADER, *(area.row(name) for name, area in areas.items()), (*total.row("all")[:-1], "")]
    for line in _table(rows):
        terminal.write_line(line)
    for case, reason in total.not_expressible.items():
        terminal.write_line(f"not expressible: {case}: {reason}")


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """The lines of a table whose last column is wrapped."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER) - 1)]
    for name, *counts, names in rows:
        cells = [
            name.ljust(widths[0]),
            *(count.rjust(w) for count, w in zip(counts, widths[1:], strict=True)),
        ]
        front = "  ".join(cells) + "  "
        first, *others = textwrap.wrap(names, _MISSING_WIDTH, break_long_words=False) or [""]
        yield (front + first).rstrip()
        yield from (" " * len(front) + line for line in others)
