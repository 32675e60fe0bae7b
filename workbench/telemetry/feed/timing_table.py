"""The timing table: one row per (op, reduction, size bucket, dtype, group), over the newest collectives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from workbench.telemetry.feed.history import Texts, picked, selected
from workbench.telemetry.limits import Limit
from workbench.telemetry.records import bandwidth
from workbench.telemetry.snapshot import TableRow

_SPARKLINE: Final = 32


def bucket_bytes(size_bytes: np.ndarray) -> np.ndarray:
    """The power of two at or below each size; 0 for 0. Shape as given, int64."""
    _, exponent = np.frexp(np.maximum(size_bytes, 1).astype(np.float64))
    return np.where(size_bytes > 0, np.int64(1) << (exponent - 1).astype(np.int64), 0)


def rolling_table(
    collectives: np.ndarray, texts: Texts, *, ok: int, limits: Mapping[str, tuple[Limit, int]]
) -> tuple[TableRow, ...]:
    """The table over `collectives`.

    Args:
      collectives: Rows of `history.COLLECTIVE`, oldest first; those not in state `ok` are ignored.
      texts: The texts of the numbers in them.
      ok: Number of the text "ok".
      limits: Measured limits of busbw, by group, and the fold in which each became known.
    """
    rows = selected(collectives, collectives["state"] == ok)
    buckets = bucket_bytes(rows["bytes"])
    key = [buckets, *(rows[name] for name in ("dtype", "redop", "op", "purpose", "group"))]
    order = np.lexsort(key)  # stable: within a key, the oldest first, as given
    changed = np.zeros(len(rows), bool)
    for part in key:
        changed[1:] |= np.diff(part[order]) != 0
    changed[:1] = True
    starts = np.flatnonzero(changed)
    parts = np.split(picked(rows, order), starts[1:]) if len(rows) else []
    firsts = buckets[order][starts]
    table = [_row(part, int(bucket), texts, limits) for part, bucket in zip(parts, firsts, strict=True)]
    return tuple(sorted(table, key=_place))


def _place(row: TableRow) -> tuple[str, str, str, str, str, int]:
    return row.group, row.purpose, row.op, row.redop, row.dtype, row.bucket_bytes


def _row(rows: np.ndarray, bucket: int, texts: Texts, limits: Mapping[str, tuple[Limit, int]]) -> TableRow:
    last = rows[-1]
    transfer_us = (rows["end_ns"] - rows["ready_ns"]) / 1000
    mean = float(transfer_us.mean())
    group, purpose, op, redop, dtype = (
        texts[last[name]] for name in ("group", "purpose", "op", "redop", "dtype")
    )
    n, size = int(last["n"]), int(last["bytes"])
    rates = bandwidth(op, size, float(last["end_ns"] - last["ready_ns"]), n)
    limits_of, known_since = limits.get(group, (Limit(), 0))
    limit = limits_of.of(size)
    skew = rows["ready_ns"] - rows["enter_ns"]
    replica, host = _latest(rows, np.flatnonzero((skew >= rows["err_ns"]) & (skew > 0)), texts)
    spent = int(rows["spent_ns"].sum())
    p50, p99 = _quantile(transfer_us, 0.5), _quantile(transfer_us, 0.99)
    return TableRow(
        key="|".join(map(str, (group, purpose, op, redop, dtype, bucket))),
        op=op,
        redop=redop,
        dtype=dtype,
        group=group,
        n=n,
        count=int(last["count"]),
        algorithm=texts[last["algorithm"]],
        packs=int(last["packs"]),
        transport=texts[last["transport"]],
        purpose=purpose,
        size_bytes=size,
        bucket_bytes=bucket,
        samples=len(rows),
        last_us=float(transfer_us[-1]),
        p50_us=p50,
        p99_us=p99,
        cv_percent=100 * float(transfer_us.std()) / mean if mean > 0 else 0.0,
        algbw=rates.algbw,
        busbw=rates.busbw,
        limit_percent=100 * rates.busbw / limit if limit and rates.busbw is not None else None,
        wait_percent=100 * int(rows["wait_ns"].sum()) / spent if spent else 0.0,
        skew_us=_quantile(skew / 1000, 0.5),
        skew_err_us=float(rows["err_ns"].max()) / 1000,
        late_replica=replica,
        late_host=host,
        recent_us=tuple(transfer_us[-_SPARKLINE:].tolist()),
        version=max(int(rows["version"].max()), known_since),
    )


def _quantile(values: np.ndarray, q: float) -> float:
    """The smallest value that a share `q` does not exceed, so that it is a measured time."""
    position = max(0, int(np.ceil(q * len(values))) - 1)
    return float(np.partition(values, position)[position])


def _latest(rows: np.ndarray, told: np.ndarray, texts: Texts) -> tuple[int, str] | tuple[None, None]:
    """The replica that came last most often, among the rows where that is known."""
    if not len(told):
        return None, None
    latest = rows["late_replica"][told]
    replicas, counts = np.unique(latest, return_counts=True)
    replica = replicas[counts.argmax()]
    newest = told[np.flatnonzero(latest == replica)[-1]]
    return int(replica), texts[rows["late_host"][newest]]
