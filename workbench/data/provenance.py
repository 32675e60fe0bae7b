"""Ids of source elements: which dataset, which file, which row, in one int64.

The low 32 bits are the row, the next 24 the file (or the element that a flat_map made a dataset from), the
top 7 the dataset of a concatenation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.data.structure import Array, Structure
from workbench.data.tables import Leaves, Rows, Slab, Table

FILE_SHIFT = 32
DATASET_SHIFT = 56
ROW_MASK = (1 << FILE_SHIFT) - 1
DATASET_MASK = (1 << DATASET_SHIFT) - 1


@dataclass(slots=True, eq=False, weakref_slot=True)
class OffsetTable:
    """A table whose ids are moved by `offset`, to distinguish them from those of other files or datasets."""

    at_rest: ClassVar[bool] = False
    table: Table
    offset: int

    @property
    def structure(self) -> Structure:
        """The structure of an element."""
        return self.table.structure

    def row(self, index: int) -> Leaves:
        """The components of one element."""
        return self.table.row(index)

    def take(self, rows: Rows) -> Leaves:
        """The components of several elements, stacked."""
        return self.table.take(rows)

    def ids(self, rows: Rows) -> Array:
        """Numbers of the source elements behind `rows`."""
        return self.table.ids(rows) + np.int64(self.offset)

    def segment(self, index: int) -> Slab:
        """One element seen as a batch of rows."""
        segment = self.table.segment(index)
        return Slab(segment.gather(), segment.ids() + np.int64(self.offset))


def file_of(element_id: int) -> int:
    """The number of the file (in the undivided list) that an element came from."""
    return (element_id & DATASET_MASK) >> FILE_SHIFT
