"""Collects statistics for a `StatsAggregator`: stages that only observe elements, and edges between other stages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from workbench.data.passes import Pass
from workbench.data.stage import Opener, Stage
from workbench.data.tables import Failed, Run, attempts, nbytes, single


@dataclass(frozen=True)
class LatencyStats(Stage):
    """Records how long it took to make each element, in µs.

    Attributes:
      tag: Name of the distribution.
    """

    name: ClassVar[str] = "latency_stats"
    keeps_batches: ClassVar[bool] = True
    sees_failures: ClassVar[bool] = True
    tag: str

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        statistics = current.options.experimental_stats
        if statistics.aggregator is None:
            yield from upstream()
            return
        name = named(statistics.prefix, self.tag)
        # One by one, because batches must be assembled here to be timed.
        elements = attempts(upstream(), current.provenance)
        while True:
            began_ns = time.perf_counter_ns()
            item = next(elements, None)
            if item is None:
                return
            if isinstance(item, Failed):
                yield item
                continue
            statistics.aggregator.add_to_histogram(name, (time.perf_counter_ns() - began_ns) / 1e3)
            yield single(*item)

    def describe(self) -> str:
        """The stage as a short text."""
        return f"latency_stats({self.tag!r})"


@dataclass(frozen=True)
class BytesProducedStats(Stage):
    """Records the size of each element, in bytes.

    Attributes:
      tag: Name of the distribution.
    """

    name: ClassVar[str] = "bytes_produced_stats"
    keeps_batches: ClassVar[bool] = True
    tag: str

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        statistics = current.options.experimental_stats
        if statistics.aggregator is None:
            yield from upstream()
            return
        name = named(statistics.prefix, self.tag)
        for item in attempts(upstream(), current.provenance):
            if isinstance(item, Failed):
                yield item
                continue
            statistics.aggregator.add_to_histogram(name, float(nbytes(item[0])))
            yield single(*item)

    def describe(self) -> str:
        """The stage as a short text."""
        return f"bytes_produced_stats({self.tag!r})"


def observed(text: str, open_runs: Opener, current: Pass) -> Iterator[Run]:
    """A stage's runs, counted for the options' aggregator, and timed if the options say so.

    Args:
      text: The stage's name.
      open_runs: Starts the stage.
      current: The pass, whose options have an aggregator.
    """
    statistics = current.options.experimental_stats
    assert statistics.aggregator is not None
    timed = LatencyStats(f"record_latency::{text}")
    runs = timed.open(open_runs, current) if statistics.latency_all_edges else open_runs()
    name = named(statistics.counter_prefix, f"{text}::num_elements")
    for run in runs:
        if not isinstance(run, Failed):
            statistics.aggregator.increment_counter(name, len(run))
        yield run


def named(prefix: str, name: str) -> str:
    """The name of a statistic, with a prefix of the options."""
    return f"{prefix}::{name}" if prefix else name
