"""Ids of source elements: which dataset, which file, which row, in one int64.

The low 32 bits are the row, the next 24 the file (or the element that a flat_map made a dataset from), the
top 7 the dataset of a concatenation.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench.data.structure import Array, Structure
from workbench.data.tables import Leaves, Rows, Slab, Table

if TYPE_CHECKING:
    from workbench.data.dataset import Dataset

FILE_SHIFT = 32
DATASET_SHIFT = 56
_ROW_MASK = (1 << FILE_SHIFT) - 1
_DATASET_MASK = (1 << DATASET_SHIFT) - 1


@dataclass(slots=True, eq=False)
class OffsetTable:
    """A table whose ids are moved by `offset`, to tell them from those of other files or datasets."""

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
    return (element_id & _DATASET_MASK) >> FILE_SHIFT


class Labels:
    """How people call the source elements of a dataset: "17", or "train.txt:17", or "1/17" in a concatenation."""

    def __init__(self, dataset: Dataset) -> None:
        from workbench.data.autoshard import file_reader
        from workbench.data.passes import Pass

        self._inputs = [Labels(inner) for inner in dataset.source.inputs()]
        self._concatenated = dataset.source.name == "concatenate"
        reader = None if self._inputs else file_reader(dataset)
        self.paths = {} if reader is None else dict(reader.numbered_files(Pass(provenance=True)))

    def __call__(self, element_id: int) -> str:
        """The name of one element."""
        if self._inputs:
            which = min(element_id >> DATASET_SHIFT, len(self._inputs) - 1)
            inner = self._inputs[which](element_id & _DATASET_MASK)
            return f"{which}/{inner}" if self._concatenated else inner
        file, row = file_of(element_id), element_id & _ROW_MASK
        if file in self.paths:
            return f"{os.path.basename(self.paths[file])}:{row}"
        return f"{file}:{row}" if file else str(row)

    def path_of(self, element_id: int) -> str:
        """The file that an element came from, or ""."""
        if self._inputs:
            which = min(element_id >> DATASET_SHIFT, len(self._inputs) - 1)
            return self._inputs[which].path_of(element_id & _DATASET_MASK)
        return self.paths.get(file_of(element_id), "")
