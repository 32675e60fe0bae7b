"""Hugging Face datasets as sources, through their interface: Arrow columns become arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from workbench.data.dataset import Dataset
from workbench.data.formats.arrow_values import values_of
from workbench.data.formats.columns import ColumnReading, columns_layout
from workbench.data.passes import Pass
from workbench.data.sources.memory import read_only
from workbench.data.spec import UNKNOWN_CARDINALITY
from workbench.data.stacking import stack
from workbench.data.stage import Source
from workbench.data.structure import Array, Structure
from workbench.data.tables import Leaves, ListTable, NumberedRows, Rows, Run, row_numbers
from workbench.errors import InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK_ROWS = 1024
_LABEL = "Hugging Face dataset"


def from_hugging_face(
    dataset: Any, columns: Sequence[str] | None = None, defaults: Mapping[str, Any] | None = None
) -> Dataset:
    """The rows of a `datasets.Dataset` or `datasets.IterableDataset`, as dicts of their columns.

    Arrow columns of numbers, text and lists become arrays; text is bytes, and lists may differ in length. Rows of a
    `Dataset`, mapped from its files or in memory, can be read in any order, so shuffling and sharding compute positions
    and read nothing. Each host reads an `IterableDataset` from its beginning, and keeps its part.

    Args:
      dataset: One split; it is sent to the hosts that read it.
      columns: Names of the columns to read; None for all.
      defaults: Replacements for null, by column.

    Raises:
      TypeError: if it is not such a dataset, or a dict of splits.
      InvalidArgumentError: for columns that it lacks or that no array can hold, such as images. Reading raises
        `DataLossError` for a null without default.
    """
    if isinstance(dataset, Mapping):
        splits = ", ".join(map(repr, dataset))
        raise TypeError(
            f"from_hugging_face takes one split, got a {type(dataset).__name__} of {splits}; choose one, such as "
            f"dataset[{next(iter(dataset), 'train')!r}]"
        )
    if not (hasattr(dataset, "with_format") and hasattr(dataset, "features")):
        raise TypeError(
            f"from_hugging_face takes a dataset of the library datasets, got {type(dataset).__name__}"
        )
    chosen = None if columns is None else tuple(dict.fromkeys(columns))
    reading = _Reading(ColumnReading(chosen, dict(defaults or {})))
    arrow = dataset.with_format("arrow")
    if not hasattr(dataset, "__len__"):
        return Dataset(HuggingFaceStream(arrow, reading))
    source = HuggingFaceRows(arrow, reading)
    source.element_spec()  # reports an unreadable column now
    return Dataset(source)


@dataclass(frozen=True, eq=False)
class _Reading:
    """How Arrow tables become components.

    Attributes:
      columns: Which columns, and what replaces null.
    """

    columns: ColumnReading

    def spec(self, schema: pa.Schema) -> dict[str, Any]:
        """The nested spec of an element.

        Raises:
          InvalidArgumentError: if an array cannot hold a column's values.
        """
        return dict(self.columns.specs(schema, _LABEL))

    def leaves(self, table: pa.Table, names: Sequence[str], rows: Rows) -> list[Any]:
        """The components of a table's rows: an array each, or a list of arrays if lists differ in length.

        Args:
          table: Some rows.
          names: The names of the components, in their order.
          rows: The positions of these rows, for errors.
        """
        return [self._column(table, name, rows) for name in names]

    def _column(self, table: pa.Table, name: str, rows: Rows) -> Any:
        import pyarrow as pa

        values = table.column(name).combine_chunks()
        values = values if isinstance(values, pa.Array) else pa.concat_arrays(values.chunks)
        if (pa.types.is_list(values.type) or pa.types.is_large_list(values.type)) and not values.null_count:
            lengths = values_of(values.value_lengths())
            if len(lengths) and lengths.min() != lengths.max():
                inside = range(len(values.flatten()))
                ends = np.cumsum(lengths).tolist()
                flat = self._dense(values.flatten(), name, inside)
                return [flat[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]
        return self._dense(values, name, rows)

    def _dense(self, values: pa.Array, name: str, rows: Rows) -> Array:
        import pyarrow as pa

        defaults = {name: self.columns.defaults[name]} if name in self.columns.defaults else {}
        batch = pa.record_batch([values], names=[name])
        run = ColumnReading((name,), defaults).run(batch, [name], rows, _LABEL)
        column: Array = run.gather()[0]
        return column


@dataclass(frozen=True, eq=False)
class HuggingFaceRows(Source):
    """A dataset with random access to rows.

    Attributes:
      dataset: Returns Arrow tables.
      reading: How they become components.
    """

    name: ClassVar[str] = _LABEL
    random_access: ClassVar[bool] = True
    dataset: Any
    reading: _Reading

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        if count := self.cardinality():
            names, structure = _layout(self.element_spec())
            # Without a selection of rows, all of them form one table, which this does not read.
            whole = None
            if getattr(self.dataset, "_indices", ...) is None:
                whole = self.dataset[:].select(names)
            yield Run(_Table(self.dataset, whole, self.reading, names, structure), range(count))

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return self.reading.spec(self.dataset.features.arrow_schema)

    def cardinality(self) -> int:
        """Number of elements."""
        return len(self.dataset)


@dataclass(slots=True, eq=False)
class _Table(NumberedRows):
    """Rows of a dataset. Reads blocks when rows are requested in order."""

    at_rest: ClassVar[bool] = False
    dataset: Any
    whole: pa.Table | None
    reading: _Reading
    names: list[str]
    structure: Structure
    _block: tuple[int, list[Any]] = (0, [])
    _next: int = 0

    def row(self, index: int) -> Leaves:
        """The components of one element."""
        # Several threads may read: one may replace the block that another still uses.
        start, block = self._block
        if not (block and start <= index < start + len(block[0])):
            size = _BLOCK_ROWS if index == self._next else 1
            rows = range(index, min(index + size, len(self.dataset)))
            start, block = self._block = index, self._read(rows)
        self._next = index + 1
        return [read_only(column[index - start]) for column in block]

    def take(self, rows: Rows) -> Leaves:
        """The components of several elements, stacked."""
        columns = self._read(rows)
        if all(isinstance(column, np.ndarray) for column in columns):
            return columns
        return stack([[column[index] for column in columns] for index in range(len(rows))], self.structure)

    def _read(self, rows: Rows) -> list[Any]:
        if isinstance(rows, range) and rows.step == 1:
            table = (
                self.dataset[rows.start : rows.stop]
                if self.whole is None
                else self.whole.slice(rows.start, len(rows))
            )
        elif self.whole is None:
            table = self.dataset[row_numbers(rows).tolist()]
        else:
            table = self.whole.take(row_numbers(rows))
        return self.reading.leaves(table, self.names, rows)


@dataclass(frozen=True, eq=False)
class HuggingFaceStream(Source):
    """A dataset that can only be iterated over.

    Attributes:
      dataset: Yields Arrow tables.
      reading: How they become components.
    """

    name: ClassVar[str] = "Hugging Face stream"
    dataset: Any
    reading: _Reading

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        first = 0
        names: list[str] = []
        if hasattr(self.dataset, "set_epoch"):
            self.dataset.set_epoch(current.epoch)  # its own shuffling depends on it
        for table in self.dataset.iter(batch_size=_BLOCK_ROWS):
            if not names:
                names, structure = _layout(self.reading.spec(table.schema))
            rows = range(first, first + table.num_rows)
            columns = self.reading.leaves(table, names, rows)
            elements = [[column[index] for column in columns] for index in range(len(rows))]
            ids = [np.array([row]) for row in rows] if current.provenance else None
            yield Run(ListTable(elements, structure, ids), range(len(rows)))
            first += table.num_rows

    def element_spec(self) -> Any:
        """The nested spec of an element.

        Raises:
          InvalidArgumentError: if the dataset neither describes its columns nor has a row.
        """
        if self.dataset.features is not None:
            return self.reading.spec(self.dataset.features.arrow_schema)
        for table in self.dataset.iter(batch_size=1):
            return self.reading.spec(table.schema)
        raise InvalidArgumentError(
            "from_hugging_face: the dataset has no row, and no features that say what they are"
        )

    def cardinality(self) -> int:
        """Number of elements."""
        return UNKNOWN_CARDINALITY


def _layout(spec: Mapping[str, Any]) -> tuple[list[str], Structure]:
    names = list(spec)
    order, structure = columns_layout(names)
    return [names[index] for index in order], structure
