"""Results of a function, computed for a block of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from workbench.data.blocks.straight_code import Captured
from workbench.data.provenance import OffsetTable
from workbench.data.stacking import stack
from workbench.data.structure import Array, Structure
from workbench.data.tables import (
    Failed,
    Leaves,
    Rows,
    Run,
    Segment,
    Table,
    as_slab,
    attempts,
    row_numbers,
    single,
)
from workbench.errors import InvalidArgumentError


@dataclass(slots=True, eq=False)
class BlockTable:
    """Results for the rows of a run. If a name of the function has been rebound since, the function is called again.

    Attributes:
      columns: The results, shape `(n, ...)` each.
      structure: The structure of a result.
      source: The rows they were computed from.
      captured: The objects that the function's names referred to.
      call: Takes components, structure and number of an element; returns components and structure.
      first: Number of the first row among all elements.
    """

    at_rest: ClassVar[bool] = True
    columns: Leaves
    structure: Structure
    source: Run
    captured: Captured
    call: Callable[..., Any]
    first: int

    def row(self, index: int) -> Leaves:
        """The components of one element."""
        if self.captured.unchanged():
            return [column[index] for column in self.columns]
        table = self.source.table
        leaves: Leaves
        leaves, structure = self.call(
            table.row(int(self.source.rows[index])), table.structure, self.first + index
        )
        if structure != self.structure:
            raise InvalidArgumentError(
                f"element {self.first + index} has a different structure from those before it: a name that the "
                "function of map refers to has changed its meaning since then"
            )
        return leaves

    def take(self, rows: Rows) -> Leaves:
        """The components of several elements, stacked."""
        if not self.captured.unchanged():
            return stack([self.row(int(row)) for row in rows], self.structure)
        if isinstance(rows, range):
            where = slice(rows.start, rows.stop if rows.stop >= 0 else None, rows.step)
            return [column[where] for column in self.columns]
        return [column.take(rows, axis=0) for column in self.columns]

    def ids(self, rows: Rows) -> Array:
        """Numbers of the source elements behind `rows`."""
        return self.source.table.ids(row_numbers(self.source.rows)[row_numbers(rows)])

    def segment(self, index: int) -> Segment:
        """One element seen as a batch of rows."""
        return as_slab(self.row(index), self.ids(range(index, index + 1)))


def unwrapped(table: Table) -> Table:
    """The table whose ids were moved, or the table itself."""
    while isinstance(table, OffsetTable):
        table = table.table
    return table


def is_block(run: Run) -> bool:
    """Whether a run has rows of a block."""
    return not isinstance(run, Failed) and isinstance(unwrapped(run.table), BlockTable)


def one_by_one(runs: Iterator[Run], provenance: bool) -> Iterator[Run]:
    """`runs`, with each result of a block as its own run, made on request.

    For stages that buffer elements, or whose order depends on which elements come together: they see the same as if the
    function was called for each row.

    Args:
      runs: What a stage reads.
      provenance: Whether to include ids.
    """
    for run in runs:
        if not is_block(run):
            yield run
            continue
        for item in attempts(iter((run,)), provenance):
            if not isinstance(item, Failed):
                yield single(*item)
            elif hasattr(runs, "fail"):  # created by a stage that does not handle failures
                runs.fail(item)
            else:
                yield item
