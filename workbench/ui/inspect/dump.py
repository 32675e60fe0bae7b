"""`wb.open_dump`: the dump of `enable_dump_debug_info`, as a table and step by step."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.debugging.dump.reader import array_of, read_dump
from workbench.telemetry.formatting import NOTHING, printable, significant
from workbench.ui.inspect.dump_source import DumpSource
from workbench.ui.render import html
from workbench.ui.render.text_table import aligned
from workbench.ui.widgets.bundle import Bundle, mimebundle

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS: Final = 32
_COUNTS: Final = ("nans", "positive_infinities", "negative_infinities")
_LEFT: Final = ("op", "array", "name", "line")


class Dump:
    """The operations of a dump. Prints as a table; a notebook shows the values of a step, with a slider to choose it.

    Attributes:
      path: The folder.
      mode: How much of each array was dumped.
      notes: What could not be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Reads the folder."""
        read = read_dump(path)
        self.path = read.root
        self.mode = read.mode
        self.notes = read.notes
        self._table = read.table
        self._sources = read.sources

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps with operations, in order; -1 for operations outside steps."""
        return tuple(sorted(pc.unique(self._table["step"]).to_pylist()))

    @property
    def sources(self) -> dict[str, str]:
        """Copies of the user's source files that were involved, by name."""
        return dict(self._sources)

    def select(
        self, *, op: str | None = None, step: int | None = None, replica: int | None = None
    ) -> list[dict[str, Any]]:
        """Rows of the table as dictionaries, in order of time.

        Args:
          op: Only this operation.
          step: Only this step.
          replica: Only this replica; -1 is the notebook.
        """
        table = self._table
        for column, wanted in (("op", op), ("step", step), ("replica", replica)):
            if wanted is not None:
                table = table.filter(pc.equal(table[column], wanted))
        rows: list[dict[str, Any]] = table.to_pylist()
        return rows

    def array(self, row: dict[str, Any]) -> np.ndarray | None:
        """The elements of an operation's result; None unless the mode was "FULL_TENSOR".

        Args:
          row: A row from `select`.
        """
        return array_of(row, self.path)

    @property
    def first_bad(self) -> dict[str, Any] | None:
        """The first row with NaN or infinity, None if all are finite or the mode does not record it."""
        bad: list[dict[str, Any]] = self._table.filter(pc.field("bad")).slice(0, 1).to_pylist()
        return bad[0] if bad else None

    def to_arrow(self) -> pa.Table:
        """All columns of all rows."""
        return self._table

    def to_pandas(self) -> pd.DataFrame:
        """All columns of all rows, as a data frame."""
        return self._table.to_pandas()

    def source(self) -> DumpSource:
        """The source of a view of its values, step by step."""
        return DumpSource(self.steps, lambda step: self.select(step=step), self.array)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Bundle:
        return mimebundle(self.source(), text=repr(self), html=self._repr_html_(), include=include)

    def __repr__(self) -> str:
        headings, rows = self._shown()
        lines = aligned(headings, rows, left=_LEFT, expendable=("name", "zeros", "array", "mean", "replica"))
        return "\n".join(
            printable(line) for line in (self._title(), *self._remarks(), *(lines if rows else []))
        )

    def _repr_html_(self) -> str:
        headings, rows = self._shown()
        parts = [html.remark(text) for text in self._remarks()]
        if rows:
            parts.append(html.table(headings, rows, left=2, caption=self._title()))
        return html.card(self._title(), word="", parts=parts)

    def _title(self) -> str:
        count, steps = len(self), [step for step in self.steps if step >= 0]
        span = f", steps {steps[0]} to {steps[-1]}" if steps else ""
        newest = f"the newest {_MOST_ROWS} of " if count > _MOST_ROWS else ""
        return f"Dump {self.path.name}, {self.mode}: {newest}{count:,} operations{span}"

    def _remarks(self) -> list[str]:
        bad = self.first_bad
        if bad is None:
            return list(self.notes)
        where = f"step {bad['step']}" + (f" on replica {bad['replica']}" if bad["replica"] >= 0 else "")
        return [
            f"first NaN or infinity: {bad['op']} at {bad['line'] or 'no line of the user'}, {where}",
            *self.notes,
        ]

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        """Headings and the newest rows, without columns that the mode leaves empty."""
        newest = self._table.slice(max(0, len(self) - _MOST_ROWS)).to_pylist()
        rows = [_cells(row) for row in newest]
        headings = [
            title for title in _cells(dict.fromkeys(self._table.column_names)) if _is_used(title, rows)
        ]
        return headings, [[row[title] for title in headings] for row in rows]


def open_dump(dump_root: str | os.PathLike[str]) -> Dump:
    """Opens what `wb.debugging.experimental.enable_dump_debug_info` wrote; executes nothing in it.

    Args:
      dump_root: The folder.

    Raises:
      NotFoundError: if there is no such folder.
      InvalidArgumentError: if it holds no dump.
    """
    return Dump(dump_root)


def _cells(row: dict[str, Any]) -> dict[str, str]:
    counts = [row[name] for name in _COUNTS]
    known = all(count is not None for count in counts)
    shape = "" if row["shape"] is None else f"[{','.join(map(str, row['shape']))}]"
    return {
        "step": NOTHING if row["step"] in (None, -1) else str(row["step"]),
        "replica": NOTHING if row["replica"] in (None, -1) else str(row["replica"]),
        "op": str(row["op"]),
        "name": row["name"] or NOTHING,
        "array": f"{row['dtype']}{shape}" if row["dtype"] else NOTHING,
        "bad": NOTHING if row["bad"] is None else "✖" if row["bad"] else "no",
        "NaN": str(counts[0]) if known else NOTHING,
        "±Inf": str(counts[1] + counts[2]) if known else NOTHING,
        "zeros": NOTHING if row["zeros"] is None else f"{row['zeros']:.0f}",
        **{name: NOTHING if row[name] is None else significant(row[name]) for name in ("min", "mean", "max")},
        "line": row["line"] or NOTHING,
    }


def _is_used(title: str, rows: list[dict[str, str]]) -> bool:
    return title in ("step", "op", "line") or any(row[title] != NOTHING for row in rows)
