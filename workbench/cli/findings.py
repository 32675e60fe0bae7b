"""The doctor's findings: one short line each, with the remedy if something is wrong."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Status(enum.Enum):
    """The severity of a finding; the value is the displayed word."""

    OK = "ok"
    NOTE = "note"  # something optional is missing
    PROBLEM = "PROBLEM"  # the embedded cluster or the notebooks will not work


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked.

    Attributes:
      status: Its severity.
      text: What was found.
      remedy: What to do about it, or "".
    """

    status: Status
    text: str
    remedy: str = ""


def ok(text: str) -> Finding:
    """A finding without a problem."""
    return Finding(Status.OK, text)


def note(text: str, remedy: str) -> Finding:
    """A finding about something optional."""
    return Finding(Status.NOTE, text, remedy)


def problem(text: str, remedy: str) -> Finding:
    """A finding that prevents the embedded cluster or the notebooks from working."""
    return Finding(Status.PROBLEM, text, remedy)


def as_text(title: str, findings: Iterable[Finding]) -> str:
    """A section of the report: the title, and a line per finding with its remedy below."""
    lines = [title]
    for finding in findings:
        lines.append(f"  {finding.status.value:<8} {finding.text}")
        if finding.remedy:
            lines.append(f"  {'':<8} -> {finding.remedy}")
    return "\n".join(lines)
