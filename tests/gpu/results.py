"""The lines of the table, and how long something takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


class Skip(Exception):
    """This machine cannot show that; the text says why.

    Attributes:
      name: What was not checked, as a `Row` has it where it was.
    """

    def __init__(self, reason: str, name: str) -> None:
        super().__init__(reason)
        self.name = name


@dataclass(frozen=True, slots=True)
class Row:
    """One line.

    Attributes:
      name: What was checked.
      state: "ok", "FAILED", "skipped", or "noted" for a figure that fails nothing.
      found: What was found, in words.
      bar: What it is held to, "" if to nothing.
      seconds: How long its whole check took.
    """

    name: str
    state: str
    found: str
    bar: str = ""
    seconds: float = 0.0

    def line(self) -> str:
        return f"{self.state:8} {self.name:38} {self.found:60} {self.bar:24} {self.seconds:6.1f} s"


def held(name: str, fine: bool, found: str, bar: str = "") -> Row:
    """A line that is "ok" if `fine`."""
    return Row(name, "ok" if fine else "FAILED", found, bar)


def median(rounds: int, work: Callable[[], object]) -> float:
    """Seconds that a call takes, once it has been made a few times."""
    taken = []
    for _ in range(rounds + 5):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken[5:])


def table(rows: Sequence[Row]) -> str:
    """All lines, and how many of each state."""
    counts = {
        state: sum(row.state == state for row in rows) for state in ("ok", "FAILED", "skipped", "noted")
    }
    head = f"{'state':8} {'check':38} {'found':60} {'bar':24}   time"
    return "\n".join([head, *(row.line() for row in rows), "", str(counts)])
