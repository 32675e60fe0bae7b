"""Elements at rest: tables of rows, runs of rows, and segments (rows that make a batch, which may still be cut).

A pipeline moves `Run`s: a table and the rows of it that come next. Index stages (shuffle, take, shard, ...) change only
the rows; arrays are gathered when an element is delivered, so rows that are dropped are never read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from workbench.backends.numpy import STRING
from workbench.data.spec import any_size, spec_of
from workbench.data.stacking import stack
from workbench.data.structure import LEAF, Array, Structure
from workbench.errors import InvalidArgumentError

Rows = range | Array
Leaves = list[Any]
NO_IDS: Array = np.empty(0, np.int64)


class Segment(Protocol):
    """Rows that belong together, as one batch or a part of it."""

    def __len__(self) -> int: ...

    def gather(self) -> Leaves:
        """The rows stacked, one array `(n, ...)` per component."""

    def cut(self, start: int, stop: int) -> Segment:
        """Rows `start` to `stop`, without copying."""

    def ids(self) -> Array:
        """Numbers of the source elements behind the rows; empty if unknown."""


class Table(Protocol):
    """Elements that can be fetched by row number."""

    @property
    def at_rest(self) -> bool:
        """Whether its elements already exist, so that fetching one is too cheap to measure."""

    @property
    def structure(self) -> Structure:
        """The structure of an element."""

    def row(self, index: int) -> Leaves:
        """The components of one element."""

    def take(self, rows: Rows) -> Leaves:
        """The components of several elements, stacked."""

    def ids(self, rows: Rows) -> Array:
        """Numbers of the source elements behind `rows`; empty if unknown."""

    def segment(self, index: int) -> Segment:
        """One element seen as a batch of rows."""


@dataclass(slots=True)
class Run:
    """The next elements of a pipeline: some rows of a table."""

    table: Table
    rows: Rows

    def __len__(self) -> int:
        return len(self.rows)

    def gather(self) -> Leaves:
        """The rows stacked, one array per component."""
        return self.table.take(self.rows)

    def segment(self, index: int) -> Segment | Failed:
        """One element seen as a batch of rows; a `Failed` if it is not a batch."""
        try:
            return self.table.segment(index)
        except Exception as error:  # not a batch, or one that cannot be assembled
            return Failed(error)

    def cut(self, start: int, stop: int) -> Segment:
        """Rows `start` to `stop`, without copying."""
        if start >= stop and len(self.rows):
            # An empty part cannot show dtype and trailing dimensions, so take those of a row of this batch.
            return Slab([leaf[:0] for leaf in self.table.take(self.rows[:1])], NO_IDS)
        return Run(self.table, self.rows[start:stop])

    def ids(self) -> Array:
        """Numbers of the source elements behind the rows."""
        return self.table.ids(self.rows)

    def indices(self) -> Sequence[int]:
        """The rows as Python numbers."""
        return self.rows if isinstance(self.rows, range) else self.rows.tolist()

    def elements(self) -> Iterator[Leaves]:
        """The components of one element after the other."""
        return map(self.table.row, self.indices())


class Failed(Run):
    """Replaces, in a pipeline, an element that could not be made.

    Reading it raises; the next elements follow. Stages pass it on at its place. A stage that makes one yields it after
    the `except` block, because a generator waiting inside the block would keep the error alive; see `taken`.

    Attributes:
      error: What making the element raised.
    """

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.rows = range(0)
        if isinstance(error, StopIteration):  # inside an iterator, a StopIteration would end it
            stopped = RuntimeError("a function of a dataset raised StopIteration, as next() does at the end")
            stopped.__cause__ = error
            error = stopped
        self.error = error

    def taken(self) -> Exception:
        """Returns the error for the caller to raise, and forgets it.

        Its traceback will refer to the reader's frames, and would keep a dropped iterator alive.
        """
        error, self.error = self.error, RuntimeError("the error of this element was raised before")
        return error


@dataclass(slots=True)
class Slab:
    """A batch that already exists as arrays `(n, ...)`."""

    leaves: Leaves
    known_ids: Array

    def __len__(self) -> int:
        return len(self.leaves[0])

    def gather(self) -> Leaves:
        """The rows stacked, one array per component."""
        return self.leaves

    def cut(self, start: int, stop: int) -> Slab:
        """Rows `start` to `stop`, without copying."""
        # If there is not one id per row, a cut cannot tell which ids belong to its rows.
        ids = self.known_ids[start:stop] if len(self.known_ids) == len(self) else NO_IDS
        return Slab([leaf[start:stop] for leaf in self.leaves], ids)

    def ids(self) -> Array:
        """Numbers of the source elements behind the rows."""
        return self.known_ids


class NumberedRows:
    """Shared methods of tables whose element ids are their row numbers."""

    __slots__ = ()

    def ids(self, rows: Rows) -> Array:
        """Numbers of the source elements behind `rows`."""
        return row_numbers(rows).copy()

    def segment(self: Table, index: int) -> Segment:
        """One element seen as a batch of rows."""
        return as_slab(self.row(index), self.ids(range(index, index + 1)))


@dataclass(slots=True, eq=False)
class ArrayTable(NumberedRows):
    """Elements stored as columns: arrays of one length."""

    at_rest: ClassVar[bool] = True
    columns: Sequence[Array]
    structure: Structure

    def row(self, index: int) -> Leaves:
        """The components of one element."""
        return [column[index] for column in self.columns]

    def take(self, rows: Rows) -> Leaves:
        """The components of several elements, stacked."""
        if isinstance(rows, range):
            # A range inside an array never goes below row 0, so stop < 0 can only mean "down to the first row".
            where = slice(rows.start, rows.stop if rows.stop >= 0 else None, rows.step)
            return [column[where] for column in self.columns]
        return [column.take(rows, axis=0) for column in self.columns]


@dataclass(slots=True, eq=False)
class RangeTable(NumberedRows):
    """The numbers `start + step * row`, computed on request."""

    at_rest: ClassVar[bool] = True
    start: int
    step: int
    dtype: np.dtype[Any]
    structure: Structure

    def row(self, index: int) -> Leaves:
        """The components of one element."""
        number = self.start + self.step * index
        try:
            return [self.dtype.type(number)]
        except OverflowError:  # it wraps around, as its neighbours do
            return [self.take(range(index, index + 1))[0][0]]

    def take(self, rows: Rows) -> Leaves:
        """The components of several elements, stacked."""
        numbers = row_numbers(rows)
        start: Any = self.start
        step: Any = self.step
        if self.dtype.kind in "iu" and (start, step) != (0, 1):
            # Modulo 2**64, where narrower dtypes wrap equally; int64 could not hold every uint64.
            start, step = np.uint64(start % 2**64), np.uint64(step % 2**64)
            numbers = numbers.astype(np.uint64, copy=False)
        if step != 1:
            numbers = numbers * step
        if start:
            numbers = numbers + start
        return [numbers.astype(self.dtype, copy=False)]


@dataclass(slots=True)
class ListTable:
    """Elements that exist one by one, such as the results of a user's function."""

    at_rest: ClassVar[bool] = True
    items: list[Leaves]
    structure: Structure
    item_ids: list[Array] | None = None

    def row(self, index: int) -> Leaves:
        """The components of one element."""
        return self.items[index]

    def take(self, rows: Rows) -> Leaves:
        """The components of several elements, stacked."""
        return stack([self.items[row] for row in rows], self.structure)

    def ids(self, rows: Rows) -> Array:
        """Numbers of the source elements behind `rows`."""
        if self.item_ids is None or not len(rows):
            return NO_IDS
        return np.concatenate([self.item_ids[row] for row in rows])

    def segment(self, index: int) -> Segment:
        """One element seen as a batch of rows."""
        return as_slab(self.items[index], self.ids(range(index, index + 1)))


@dataclass(slots=True, eq=False)
class BytesTable:
    """Bytes in a list; only those that go into a batch become an object array."""

    at_rest: ClassVar[bool] = True
    items: list[bytes]

    @property
    def structure(self) -> Structure:
        """The structure of an element."""
        return LEAF

    def row(self, index: int) -> Leaves:
        """The components of one element."""
        return [self.items[index]]

    def take(self, rows: Rows) -> Leaves:
        """The components of several elements, stacked."""
        chosen = self.chosen(rows)
        return [np.fromiter(chosen, STRING, len(chosen))]

    def chosen(self, rows: Rows) -> list[bytes]:
        """Several elements, one after the other."""
        if isinstance(rows, range):
            return self.items[rows.start : rows.stop if rows.stop >= 0 else None : rows.step]
        return [self.items[row] for row in rows.tolist()]

    def ids(self, rows: Rows) -> Array:
        """Numbers of the source elements behind `rows`."""
        return row_numbers(rows)

    def segment(self, index: int) -> Slab:
        """One element seen as a batch of rows."""
        return as_slab([self.items[index]], row_numbers(range(index, index + 1)))


def row_numbers(rows: Rows) -> Array:
    """Rows as an array."""
    return np.arange(rows.start, rows.stop, rows.step) if isinstance(rows, range) else rows


def single(leaves: Leaves, structure: Structure, ids: Array | None = None) -> Run:
    """A run of one element."""
    return Run(ListTable([leaves], structure, None if ids is None else [ids]), range(1))


Item = tuple[Leaves, Structure, Array | None]
"""Components of an element, its structure, and the ids of its source elements if requested."""
Task = tuple[int, Item] | Failed
"""Number of an element and the element; or the reason why there is none."""


def items(runs: Iterator[Run], provenance: bool) -> Iterator[Item]:
    """Elements one by one: components, structure, and (if requested) ids of the source elements.

    Args:
      runs: What a stage reads; a run that cannot be gathered waits there.
      provenance: Whether to include ids.
    """
    for item in attempts(runs, provenance):
        if isinstance(item, Failed):
            runs.fail(item)  # type: ignore[attr-defined]
        else:
            yield item


def attempts(runs: Iterator[Run], provenance: bool) -> Iterator[Item | Failed]:
    """As `items`, with failures at their places."""
    for run in runs:
        if isinstance(run, Failed):
            yield run
            continue
        table = run.table
        structure = table.structure
        for index in run.indices():
            try:
                item: Item | Failed = (
                    table.row(index),
                    structure,
                    table.ids(range(index, index + 1)) if provenance else None,
                )
            except Exception as error:  # batches are assembled only here
                item = Failed(error)
            yield item


def as_runs(attempted: Iterable[Item | Failed]) -> Iterator[Run]:
    """Runs of one element each: the inverse of `attempts`."""
    return (item if isinstance(item, Failed) else single(*item) for item in attempted)


def spec_shown_by(item: Item) -> Any:
    """The nested spec of elements, derived from one of them; arrays of others may have any size."""
    leaves, structure, _ = item
    return any_size(structure.pack([spec_of(leaf) for leaf in leaves]))


def nbytes(leaves: Leaves) -> int:
    """Memory of an element's components, without Python's overhead."""
    return sum(len(leaf) if isinstance(leaf, bytes) else getattr(leaf, "nbytes", 0) for leaf in leaves)


def as_slab(leaves: Leaves, ids: Array) -> Slab:
    """Sees an element as a batch of rows.

    Raises:
      InvalidArgumentError: if a component has no first dimension, or the first dimensions differ.
    """
    shapes = [np.shape(leaf) for leaf in leaves]
    if not shapes:
        raise InvalidArgumentError(
            "an element without components has no rows to split; map it to arrays first"
        )
    if any(shape == () for shape in shapes):
        raise InvalidArgumentError(
            f"an element with components of shape {shapes} has no rows to split: scalars cannot be "
            "divided among "
            "replicas; batch the dataset first: dataset.batch(global_batch_size)"
        )
    if len({shape[0] for shape in shapes}) > 1:
        raise InvalidArgumentError(
            f"the components of a batch must have the same number of rows, got shapes {shapes}; "
            "check the function that made them"
        )
    return Slab(leaves, ids)
