"""Who is late: the replica × step heat map and the rule that calls a replica a straggler."""

from __future__ import annotations

from typing import Final

import numpy as np

from workbench.telemetry.history import selected
from workbench.telemetry.snapshot import Lateness

_STEPS: Final = 64
_MIN_STEPS: Final = 20
_RATIO: Final = 1.5
_MIN_SHARE: Final = 0.1
_MIN_LATE_NS: Final = 100_000
_MIN_LATE_OF_STEP: Final = 0.05


def lateness(records: np.ndarray, replicas: np.ndarray) -> Lateness:
    """The heat map over the newest steps.

    A replica is a straggler if, over at least 20 steps,

    * its mean lateness is more than 1.5 × the average over all replicas, and it is above that in at least half
      of the steps: a fixed row, not one bad step;
    * that lateness is above the clock error, at least 100 µs a step, and at least a twentieth of a step:
      tiny steps have a late replica by nature, which nobody can do anything about;
    * the others lose at least a tenth of their time in collectives to waiting.

    A step is slow for everybody if its average lateness is more than 1.5 × that of all steps, and by as much as
    above, while no replica stands out in it.

    Args:
      records: Rows of `history.RECORD` of one group and generation, joined.
      replicas: The replicas to show, sorted; shape `(rows,)`.
    """
    if not len(records):
        return Lateness()
    step = records["step"]
    records = selected(records, step > step.max() - _STEPS)
    everyone, row = np.unique(records["replica"], return_inverse=True)
    steps, column = np.unique(records["step"], return_inverse=True)
    cell = row * len(steps) + column
    shape = (len(everyone), len(steps))
    late = np.bincount(cell, weights=records["late_ns"], minlength=shape[0] * shape[1]).reshape(shape)
    known = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape) > 0
    shown = np.isin(everyone, replicas)
    cells = np.where(known, np.round(late / 1000, 3), -1)[shown]
    several_hosts = records["host"].min() != records["host"].max()
    noise = 2 * records["clock_err_ns"].max() if several_hosts else 0
    spent = np.maximum(records["t_end_ns"] - records["t_enter_ns"], 0).sum()
    waited = (records["ready_ns"] - records["t_enter_ns"] - records["clock_offset_ns"]).sum()
    matters = len(everyone) > 1 and len(steps) >= _MIN_STEPS and waited >= _MIN_SHARE * spent
    enough = max(noise, _MIN_LATE_NS, _MIN_LATE_OF_STEP * _step_ns(records, column))
    return Lateness(
        replicas=tuple(everyone[shown].tolist()),
        steps=tuple(steps.tolist()),
        late_us=tuple(tuple(None if x < 0 else x for x in line) for line in cells.tolist()),
        stragglers=tuple(everyone[_stragglers(late, enough)].tolist()) if matters else (),
        slow_steps=tuple(steps[_slow_steps(late, enough)].tolist()) if matters else (),
    )


def _step_ns(records: np.ndarray, column: np.ndarray) -> float:
    """How long a step takes: the median time from one step's first collective to the next step's."""
    first = np.full(column.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, column, records["t_enter_ns"] + records["clock_offset_ns"])
    return float(np.median(np.diff(first))) if len(first) > 1 else 0.0


def _stragglers(late: np.ndarray, enough: float) -> np.ndarray:
    """Indices of rows that stand out; `late` has shape `(replicas, steps)`, ns."""
    average = late.mean(axis=1)
    above = (late > _RATIO * late.mean(axis=0)).mean(axis=1)
    rows = (average > _RATIO * average.mean()) & (average > enough) & (above >= 0.5)
    return np.flatnonzero(rows)


def _slow_steps(late: np.ndarray, enough: float) -> np.ndarray:
    """Indices of columns in which all rows are late; `late` has shape `(replicas, steps)`, ns."""
    if len(late) < 3:
        return np.zeros(0, np.int64)
    average = late.mean(axis=0)
    alike = late.max(axis=0) <= _RATIO * average
    return np.flatnonzero((average > _RATIO * average.mean()) & (average > average.mean() + enough) & alike)
