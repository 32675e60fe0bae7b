"""The memory of waiting elements."""

from __future__ import annotations

from workbench.data.tables import ArrayTable, Failed, ListTable, Run, nbytes


def held_bytes(run: Run) -> int:
    """What the elements of a run hold, without what Python adds; 0 for those that are made when they are asked for."""
    if isinstance(run, Failed):
        return 0
    table = run.table
    if isinstance(table, ListTable):
        return sum(nbytes(table.items[row]) for row in run.indices())
    if isinstance(table, ArrayTable):
        return sum(column.nbytes // max(1, len(column)) for column in table.columns) * len(run)
    return 0
