"""Verdict: one sentence on a run."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Severity = Literal["error", "warning", "good", "watching"]

MOST_CHARACTERS: Final = 80
"""For a sentence."""
MIN_STEPS: Final = 20
"""A verdict says nothing about speed before it has seen this many steps."""


class Verdict(NamedTuple):
    """One sentence on a run, and what it is founded on.

    Attributes:
      severity: "error", "warning", "good", or "watching" while too little was seen.
      code: A short name that stays, such as "late"; `judge.PRIORITY` has all of them.
      sentence: At most 80 characters.
      evidence: One line with figures.
      link: The view that explains it: "lanes", "lateness", "values", "input", "dataset", "log", "devices" or "sweep".
      replica: Which replica it is about, or None.
      step: Since which step, or None.
    """

    severity: Severity
    code: str
    sentence: str
    evidence: str
    link: str
    replica: int | None = None
    step: int | None = None
