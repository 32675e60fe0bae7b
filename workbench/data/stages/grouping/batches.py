"""Batches as rows that belong together, gathered only when used."""

from __future__ import annotations

import bisect
import itertools
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from workbench.backends.numpy import STRING
from workbench.data.stacking import check_structures, concatenate, stack
from workbench.data.structure import Array, Structure
from workbench.data.tables import NO_IDS, BytesTable, Leaves, Rows, Run, Segment


@dataclass(slots=True)
class Joined:
    """Several segments in a row, as one batch."""

    parts: list[Segment]
    _ends: list[int] = field(default_factory=list)  # one per part, computed on first use

    def __len__(self) -> int:
        ends = self._known_ends()
        return ends[-1] if ends else 0

    def _known_ends(self) -> list[int]:
        if not self._ends:
            self._ends = list(itertools.accumulate(map(len, self.parts)))
        return self._ends

    def gather(self) -> Leaves:
        """The rows stacked, one array per component."""
        parts = [part for part in self.parts if len(part)]
        runs = [part for part in parts if type(part) is Run]
        structure = runs[0].table.structure if runs else None
        if structure is not None:
            lengths = list(map(len, runs))
            check_structures([run.table.structure for run in runs], lengths)
            if len(runs) == len(parts) == sum(lengths):
                return stack([run.table.row(run.rows[0]) for run in runs], structure)
            lists = [run.table.chosen(run.rows) for run in runs if isinstance(run.table, BytesTable)]
            if len(lists) == len(parts):
                # There are millions of lines; an array for each part would only add copies.
                return [np.fromiter(itertools.chain(*lists), STRING, sum(lengths))]
        return concatenate([part.gather() for part in parts], structure)

    def cut(self, start: int, stop: int) -> Segment:
        """Rows `start` to `stop`, without copying."""
        ends = self._known_ends()
        kept: list[Segment] = []
        for number in range(bisect.bisect_right(ends, start), len(ends)):
            part = self.parts[number]
            before = ends[number] - len(part)
            if before >= stop:
                break
            if len(part):
                kept.append(part.cut(max(start - before, 0), min(stop - before, len(part))))
        if not kept:
            return self.parts[0].cut(0, 0)
        return kept[0] if len(kept) == 1 else Joined(kept)

    def ids(self) -> Array:
        """Numbers of the source elements behind the rows."""
        return np.concatenate([part.ids() for part in self.parts])


@dataclass(slots=True)
class BatchTable:
    """Batches of `size` consecutive rows of a run, gathered on request."""

    at_rest: ClassVar[bool] = False
    run: Run
    size: int

    @property
    def structure(self) -> Structure:
        """The structure of an element."""
        return self.run.table.structure

    def row(self, index: int) -> Leaves:
        """The components of one element."""
        start = index * self.size
        return self.run.table.take(self.run.rows[start : start + self.size])

    def take(self, rows: Rows) -> Leaves:
        """The components of several elements, stacked."""
        return stack([self.row(row) for row in rows], self.structure)

    def ids(self, rows: Rows) -> Array:
        """Numbers of the source elements behind `rows`."""
        return np.concatenate([self.segment(row).ids() for row in rows]) if len(rows) else NO_IDS

    def segment(self, index: int) -> Segment:
        """One element seen as a batch of rows."""
        start = index * self.size
        return Run(self.run.table, self.run.rows[start : start + self.size])


@dataclass(slots=True)
class SegmentTable:
    """Batches of any size, gathered on request."""

    at_rest: ClassVar[bool] = False
    segments: list[Segment]
    structure: Structure

    def row(self, index: int) -> Leaves:
        """The components of one element."""
        return self.segments[index].gather()

    def take(self, rows: Rows) -> Leaves:
        """The components of several elements, stacked."""
        return stack([self.row(row) for row in rows], self.structure)

    def ids(self, rows: Rows) -> Array:
        """Numbers of the source elements behind `rows`."""
        return np.concatenate([self.segments[row].ids() for row in rows]) if len(rows) else NO_IDS

    def segment(self, index: int) -> Segment:
        """One element seen as a batch of rows."""
        return self.segments[index]
