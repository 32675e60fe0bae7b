"""Continues after elements that could not be made."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from workbench.data.passes import Pass
from workbench.data.spec import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.stages.observed import named
from workbench.data.tables import ArrayTable, Failed, RangeTable, Run, attempts, single

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class IgnoreErrors(Stage):
    """Skips elements that could not be made, and counts them for `explain` and a `StatsAggregator`.

    Attributes:
      log_warning: Whether a warning is logged for each.
    """

    name: ClassVar[str] = "ignore_errors"
    keeps_batches: ClassVar[bool] = True
    sees_failures: ClassVar[bool] = True
    log_warning: bool = False

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        statistics = current.options.experimental_stats
        counter = named(statistics.counter_prefix, f"{self.text}::num_left_out")
        for run in upstream():
            if not isinstance(run, Failed) and isinstance(run.table, ArrayTable | RangeTable):
                yield run  # these elements exist already, so they cannot fail
                continue
            for item in attempts(iter([run]), current.provenance):
                if not isinstance(item, Failed):
                    yield single(*item)
                    continue
                current.meter.left_out()
                if statistics.aggregator is not None:
                    statistics.aggregator.increment_counter(counter, 1)
                if self.log_warning:
                    _log.warning("an element was left out: %s: %s", type(item.error).__name__, item.error)

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage."""
        known = upstream.cardinality()
        return known if known in (0, INFINITE_CARDINALITY) else UNKNOWN_CARDINALITY
