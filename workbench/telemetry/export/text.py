"""The collective timing views as text, at most 88 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from workbench.telemetry.feed.losses import losses
from workbench.telemetry.formatting import (
    NOTHING,
    SIGNS,
    dtype_text,
    percent,
    printable,
    shorten,
    significant,
    size_text,
    time_unit,
    whole_percent,
)
from workbench.telemetry.records import SAMPLED
from workbench.telemetry.snapshot import GroupView, Snapshot, TableRow
from workbench.telemetry.verdicts import verdicts
from workbench.telemetry.verdicts.words import verdict_text

WIDTH: Final = 88
_LEFT: Final = ("op", "for", "how", "late")
_EXPENDABLE: Final = ("cv%", "algbw", "p50", "how", "for")
"""Columns to leave out, in this order, until a table is no wider than `WIDTH`."""
_SAMPLED: Final = "sampled: of a few profiled steps of compiled programs; other steps may differ"


def line_text(row: TableRow) -> str:
    """One row as one line: `all_reduce  sum  f32  n=4  16 MiB   last 3.10 ms  p99 4.00  algbw 5.41  …`."""
    unit, per_us = time_unit([row.last_us])
    head = (row.op, row.redop, dtype_text(row.dtype), f"n={row.n}", size_text(row.size_bytes))
    tail = (
        f" last {significant(row.last_us / per_us)} {unit}",
        f"p99 {significant(row.p99_us / per_us)}",
        f"algbw {significant(row.algbw)}",
        f"busbw {significant(row.busbw)} GB/s",
        f"wait {percent(row.wait_percent / 100)}",
        f"late: {late_text(row)}",
    )
    return printable("  ".join(part for part in (*head, *tail) if part))


def late_text(row: TableRow) -> str:
    """The replica that came last most often, such as "r3@b", or "–" if clock error hides it."""
    if row.late_replica is None:
        return NOTHING
    return f"r{row.late_replica}@{row.late_host}" if row.late_host else f"r{row.late_replica}"


def table_text(rows: Sequence[TableRow]) -> str:
    """The timing table; per group a heading, then columns in the order of nccl-tests.

    Times are transfer times (from the last replica's arrival) in one unit per group; bandwidths are GB/s of the latest,
    and so is `lim%`, the percentage of `limits.Limit`.
    """
    parts = []
    for group, members in groupby(rows, key=lambda row: row.group):
        parts.append(_group_text(group, list(members)))
    return "\n\n".join(parts) if parts else "no collectives recorded yet"


def how_text(row: TableRow) -> str:
    """The algorithm and packs, such as "ring, 2 packs"; "–" if unknown."""
    packs = f"{row.packs} packs" if row.packs > 1 else ""
    return ", ".join(part for part in (row.algorithm, packs) if part) or NOTHING


def _group_text(group: str, rows: list[TableRow]) -> str:
    unit, per_us = time_unit([row.p50_us for row in rows])
    internal = any(row.purpose for row in rows)
    columns: dict[str, list[str]] = {
        "op": [row.op for row in rows],
        **({"for": [row.purpose or "user" for row in rows]} if internal else {}),
        "size": [size_text(row.size_bytes) for row in rows],
        "type": [dtype_text(row.dtype) for row in rows],
        "red": [row.redop for row in rows],
        "last": [significant(row.last_us / per_us) for row in rows],
        "p50": [significant(row.p50_us / per_us) for row in rows],
        "p99": [significant(row.p99_us / per_us) for row in rows],
        "cv%": [whole_percent(row.cv_percent) for row in rows],
        "algbw": [significant(row.algbw) for row in rows],
        "busbw": [significant(row.busbw) for row in rows],
        "lim%": [NOTHING if row.limit_percent is None else whole_percent(row.limit_percent) for row in rows],
        "wait%": [whole_percent(row.wait_percent) for row in rows],
        "how": [how_text(row) for row in rows],
        "late": [late_text(row) for row in rows],
    }
    columns = {title: list(map(printable, cells)) for title, cells in columns.items()}
    label = printable(group) or "collectives"
    lines = [shorten(f"{label}: n={rows[-1].n}, times in {unit}, bandwidths in GB/s", WIDTH)]
    widths = {title: max(len(title), *map(len, cells)) for title, cells in columns.items()}
    for title in _EXPENDABLE:
        if sum(widths.values()) + len(widths) - 1 > WIDTH:
            columns.pop(title, None)
            widths.pop(title, None)
    for cells in ([*columns], *zip(*columns.values(), strict=True)):
        parts = [
            cell.ljust(width) if title in _LEFT else cell.rjust(width)
            for cell, (title, width) in zip(cells, widths.items(), strict=True)
        ]
        lines.append(shorten(" ".join(parts).rstrip(), WIDTH))
    if any(row.algorithm == SAMPLED for row in rows):
        lines.append(_SAMPLED)
    return "\n".join(lines)


def snapshot_text(snapshot: Snapshot) -> str:
    """The first verdict, the table, then the rest: other verdicts, slow steps, losses."""
    first, *others = verdicts(snapshot)
    notes = [f"! {verdict_text(each)}" for each in others]
    notes += [note for group in snapshot.groups for note in _notes(group)]
    if lost := losses(snapshot.counters):
        notes.append(
            ", ".join([f"{snapshot.counters.collectives:,} collectives", *(loss.text for loss in lost)])
        )
        notes += [f"  {loss.text}: {loss.meaning}" for loss in lost]
    lines = [line for note in notes for line in _wrapped(note)]
    said = [*_wrapped(f"{SIGNS[first.severity]} {verdict_text(first)}"), ""] if snapshot.groups else []
    return "\n".join([*said, table_text(snapshot.table), *([""] if lines else []), *lines])


def _wrapped(note: str) -> list[str]:
    return textwrap.wrap(printable(note), WIDTH, subsequent_indent="  ")


def _notes(group: GroupView) -> list[str]:
    if not group.lateness.slow_steps:
        return []
    return [f"! slow for every replica: steps {', '.join(map(str, group.lateness.slow_steps[-8:]))}"]
