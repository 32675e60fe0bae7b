"""Calls the function of `map` for blocks of rows, after checking whether it may."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from workbench.data.blocks.expression import Expression
from workbench.data.blocks.recorder import recorded
from workbench.data.blocks.straight_code import Captured, Unprovable, captured_by
from workbench.data.blocks.table import BlockTable, unwrapped
from workbench.data.meter import StageMeter, Unmeasured
from workbench.data.options import Options, WorkerKind
from workbench.data.structure import Array, Structure
from workbench.data.tables import ArrayTable, Failed, Leaves, RangeTable, Run, Table, nbytes

_FEWEST_ROWS: Final = 8
_MOST_ROWS: Final = 4096
_BLOCK_BYTES: Final = 64 * 1024
_COMPARED_FIRST: Final = 4
_MOST_REFUSED: Final = 4
_STRIDE: Final = 2654435761  # Knuth's multiplier, which spreads the rows to compare

Call = Callable[[Leaves, Structure, int], tuple[Leaves, Structure]]


def blocks_wanted(options: Options) -> bool:
    """Whether the options leave `map` the choice to call functions for blocks of rows."""
    wanted = options.experimental_optimization.map_vectorization
    return (
        options.experimental_optimization.apply_default_optimizations is not False
        if wanted is None
        else wanted
    )


def tunes_blocks(options: Options) -> bool:
    """Whether that holds even for `AUTOTUNE`, which would otherwise choose threads or processes."""
    kind = options.threading.worker_kind
    return (
        blocks_wanted(options) and options.autotune.enabled is not False and kind in (None, WorkerKind.AUTO)
    )


@dataclass(slots=True)
class BlockCalls:
    """The calls of one function in one pass.

    Attributes:
      function: The user's function.
      apply: Calls it with an element.
      call: Takes components, structure and number of an element; returns components and structure.
      meter: The meter of the stage.
    """

    function: Callable[..., Any]
    apply: Callable[[Any], Any]
    call: Call
    meter: StageMeter | Unmeasured
    _expressions: dict[Any, tuple[Expression, Captured]] = field(default_factory=dict)
    _refused: int = 0
    _obstacle: str = ""

    def parts(self, run: Run) -> Iterator[Run]:
        """The run in pieces, one per block; unchanged if it cannot be computed in blocks."""
        size = 0 if isinstance(run, Failed) else self._block_rows(run)
        if not size:
            yield run
            return
        for start in range(0, len(run), size):
            yield Run(run.table, run.rows[start : start + size])

    def suits(self, run: Run) -> bool:
        """Whether the rows of a run can be computed in blocks."""
        return not isinstance(run, Failed) and bool(self._block_rows(run))

    def block(self, part: Run, first: int) -> Run | None:
        """The results for the rows, as one run; None if the function must be called for each of them.

        Args:
          part: A part of a run, from `parts`.
          first: Number of its first row among all elements.
        """
        if isinstance(part, Failed) or not self._block_rows(part):
            return None
        leaves = part.gather()
        expression, captured = self._expression(part.table, leaves)
        if not captured.unchanged():
            self._give_up("a name that it refers to has changed its meaning")
            return None
        columns = expression.of_rows(leaves)
        if columns is None:
            self._refused += 1
            if self._refused == _MOST_REFUSED:
                self._give_up("NumPy warns about its results")
            return None
        structure = self._compared(part, columns, first)
        if structure is None:
            return None
        if not first:
            self.meter.blocks(len(part))
            self.meter.note(f"computed for {len(part):,} rows at a time, which gives the same as row by row")
        table = BlockTable(columns, structure, part, captured, self.call, first)
        return Run(table, range(len(part)))

    def _block_rows(self, run: Run) -> int:
        """How many rows of a run make a block; 0 if its rows cannot be computed together."""
        if self._obstacle or len(run) < _FEWEST_ROWS:
            return 0
        if not _is_of_arrays(run.table):
            self._note("elements do not come from arrays")
            return 0
        try:
            leaves = run.table.take(run.rows[:1])
            self._expression(run.table, leaves)
        except Unprovable as why:
            self._give_up(str(why))
            return 0
        size = _BLOCK_BYTES // max(1, nbytes(leaves))
        if size < _FEWEST_ROWS:
            self._note("elements are large")
            return 0
        return min(size, _MOST_ROWS)

    def _expression(self, table: Table, leaves: Leaves) -> tuple[Expression, Captured]:
        rows = tuple((leaf.shape[1:], leaf.dtype) for leaf in leaves)
        key = table.structure, rows
        known = self._expressions.get(key)
        if known is None:
            if any(type(leaf) is not np.ndarray for leaf in leaves):
                raise Unprovable("elements are not plain arrays")
            captured = captured_by(self.function)
            known = self._expressions[key] = recorded(self.apply, table.structure, rows), captured
        expression, captured = known
        below = unwrapped(table)
        return expression, captured.joined(below.captured) if isinstance(below, BlockTable) else captured

    def _compared(self, part: Run, columns: Leaves, first: int) -> Structure | None:
        """The structure of results, if calls for some of the rows return what was computed for all; otherwise None."""
        some = range(min(_COMPARED_FIRST, len(part))) if not first else [first * _STRIDE % len(part)]
        structure: Structure | None = None
        for index in some:
            row = int(part.rows[index])
            try:
                leaves, structure = self.call(part.table.row(row), part.table.structure, first + index)
            except Exception:
                self._give_up("it fails for some rows")
                return None
            if len(leaves) != len(columns) or not all(
                _is_row(leaf, column, index) for leaf, column in zip(leaves, columns, strict=True)
            ):
                self._give_up("it gives something else for a block")
                return None
        return structure

    def _give_up(self, why: str) -> None:
        self._obstacle = why
        self.meter.blocks(0)
        self._note(why)

    def _note(self, why: str) -> None:
        self.meter.note(f"called row by row: {why}")


def _is_of_arrays(table: Table) -> bool:
    return isinstance(unwrapped(table), ArrayTable | RangeTable | BlockTable)


def _is_row(leaf: Any, column: Array, index: int) -> bool:
    """Whether a row of a column equals the result of a call, bit for bit."""
    row: Any = column[index]
    if not isinstance(leaf, np.ndarray | np.generic) or not isinstance(row, np.ndarray | np.generic):
        return bool(type(leaf) is type(row) and leaf == row)
    return leaf.dtype == row.dtype and leaf.shape == row.shape and leaf.tobytes() == row.tobytes()
