"""The models of recorded runs: a list, a comparison of two, and a replay of one."""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from workbench.errors import DataCorruption, WorkbenchError
from workbench.telemetry.records import bandwidth
from workbench.telemetry.runs.recorded_run import Run, open_run
from workbench.telemetry.runs.transfer_times import Kind, Times
from workbench.ui.models.collectives_model import collectives_model
from workbench.ui.models.messages import MODELS
from workbench.ui.models.model_check import misfits
from workbench.ui.models.runs import ComparedRow, Replay, RunEntry, Runs, Spread
from workbench.ui.render.plain_values import plain

MAX_RUNS: Final = 200
LOOKED_AT: Final = (
    "topology",
    "devices",
    "values",
    "array_sharding",
    "dataset_sharding",
    "input",
    "data_service",
    "servers",
)
"""What a recording holds besides records, if it was shown or inspected."""
_ALIKE: Final = 0.05
"""Medians closer than this count as alike, even if the difference is certain."""
_FEW: Final = 8
"""With fewer collectives, the quartiles are not meaningful."""
_NOTCH: Final = 1.57
"""Medians differ, at about 95 %, if median ± this × interquartile range / √n do not overlap (McGill)."""
_ORDER: Final = ("slower", "faster", "alike", "too few", "only in one")


def runs_model(folder: str | os.PathLike[str], compare: tuple[str, str] | None = None) -> Runs:
    """The recorded runs in a folder, newest first; those that cannot be opened say why.

    Args:
      folder: The folder to search, without subfolders.
      compare: Paths of two runs to compare.

    Raises:
      NotFoundError: if one of the compared runs does not exist.
      DataCorruption: if one of them is damaged.
    """
    paths = newest_first(recorded_in(Path(folder)))[:MAX_RUNS]
    return Runs(
        folder=str(folder),
        runs=tuple(map(run_entry, paths)),
        compared=() if compare is None else (Path(compare[0]).stem, Path(compare[1]).stem),
        rows=() if compare is None else compared(open_run(compare[0]), open_run(compare[1])),
    )


def recorded_in(folder: Path) -> list[Path]:
    """The files in a folder that may be recorded runs, in any order. Opening a pipe would wait for its other end."""
    return [path for path in folder.glob("*.parquet") if not path.name.startswith(".") and path.is_file()]


def newest_first(paths: Iterable[Path]) -> list[Path]:
    """Files by the time when they were written, to the nanosecond, without those that just vanished."""
    written = []
    for path in paths:
        with contextlib.suppress(OSError):
            written.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(written, reverse=True)]


def run_entry(path: Path) -> RunEntry:
    """The list's entry for one recorded run; if it cannot be opened, why."""
    try:
        return _entry(open_run(path))
    except (WorkbenchError, OSError) as error:
        problem = str(error).splitlines()[0]
        return RunEntry(str(path), path.stem, *_changed(path), 0, 0.0, 0, 0, problem)


def _entry(run: Run) -> RunEntry:
    span = run.span()
    changed, size_bytes = _changed(run.path)
    return RunEntry(
        path=str(run.path),
        name=run.path.stem,
        written=_time_of_day(run.ended_ns()) or changed,  # the file may be a later copy
        size_bytes=size_bytes,
        records=span.records,
        duration_seconds=round(span.seconds, 3),
        replicas=span.replicas,
        alerts=sum(event.kind == "alert" for event in run.events),
        problem="",
    )


def _changed(path: Path) -> tuple[str, int]:
    """The date and time when a file last changed, and its size; nothing for a file that just vanished."""
    try:
        status = path.stat()
    except OSError:
        return "", 0
    return _time_of_day(status.st_mtime_ns), status.st_size


def _time_of_day(time_ns: int) -> str:
    """ISO 8601, from ns since 1970; "" if there is no such time, as in a manipulated file."""
    try:
        return datetime.datetime.fromtimestamp(time_ns / 1e9).astimezone().isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return ""


def replay_of(run: Run, steps: range | None = None) -> dict[str, Any]:
    """A recorded run with everything that its views draw, JSON-able; see `models.runs.Replay`.

    Args:
      run: The run, which reads its file only once.
      steps: The steps to show; by default all, of which views show the newest.

    Raises:
      DataCorruption: if the file is damaged.
      InvalidArgumentError: if `steps` is not a range of steps.
    """
    span = run.span()
    snapshot = run.snapshot() if steps is None else run.snapshot_of(steps)
    looks = {}
    notes = [f"{view}: too large to be recorded" for view in run.looks.left_out]
    for view in LOOKED_AT:
        looks[view], problem = _looked_at(run, view)
        notes += [problem] if problem else []
    model = Replay(
        run=_entry(run),
        first_step=span.first_step,
        last_step=span.last_step,
        shown_from=span.first_step if steps is None else steps.start,
        shown_to=span.last_step if steps is None else steps.stop - 1,
        collectives=collectives_model(snapshot, status="replay"),
        topology=None,
        devices=None,
        values=None,
        array_sharding=None,
        dataset_sharding=None,
        input=None,
        data_service=None,
        servers=None,
        notes=tuple(notes),
    )
    return plain(model) | looks


def _looked_at(run: Run, view: str) -> tuple[Any, str]:
    """The model of a view from the file, if the view can draw it; otherwise why not."""
    try:
        model = run.looks.model(view)
    except DataCorruption as error:
        return None, str(error)
    if model is None:
        return None, ""
    if wrong := misfits(model, MODELS[view]):
        return None, f"{view}: recorded by another version of workbench ({wrong[0]})"
    return model | ({"status": "replay"} if "status" in model else {}), ""


def compared(first: Run, second: Run) -> tuple[ComparedRow, ...]:
    """Two runs side by side, by operation, reduction, type, size bucket and replicas; with what got slower first.

    Raises:
      DataCorruption: if one of them is damaged.
    """
    return compared_times(first.transfers(), second.transfers())


def compared_times(first: Mapping[Kind, Times], second: Mapping[Kind, Times]) -> tuple[ComparedRow, ...]:
    """As `compared`, from how long collectives took."""
    rows = [_compared(kind, first.get(kind), second.get(kind)) for kind in sorted({*first, *second})]
    return tuple(
        sorted(rows, key=lambda row: (_ORDER.index(row.verdict), -abs(row.difference_seconds or 0.0)))
    )


def _compared(kind: Kind, first: Times | None, second: Times | None) -> ComparedRow:
    op, redop, dtype, _, n = kind
    newest = second or first
    assert newest is not None  # the kind comes from at least one of them
    one = None if first is None else _spread(kind, first)
    other = None if second is None else _spread(kind, second)
    both = one is not None and other is not None and one.p50_us > 0
    return ComparedRow(
        key="|".join(map(str, kind)),
        op=op,
        redop=redop,
        dtype=dtype,
        n=n,
        size_bytes=newest.size_bytes,
        first=one,
        second=other,
        ratio=other.p50_us / one.p50_us if both and one and other else None,
        difference_seconds=(other.p50_us - one.p50_us) * other.samples / 1e6 if one and other else None,
        verdict=_verdict(one, other),
    )


def _spread(kind: Kind, times: Times) -> Spread:
    op, *_, n = kind
    p25, p50, p75 = (float(us) for us in np.quantile(times.seconds, (0.25, 0.5, 0.75)) * 1e6)
    return Spread(len(times.seconds), p25, p50, p75, bandwidth(op, times.size_bytes, p50 * 1000, n).busbw)


def _verdict(one: Spread | None, other: Spread | None) -> str:
    if one is None or other is None:
        return "only in one"
    if min(one.samples, other.samples) < _FEW:
        return "too few"
    (low, high), (low_2, high_2) = map(_notch, (one, other))
    if low_2 > high and other.p50_us > (1 + _ALIKE) * one.p50_us:
        return "slower"
    if high_2 < low and other.p50_us < (1 - _ALIKE) * one.p50_us:
        return "faster"
    return "alike"


def _notch(spread: Spread) -> tuple[float, float]:
    half = _NOTCH * (spread.p75_us - spread.p25_us) / spread.samples**0.5
    return spread.p50_us - half, spread.p50_us + half


def names_of(rows: Iterable[ComparedRow], verdict: str) -> str:
    """The operations with a verdict, most costly first, such as "all_reduce, broadcast"."""
    return ", ".join(dict.fromkeys(row.op for row in rows if row.verdict == verdict))
