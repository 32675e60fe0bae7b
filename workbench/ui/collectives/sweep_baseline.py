"""A saved sweep, the baseline of later ones: a small JSON file; reading it executes nothing."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Final

from workbench.errors import InvalidArgumentError
from workbench.telemetry.feed.sweeps import Baseline, Sweep, SweepPoint
from workbench.telemetry.formatting import printable

FORMAT: Final = "workbench sweep 1"
_MOST_BYTES: Final = 10_000_000


def save_sweeps(path: str | Path, sweeps: Sequence[Sweep]) -> Path:
    """Writes sweeps to a file; replaces an existing one.

    Raises:
      OSError: if it cannot be written.
    """
    kept = [asdict(replace(sweep, baseline=None)) for sweep in sweeps]
    target = Path(path)
    target.write_text(json.dumps({"format": FORMAT, "sweeps": kept}, indent=1) + "\n", encoding="utf-8")
    return target


def load_baselines(path: str | Path) -> dict[tuple[str, str], Baseline]:
    """The baselines in a file, by operation and dtype.

    Raises:
      InvalidArgumentError: if it is not a file that `save_sweeps` wrote.
      OSError: if it cannot be read.
    """
    source = Path(path)
    try:
        if source.stat().st_size > _MOST_BYTES:
            raise ValueError("too large")
        data = json.loads(source.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']!r:.40}")
        return {
            (str(sweep["op"]), str(sweep["dtype"])): Baseline(
                source.stem, int(sweep["n"]), str(sweep["transport"]), tuple(map(_point, sweep["points"]))
            )
            for sweep in data["sweeps"]
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidArgumentError(
            f"baseline {str(path)!r} is not a sweep that wb.collectives.sweep(...).save(path) has written: {error}"
        ) from error


def baselines_of(sweeps: Sequence[Sweep], name: str) -> dict[tuple[str, str], Baseline]:
    """Sweeps of this session as baselines."""
    return {
        (sweep.op, sweep.dtype): Baseline(name, sweep.n, sweep.transport, sweep.points) for sweep in sweeps
    }


def comparison_text(sweep: Sweep) -> str:
    """How a sweep compares with its baseline, over their common sizes; "" without a baseline."""
    baseline = sweep.baseline
    if baseline is None:
        return ""
    name = printable(baseline.name)
    known = {point.size_bytes: point.p50_us for point in baseline.points}
    ratios = [
        known[point.size_bytes] / point.p50_us
        for point in sweep.points
        if known.get(point.size_bytes) and point.p50_us > 0
    ]
    if not ratios:
        return f"{sweep.op}: no size in common with {name}"
    over = "" if baseline.n == sweep.n else f", which was over {baseline.n} replicas"
    return (
        f"{sweep.op}: {statistics.geometric_mean(ratios):.2f} × as fast as {name} "
        f"({min(ratios):.2f} to {max(ratios):.2f} over {len(ratios)} sizes){over}"
    )


def _point(given: dict[str, Any]) -> SweepPoint:
    values = {field.name: given[field.name] for field in fields(SweepPoint)}
    for name, value in values.items():
        fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not fits and not (value is None and name.endswith("busbw")):
            raise ValueError(f"{name} is {value!r:.40}")
    return SweepPoint(**values)
