"""The memory of waiting elements."""

from __future__ import annotations

from workbench.data.tables import ArrayTable, Failed, ListTable, Run, nbytes


def held_bytes(run: Run) -> int:
    """Memory of a run's elements, without Python's overhead; 0 for elements that are made on request."""
    if isinstance(run, Failed):
        return 0
    table = run.table
    if isinstance(table, ListTable):
        return sum(nbytes(table.items[row]) for row in run.indices())
    if isinstance(table, ArrayTable):
        return sum(column.nbytes // max(1, len(column)) for column in table.columns) * len(run)
    return 0
