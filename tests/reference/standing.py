"""What of the reference is built: `standing.toml`, by area, which the vectors and the guide are held to."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from tests.reference.report import Area

TABLE = Path(__file__).parent / "standing.toml"


@dataclass(frozen=True, slots=True)
class Standing:
    """What is built of one area.

    Attributes:
      passed: Cases that are met; fewer are a failure.
      not_expressible: Cases that one controller cannot say.
      later: What the missing names amount to, for the table of features; empty if nothing is missing.
      missing: Public names of later work, and how many cases lack each. Any other name that is missing is a failure.
    """

    passed: int
    not_expressible: int = 0
    later: str = ""
    missing: dict[str, int] = field(default_factory=dict)


def standings() -> dict[str, Standing]:
    """The table, by area."""
    areas = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {name: Standing(**area) for name, area in areas.items()}


def refusal(found: Area, standing: Standing) -> str:
    """Why what was found is not what the table says, "" if it is."""
    if found.failed:
        return f"{found.failed} cases are not met"
    if found.passed < standing.passed:
        return f"{found.passed} cases pass, and {standing.passed} have passed before"
    now = (found.passed, len(found.not_expressible), dict(found.missing))
    if now != (standing.passed, standing.not_expressible, standing.missing):
        return (
            f"{TABLE.name} is out of date: passed = {now[0]}, not_expressible = {now[1]}, missing = {now[2]} is what "
            f"was found; write that"
        )
    return ""
