"""Recorded runs as a list, and two of them compared."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from workbench.errors import WorkbenchError
from workbench.telemetry.runs import Run, open_run
from workbench.telemetry.snapshot import TableRow
from workbench.ui.models import ComparedRow, RunEntry, Runs

_MAX_RUNS: Final = 200


def runs_model(folder: str | os.PathLike[str], compare: tuple[str, str] | None = None) -> Runs:
    """The recorded runs in a folder, newest first; those that cannot be opened say why.

    Args:
      folder: Where to look, not below it.
      compare: Paths of two runs to compare.

    Raises:
      NotFoundError: if one of the compared runs is not there.
      DataCorruption: if one of them is damaged.
    """
    where = Path(folder)
    files = sorted(where.glob("*.parquet"), key=lambda file: file.stat().st_mtime, reverse=True)
    rows: tuple[ComparedRow, ...] = ()
    if compare is not None:
        first, second = (open_run(path).table() for path in compare)
        rows = compared(first, second)
    return Runs(
        folder=str(where),
        runs=tuple(map(run_entry, files[:_MAX_RUNS])),
        compared=() if compare is None else tuple(Path(path).stem for path in compare),
        rows=rows,
    )


def run_entry(path: Path) -> RunEntry:
    """What the list says of one recorded run; of one that cannot be opened, why."""
    status = path.stat()
    written = datetime.datetime.fromtimestamp(status.st_mtime).astimezone().isoformat(timespec="seconds")
    try:
        return _facts(open_run(path), written, status.st_size)
    except WorkbenchError as error:
        problem = str(error).splitlines()[0]
        return RunEntry(str(path), path.stem, written, status.st_size, 0, 0.0, 0, 0, problem)


def _facts(run: Run, written: str, size_bytes: int) -> RunEntry:
    """From columns of the file, not from its records as objects."""
    import pyarrow.compute as pc

    records = run.to_arrow().select(["t_enter_ns", "t_end_ns", "clock_offset_ns", "replica", "group"])
    seconds = 0.0
    if len(records):
        begin = pc.min(pc.add(records["t_enter_ns"], records["clock_offset_ns"])).as_py()
        end = pc.max(pc.add(records["t_end_ns"], records["clock_offset_ns"])).as_py()
        seconds = max(0.0, (end - begin) / 1e9)
    return RunEntry(
        path=str(run.path),
        name=run.path.stem,
        written=written,
        size_bytes=size_bytes,
        records=len(records),
        duration_seconds=round(seconds, 3),
        replicas=pc.max(records["replica"]).as_py() + 1 if len(records) else 0,
        alerts=sum(event.kind == "alert" for event in run.events),
        problem="",
    )


def compared(first: Iterable[TableRow], second: Iterable[TableRow]) -> tuple[ComparedRow, ...]:
    """Rows of two timing tables side by side, matched by operation, type, size bucket and number of replicas."""
    one, other = ({_kind(row): row for row in rows} for rows in (first, second))
    return tuple(_compared(kind, one.get(kind), other.get(kind)) for kind in sorted({*one, *other}))


def _kind(row: TableRow) -> tuple[str, str, int, int]:
    return row.op, row.dtype, row.bucket_bytes, row.n


def _compared(kind: tuple[str, str, int, int], one: TableRow | None, other: TableRow | None) -> ComparedRow:
    op, dtype, _, n = kind
    row = one or other
    assert row is not None  # the kind is that of at least one
    ratio = other.p50_us / one.p50_us if one and other and one.p50_us > 0 else None
    return ComparedRow(
        key="|".join(map(str, kind)),
        op=op,
        dtype=dtype,
        n=n,
        size_bytes=row.size_bytes,
        first_p50_us=one.p50_us if one else None,
        second_p50_us=other.p50_us if other else None,
        first_busbw=one.busbw if one else None,
        second_busbw=other.busbw if other else None,
        ratio=ratio,
    )
