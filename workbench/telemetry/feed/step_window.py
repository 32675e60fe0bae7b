"""The newest steps of a group as a matrix of replicas and steps: the input for lateness and pace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from workbench.telemetry.feed.history import numbered, selected
from workbench.telemetry.told import SentSteps

STEPS: Final = 64
"""How many of the newest steps are examined, and shown on the axes of views."""
LONGEST: Final = 3.0  # × the median step; anything longer is a compilation, or a pause that was not reported


@dataclass(frozen=True, slots=True)
class StepWindow:
    """Records of the newest steps.

    Attributes:
      records: Rows of `history.RECORD`.
      replicas: All replicas of the group, sorted; shape `(replicas,)`.
      steps: Numbers of the steps, ascending; shape `(steps,)`.
      row, column: Each record's indices in `replicas` and `steps`.
      late_ns: How late each replica came in each step, summed over its collectives; shape `(replicas, steps)`.
      known: Whether a replica has a record of a step; same shape.
      begin_ns: When the first replica entered the first collective of each step; shape `(steps,)`.
      noise_ns: Lateness below it is meaningless.
      step_ns: How long a step takes: the median of `took_ns`.
      took_ns: How long each step but the last took; shape `(steps - 1,)`.
      length_ns: The same, but at most three median steps: rates and shares are computed from it.
    """

    records: np.ndarray
    replicas: np.ndarray
    steps: np.ndarray
    row: np.ndarray
    column: np.ndarray
    late_ns: np.ndarray
    known: np.ndarray
    begin_ns: np.ndarray
    noise_ns: float
    step_ns: float
    took_ns: np.ndarray
    length_ns: np.ndarray

    def by_cell(self, weights: np.ndarray) -> np.ndarray:
        """A figure per record, summed by replica and step; shape `(replicas, steps)`."""
        shape = len(self.replicas), len(self.steps)
        cell = self.row * shape[1] + self.column
        return np.bincount(cell, weights=weights, minlength=shape[0] * shape[1]).reshape(shape)

    def by_step(self, weights: np.ndarray) -> np.ndarray:
        """The same, summed by step; shape `(steps,)`."""
        return np.bincount(self.column, weights=weights, minlength=len(self.steps))


def step_window(records: np.ndarray, sent: SentSteps | None = None) -> StepWindow | None:
    """The newest 64 steps of some records; None without any.

    Args:
      records: Rows of `history.RECORD` of one group and generation, joined.
      sent: When its steps were sent; None if unknown.
    """
    if not len(records):
        return None
    step = records["step"]
    records = selected(records, step > step.max() - STEPS)
    replicas, row = numbered(records["replica"])
    steps, column = numbered(records["step"])
    cell = row * len(steps) + column
    shape = len(replicas), len(steps)
    size = shape[0] * shape[1]
    several_hosts = records["host"].min() != records["host"].max()
    begin_ns = np.full(len(steps), np.iinfo(np.int64).max)
    np.minimum.at(begin_ns, column, records["t_enter_ns"] + records["clock_offset_ns"])
    took_ns = steps_took_ns(begin_ns, steps, sent)
    step_ns = float(np.median(took_ns)) if len(took_ns) else 0.0
    return StepWindow(
        records=records,
        replicas=replicas,
        steps=steps,
        row=row,
        column=column,
        late_ns=np.bincount(cell, weights=records["late_ns"], minlength=size).reshape(shape),
        known=np.bincount(cell, minlength=size).reshape(shape) > 0,
        begin_ns=begin_ns,
        noise_ns=float(2 * records["clock_err_ns"].max()) if several_hosts else 0.0,
        step_ns=step_ns,
        took_ns=took_ns,
        length_ns=np.minimum(took_ns, LONGEST * step_ns),
    )


def steps_took_ns(begin_ns: np.ndarray, steps: np.ndarray, sent: SentSteps | None) -> np.ndarray:
    """How long each step but the last took, until the next step's beginning, without pauses.

    A pause between two cells lasts from when the notebook knows that all steps have ended until it sends the next one.
    Time that a loop spends between two steps counts. All time counts if pauses are unknown, as in older recorded runs.

    Args:
      begin_ns: When the first replica entered the first collective of each step; driver's clock.
      steps: Numbers of the steps, ascending.
      sent: When they were sent; None if unknown.
    """
    passed = np.diff(begin_ns)
    if sent is not None and sent.paused_ns:
        # For a step that was sent again, the last time counts.
        paused_ns = dict(zip(sent.steps, sent.paused_ns, strict=True))
        known = sorted(paused_ns)
        passed = passed - np.diff(np.interp(steps, known, [paused_ns[step] for step in known]))
    took: np.ndarray = np.maximum(passed, 0)
    return took


def paused_before_ns(at_ns: np.ndarray, sent: SentSteps | None) -> np.ndarray:
    """How long the notebook had paused, in total, before some times between pauses, such as those of fetches.

    A pause becomes known when the next step is sent, right after the fetch that ended it.

    Args:
      at_ns: The times; driver's clock, shape `(times,)`.
      sent: When steps were sent; None if unknown.

    Returns:
      The total by time, shape `(times,)`; zeros if pauses are unknown.
    """
    if sent is None or not sent.paused_ns:
        return np.zeros(len(at_ns), np.int64)
    next_step = np.searchsorted(sent.at_ns, at_ns)
    return np.array(sent.paused_ns, np.int64)[np.minimum(next_step, len(sent.at_ns) - 1)]
