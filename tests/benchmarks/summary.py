"""From the rows of all rounds to one figure per case, and to ratios between cases of the same rounds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

QUIET_CORES = 0.25


class Key(NamedTuple):
    """Names a case.

    Attributes:
      suite: Its suite.
      replicas: How many took part; 0 where a table shows several counts side by side.
      who: The program whose figure it is.
      what: What was measured.
    """

    suite: str
    replicas: int
    who: str
    what: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A case over its rounds.

    Attributes:
      unit: The unit of all values.
      by_round: Round -> its median, of the rounds that count.
      p95: Median over the rounds of their 95th percentiles.
      highest: The largest single sample.
      foreign_cores: Load of other processes, the largest of the rounds that count.
      left_out: Rounds that do not count because other processes were busy.
    """

    unit: str
    by_round: dict[int, float]
    p95: float
    highest: float
    foreign_cores: float
    left_out: int

    @property
    def median(self) -> float:
        """Over the rounds."""
        return statistics.median(self.by_round.values())

    @property
    def spread(self) -> tuple[float, float]:
        """Smallest and largest round."""
        return min(self.by_round.values()), max(self.by_round.values())

    @property
    def text(self) -> str:
        """The median with its unit, as tables show it; "~" marks one that is noisy.

        A share of less than a hundredth of a percent is 0: it may be the noise of a difference, below zero even.
        """
        nothing = self.unit.startswith("%") and abs(self.median) < 0.01
        digits = (
            "0" if nothing else f"{self.median:,.0f}" if abs(self.median) >= 100 else f"{self.median:.2g}"
        )
        return f"{'~' if self.noisy else ''}{digits} {self.unit}"

    @property
    def noisy(self) -> bool:
        """Other processes were busy in a round that counts."""
        return self.foreign_cores > QUIET_CORES


def figures(rows: Iterable[dict[str, Any]]) -> dict[Key, Figure]:
    """One figure per case. Rounds with foreign load are left out where three quiet ones remain."""
    cases: dict[Key, list[dict[str, Any]]] = {}
    for row in rows:
        if "median" in row:
            key = Key(row["suite"], row["replicas"], row["who"], row["what"])
            cases.setdefault(key, []).append(row)
    return {key: _figure(found) for key, found in cases.items()}


def _figure(rows: list[dict[str, Any]]) -> Figure:
    quiet = [row for row in rows if row["foreign_cores"] <= QUIET_CORES]
    counting = quiet if len(quiet) >= 3 else rows
    return Figure(
        unit=rows[0]["unit"],
        by_round={row["round"]: row["median"] for row in counting},
        p95=statistics.median(row["p95"] for row in counting),
        highest=max(row["max"] for row in counting),
        foreign_cores=max(row["foreign_cores"] for row in counting),
        left_out=len(rows) - len(counting),
    )


def times_as_fast(ours: Figure, peer: Figure) -> float:
    """How many times as fast ours is: the median over common rounds, or of the medians if there are none."""
    common = ours.by_round.keys() & peer.by_round.keys()
    pairs = [(ours.by_round[n], peer.by_round[n]) for n in common] or [(ours.median, peer.median)]
    if ours.unit.endswith("/s"):
        return statistics.median(mine / theirs for mine, theirs in pairs)
    return statistics.median(theirs / mine for mine, theirs in pairs)
