"""`StatsAggregator`: statistics that iterators over datasets collect, as tf.data.experimental.StatsAggregator."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from workbench.telemetry.formatting import printable, shorten, significant

_GROWTH: Final = math.log(1.1)  # each bucket of a histogram is a tenth wider than the one below it
_WIDTH: Final = 88


@dataclass(frozen=True, slots=True)
class Histogram:
    """How values of one kind are distributed; fields as in the summaries of the reference.

    Attributes:
      num: The number of values.
      min: The smallest.
      max: The largest.
      sum: The sum of all.
      buckets: (upper end, how many), ascending; each is a tenth wider than the one before it.
    """

    num: int
    min: float
    max: float
    sum: float
    buckets: tuple[tuple[float, int], ...]

    @property
    def mean(self) -> float:
        """Their average."""
        return self.sum / self.num

    def percentile(self, percent: float) -> float:
        """The value that `percent` of all values do not exceed, to a tenth."""
        seen = 0
        for end, count in self.buckets:
            seen += count
            if seen >= self.num * percent / 100:
                return min(end, self.max)
        return self.max


@dataclass(frozen=True, repr=False)
class StatsSummary:
    """What a `StatsAggregator` has collected so far. Prints as a table.

    Attributes:
      histograms: Distributions by name: latencies in µs, sizes in bytes.
      counters: Totals by name.
    """

    histograms: Mapping[str, Histogram]
    counters: Mapping[str, int]

    def __repr__(self) -> str:
        rows: list[tuple[str, ...]] = [("histogram", "num", "mean", "p50", "p99", "max")]
        rows += [
            (
                shorten(printable(name), 44),
                f"{found.num:,}",
                *map(significant, (found.mean, found.percentile(50), found.percentile(99), found.max)),
            )
            for name, found in sorted(self.histograms.items())
        ]
        lines = _aligned(rows) if len(rows) > 1 else []
        counters = [
            (shorten(printable(name), 60), f"{count:,}") for name, count in sorted(self.counters.items())
        ]
        lines += _aligned([("counter", "total"), *counters]) if counters else []
        return "\n".join(lines) or "no statistics yet"


class StatsAggregator:
    """Collects statistics of iterators over the datasets whose options name it.

    Iterators in this process report to it. A copy sent to another process, as with a distributed dataset, starts empty
    there: `distributed.explain()` shows what stages cost on the replicas.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buckets: dict[str, Counter[int]] = {}
        self._bounds: dict[str, tuple[float, float, float]] = {}
        self._counters: Counter[str] = Counter()

    def add_to_histogram(self, name: str, value: float) -> None:
        """Adds a value to a distribution."""
        bucket = math.ceil(math.log(value) / _GROWTH) if value > 0 else -(1 << 30)
        with self._lock:
            self._buckets.setdefault(name, Counter())[bucket] += 1
            low, high, total = self._bounds.get(name, (math.inf, -math.inf, 0.0))
            self._bounds[name] = min(low, value), max(high, value), total + value

    def increment_counter(self, name: str, amount: int) -> None:
        """Adds to a total."""
        with self._lock:
            self._counters[name] += amount

    def get_summary(self) -> StatsSummary:
        """What was collected so far; collecting goes on."""
        with self._lock:
            histograms = {
                name: Histogram(
                    buckets.total(),
                    *self._bounds[name],
                    tuple(
                        (math.exp(at * _GROWTH) if at > -(1 << 30) else 0.0, buckets[at])
                        for at in sorted(buckets)
                    ),
                )
                for name, buckets in self._buckets.items()
            }
            return StatsSummary(histograms, dict(self._counters))

    def __repr__(self) -> str:
        with self._lock:
            collected = ", ".join([*self._buckets, *self._counters])
        return f"<StatsAggregator: {collected or 'nothing collected yet'}>"

    def __copy__(self) -> StatsAggregator:
        return self  # datasets copy their options, and all copies refer to this one

    def __deepcopy__(self, memo: dict[int, Any]) -> StatsAggregator:
        return self

    def __reduce__(self) -> tuple[type[StatsAggregator], tuple[()]]:
        return StatsAggregator, ()


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )[:_WIDTH]
        for row in rows
    ]
