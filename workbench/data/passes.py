"""One pass over a dataset: what its stages need besides their own description."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from workbench.data.background.arrivals import Arrival, Arrivals
from workbench.data.meter import UNMEASURED, StageMeter, Unmeasured
from workbench.data.options import Options
from workbench.data.provenance import OffsetTable
from workbench.data.tables import Failed, Run

_MOST_WAITING_BYTES: Final = 256 * 1024 * 1024


@dataclass(slots=True)
class Pass:
    """One iteration of a dataset, from first to last element.

    Every host that reads the same dataset makes its own pass with the same `epoch`, and so gets the same orders.

    Attributes:
      dataset: Makes a dataset from a source, for stages whose elements are datasets.
      epoch: How often this dataset was iterated before; reshuffling depends on it.
      provenance: Whether stages keep track of which source elements their results came from.
      options: The options of the iterated dataset.
      place: Where in the pass this opening is: the level and number of each repetition or element around it. Random
        numbers depend on this place, not on when a thread reaches it.
      in_order: Whether stages keep the order even if they need not, because elements are read again, and skipped, by
        their numbers.
      opening: As `place`, but different for each opening of each stage.
      arrivals: Notes the order of results, where stages may change it.
      keeps: Whether stages such as caches keep elements for later passes, and statistics are collected.
      meter: The meter of the stage being opened; before a dataset is opened, its reader's.
    """

    dataset: Callable[[Any], Any]
    epoch: int = 0
    provenance: bool = False
    meter: StageMeter | Unmeasured = UNMEASURED
    options: Options = field(default_factory=Options)
    place: tuple[int, ...] = ()
    in_order: bool = False
    opening: tuple[int, ...] = ()
    arrivals: Arrivals = field(default_factory=Arrivals)
    keeps: bool = True
    _offset: WeakValueDictionary[tuple[int, int], OffsetTable] = field(default_factory=WeakValueDictionary)

    def measured_by(self, meter: StageMeter) -> Pass:
        """The same pass, for a stage that `meter` measures."""
        return replace(self, meter=meter)

    def generator(self, seed: int, *, reshuffle: bool) -> np.random.Generator:
        """Random numbers for one opening of a stage, the same on every host."""
        if not reshuffle:
            return np.random.default_rng(seed)
        return np.random.default_rng((seed, self.epoch, *self.place))

    def inside(self, level: int, number: int) -> Pass:
        """The pass for stages that are opened several times.

        Args:
          level: Distinguishes the reasons for opening again, such as nested repetitions.
          number: How often it was opened before; the first opening has the place of the pass.
        """
        if not number:
            return self
        return replace(self, place=(*self.place, level, number), opening=(*self.opening, level, number))

    def at_stage(self, depth: int) -> Pass:
        """The pass as stage number `depth` of its dataset gets it."""
        return replace(self, opening=(*self.opening, depth, 0))

    def at_input(self, number: int) -> Pass:
        """The pass as the dataset with this number gets it, of those that a source combines."""
        return replace(self, opening=(*self.opening, 0, number))

    @property
    def most_waiting_bytes(self) -> int:
        """How many bytes may wait between two stages."""
        budget = self.options.autotune.ram_budget
        return _MOST_WAITING_BYTES if budget is None else budget

    def keeps_order(self, deterministic: bool | None) -> bool:
        """Whether a stage with parallel calls keeps the order; `deterministic`, if given, wins over the options."""
        return self.in_order or self.options.keeps_order(deterministic)

    def arrival(self, deterministic: bool | None) -> Arrival | None:
        """Where a stage with parallel calls notes the order of its results, and which one it follows first.

        None if it keeps the order; see `keeps_order`. A pass that is restored does as the one before did.
        """
        return self.arrivals.of(self.opening, self.keeps_order(deterministic))

    def numbered(self, run: Run, offset: int) -> Run:
        """The run with its ids moved by `offset`, if the pass keeps track of ids.

        A table is wrapped only once while its wrapper is alive: stages compare tables by identity, and must make the
        same decisions with and without provenance. The wrapper is not kept longer, or a reader would hold everything it
        has read.
        """
        if not self.provenance or offset == 0 or isinstance(run, Failed):
            return run
        key = (id(run.table), offset)
        wrapped = self._offset.get(key)
        if wrapped is None:
            wrapped = self._offset[key] = OffsetTable(run.table, offset)
        return Run(wrapped, run.rows)
