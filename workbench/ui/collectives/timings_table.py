"""The cells of the timing table, for HTML; `telemetry.export.text.table_text` is the text version."""

from __future__ import annotations

from typing import Final

from workbench.telemetry.export.text import how_text, late_text
from workbench.telemetry.formatting import (
    NOTHING,
    dtype_text,
    rate_text,
    significant,
    size_text,
    time_unit,
    whole_percent,
)
from workbench.telemetry.snapshot import TableRow

HEADINGS: Final = (
    "op",
    "for",
    "red",
    "type",
    "size",
    "n",
    "last",
    "p50",
    "p99",
    "cv %",
    "algbw",
    "busbw",
    "lim %",
    "wait %",
    "how",
    "late",
)
LEFT_COLUMNS: Final = 4


def timing_cells(row: TableRow) -> list[str]:
    """One row, figures with their units."""
    unit, per_us = time_unit([row.p50_us])
    times = [f"{significant(us / per_us)} {unit}" for us in (row.last_us, row.p50_us, row.p99_us)]
    return [
        row.op,
        row.purpose or NOTHING,
        row.redop or NOTHING,
        dtype_text(row.dtype),
        size_text(row.size_bytes),
        str(row.n),
        *times,
        whole_percent(row.cv_percent),
        rate_text(row.algbw),
        rate_text(row.busbw),
        NOTHING if row.limit_percent is None else whole_percent(row.limit_percent),
        whole_percent(row.wait_percent),
        how_text(row),
        late_text(row),
    ]
