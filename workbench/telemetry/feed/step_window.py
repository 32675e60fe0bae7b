"""The newest steps of a group as a matrix of replicas and steps: what lateness and pace are computed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from workbench.telemetry.feed.history import numbered, selected

STEPS: Final = 64
"""So many of the newest steps are looked at, and have a place on the axes of views."""
_PAUSE: Final = 3.0  # × the median step: longer is the notebook between two cells, not a step


@dataclass(frozen=True, slots=True)
class StepWindow:
    """Records of the newest steps.

    Attributes:
      records: Rows of `history.RECORD`.
      replicas: All of the group, sorted; shape `(replicas,)`.
      steps: Numbers of the steps, ascending; shape `(steps,)`.
      row, column: Of each record, its indices in `replicas` and `steps`.
      late_ns: How late each replica came in each step, summed over its collectives; shape `(replicas, steps)`.
      known: Where a replica has a record of a step; same shape.
      noise_ns: Lateness below it says nothing.
      step_ns: How long a step takes: the median time from one step's first collective to the next step's.
      length_ns: The same of each step but the last, pauses left out; shape `(steps - 1,)`.
    """

    records: np.ndarray
    replicas: np.ndarray
    steps: np.ndarray
    row: np.ndarray
    column: np.ndarray
    late_ns: np.ndarray
    known: np.ndarray
    noise_ns: float
    step_ns: float
    length_ns: np.ndarray

    def by_cell(self, weights: np.ndarray) -> np.ndarray:
        """A figure of each record, summed by replica and step; shape `(replicas, steps)`."""
        shape = len(self.replicas), len(self.steps)
        cell = self.row * shape[1] + self.column
        return np.bincount(cell, weights=weights, minlength=shape[0] * shape[1]).reshape(shape)

    def by_step(self, weights: np.ndarray) -> np.ndarray:
        """The same, summed by step; shape `(steps,)`."""
        return np.bincount(self.column, weights=weights, minlength=len(self.steps))


def step_window(records: np.ndarray) -> StepWindow | None:
    """The newest 64 steps of some records; None without any.

    Args:
      records: Rows of `history.RECORD` of one group and generation, joined.
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
    first = np.full(len(steps), np.iinfo(np.int64).max)
    np.minimum.at(first, column, records["t_enter_ns"] + records["clock_offset_ns"])
    lengths = np.diff(first)
    step_ns = float(np.median(lengths)) if len(lengths) else 0.0
    return StepWindow(
        records=records,
        replicas=replicas,
        steps=steps,
        row=row,
        column=column,
        late_ns=np.bincount(cell, weights=records["late_ns"], minlength=size).reshape(shape),
        known=np.bincount(cell, minlength=size).reshape(shape) > 0,
        noise_ns=float(2 * records["clock_err_ns"].max()) if several_hosts else 0.0,
        step_ns=step_ns,
        length_ns=np.clip(lengths, 0, _PAUSE * step_ns),
    )
