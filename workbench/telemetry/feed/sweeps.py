"""Bandwidth over message size: rows of the timing table, combined per operation and group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from workbench.telemetry.records import bandwidth
from workbench.telemetry.snapshot import TableRow

_MIN_SIZES: Final = 3
"""The fewest sizes to fit; a line through two points always fits."""


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """Timing at one message size, over its newest collectives.

    Attributes:
      size_bytes: Size S.
      samples: Number of collectives behind the figures.
      p10_us, p50_us, p90_us: Transfer time.
      p10_busbw, p50_busbw, p90_busbw: Bus bandwidth, GB/s; that of the 90th percentile is the best tenth.
    """

    size_bytes: int
    samples: int
    p10_us: float
    p50_us: float
    p90_us: float
    p10_busbw: float | None
    p50_busbw: float | None
    p90_busbw: float | None


@dataclass(frozen=True, slots=True)
class Baseline:
    """An earlier sweep of an operation, to compare with.

    Attributes:
      name: Its name.
      n: Number of replicas.
      transport: How they exchanged data.
      points: Smallest size first.
    """

    name: str
    n: int
    transport: str
    points: tuple[SweepPoint, ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    """Bandwidth of one operation over message sizes.

    Attributes:
      key: Identifies it.
      op, redop, dtype, group, n, transport: As in the timing table.
      points: Smallest size first.
      latency_us: α of the fit t = α + S / β; None if there are too few sizes, or time does not grow with size.
      bandwidth: β of the fit as algorithm bandwidth, GB/s, or None.
      limit: The measured limit of busbw, GB/s, or None.
      baseline: The sweep to compare with, or None.
    """

    key: str
    op: str
    redop: str
    dtype: str
    group: str
    n: int
    transport: str
    points: tuple[SweepPoint, ...]
    latency_us: float | None
    bandwidth: float | None
    limit: float | None
    baseline: Baseline | None = None


def sweeps(table: Sequence[TableRow]) -> tuple[Sweep, ...]:
    """One per operation, reduction, dtype and group with more than one message size."""
    kinds: defaultdict[tuple[str, str, str, str], list[TableRow]] = defaultdict(list)
    for row in table:
        if row.busbw is not None and row.recent_us:
            kinds[row.group, row.op, row.redop, row.dtype].append(row)
    return tuple(_sweep(rows) for rows in kinds.values() if len(rows) > 1)


def _sweep(rows: list[TableRow]) -> Sweep:
    rows = sorted(rows, key=lambda row: row.size_bytes)
    first, last = rows[0], rows[-1]
    points = tuple(map(_point, rows))
    latency_us, rate = fitted([point.size_bytes for point in points], [point.p50_us for point in points])
    limit = None
    if last.limit_percent and last.busbw is not None:
        limit = 100 * last.busbw / last.limit_percent
    return Sweep(
        key=f"{first.group}|{first.op}|{first.redop}|{first.dtype}",
        op=first.op,
        redop=first.redop,
        dtype=first.dtype,
        group=first.group,
        n=last.n,
        transport=last.transport,
        points=points,
        latency_us=latency_us,
        bandwidth=rate,
        limit=limit,
    )


def _point(row: TableRow) -> SweepPoint:
    p10, p50, p90 = (float(x) for x in np.quantile(row.recent_us, (0.1, 0.5, 0.9)))
    slow, middle, fast = (bandwidth(row.op, row.size_bytes, 1000 * us, row.n).busbw for us in (p90, p50, p10))
    return SweepPoint(row.size_bytes, len(row.recent_us), p10, p50, p90, slow, middle, fast)


def fitted(sizes_bytes: Sequence[int], times_us: Sequence[float]) -> tuple[float | None, float | None]:
    """Latency and bandwidth of t = α + S / β, with the smallest sum of squared relative errors.

    Args:
      sizes_bytes: Message sizes.
      times_us: How long each took.

    Returns:
      α in µs and β in GB/s; (None, None) if the figures do not determine them.

    >>> fitted([1000, 10_000, 100_000], [11.0, 20.0, 110.0])
    (10.0, 1.0)
    """
    if len(set(sizes_bytes)) < _MIN_SIZES or min(times_us) <= 0:
        return None, None
    times = np.array(times_us)
    # Relative errors: otherwise, the largest message, a million times the smallest, would dominate.
    matrix = np.stack([1 / times, np.array(sizes_bytes) / times], axis=1)
    (latency, per_byte), *_ = np.linalg.lstsq(matrix, np.ones(len(times)), rcond=None)
    if per_byte <= 0:
        return None, None
    return round(max(0.0, float(latency)), 6), round(float(1 / per_byte) / 1000, 9)
