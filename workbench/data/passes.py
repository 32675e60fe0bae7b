"""One pass over a dataset: what its stages need to know besides their own description."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from workbench.data.meter import UNMEASURED, StageMeter, Unmeasured
from workbench.data.provenance import OffsetTable
from workbench.data.tables import Failed, Run


@dataclass(slots=True)
class Pass:
    """One iteration of a dataset, from first to last element.

    Every host that reads the same dataset makes its own pass with the same `epoch`, and so gets the same
    orders.

    Attributes:
      dataset: Makes a dataset of a source, for stages whose elements are datasets.
      epoch: How often this dataset had been iterated before; reshuffling depends on it.
      provenance: Whether stages keep track of which source elements their results came from.
      visits: How often a stage with a certain seed was opened in this pass; `repeat` opens it once per
        repetition.
      meter: Of the stage that is opened; before a dataset is opened, of whoever opens it.
    """

    dataset: Callable[[Any], Any]
    epoch: int = 0
    provenance: bool = False
    visits: Counter[int] = field(default_factory=Counter)
    meter: StageMeter | Unmeasured = UNMEASURED
    _offset: WeakValueDictionary[tuple[int, int], OffsetTable] = field(default_factory=WeakValueDictionary)

    def measured_by(self, meter: StageMeter) -> Pass:
        """The same pass, as a stage sees it that is measured by `meter`."""
        return replace(self, meter=meter)

    def generator(self, seed: int, *, reshuffle: bool) -> np.random.Generator:
        """Random numbers for one opening of a stage, the same on every host."""
        if not reshuffle:
            return np.random.default_rng(seed)
        visit = self.visits[seed]
        self.visits[seed] += 1
        return np.random.default_rng((seed, self.epoch, visit))

    def numbered(self, run: Run, offset: int) -> Run:
        """The run with its ids moved by `offset`, if the pass keeps track of ids.

        A table is wrapped once as long as anything holds the wrapped one: stages tell by identity whether runs belong
        to one table, and must take the same decisions with and without provenance. It is not kept beyond, or a reader
        would hold all that it has read.
        """
        if not self.provenance or offset == 0 or isinstance(run, Failed):
            return run
        key = (id(run.table), offset)
        wrapped = self._offset.get(key)
        if wrapped is None:
            wrapped = self._offset[key] = OffsetTable(run.table, offset)
        return Run(wrapped, run.rows)
