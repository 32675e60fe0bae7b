"""Verdict: one sentence on a run."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Severity = Literal["error", "warning", "good", "watching"]

MOST_CHARACTERS: Final = 80
"""The longest sentence."""
MIN_STEPS: Final = 20
"""A verdict says nothing about speed before it has seen this many steps."""


class Verdict(NamedTuple):
    """One sentence on a run, and its evidence.

    Attributes:
      severity: "error", "warning", "good", or "watching" until enough was seen.
      code: A short, stable name, such as "late"; `judge.PRIORITY` has all of them.
      sentence: At most 80 characters.
      evidence: One line with figures.
      link: The view that explains it: "lanes", "lateness", "values", "input", "dataset", "log", "devices" or "sweep".
      replica: The replica that it is about, or None.
      step: The step since which it holds, or None.
    """

    severity: Severity
    code: str
    sentence: str
    evidence: str
    link: str
    replica: int | None = None
    step: int | None = None
