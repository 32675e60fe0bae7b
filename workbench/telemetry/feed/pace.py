"""A group's pace: how long its steps take, and the shares of computing, waiting and sending."""

from __future__ import annotations

import numpy as np

from workbench.telemetry.feed.step_window import StepWindow
from workbench.telemetry.snapshot import Pace


def pace(window: StepWindow | None, *, finite: int) -> Pace:
    """The pace over the newest steps.

    Waited is the time from a replica's own arrival at a collective to the last one's, averaged over the replicas that
    were not last. Sent is the time from the last one's arrival to a replica's result. Both are shares of a step, which
    lasts from its first collective to the next step's, without pauses between two cells.

    Args:
      window: The newest steps of one group; None without records.
      finite: Number of the text "finite".
    """
    if window is None:
        return Pace()
    records = window.records
    others = max(1, len(window.replicas) - 1)
    end = records["t_end_ns"] + records["clock_offset_ns"]
    ready = records["ready_ns"]
    waited = waited_ns(window).sum(axis=0) / others
    sent = window.by_step(np.maximum(end - ready, 0)) / len(window.replicas)
    return Pace(
        steps=len(window.steps),
        last_step=int(window.steps[-1]),
        end_ns=int(end.max()),
        step_us=window.step_ns / 1000,
        steps_per_second=_rate(window),
        waited_share=_share(waited, window.length_ns),
        sent_share=_share(sent, window.length_ns),
        compute_share=float(computing_ns(window).mean() / mean_ns) if (mean_ns := _mean(window)) else None,
        read_share=float((records["inputs"] == finite).mean()),
    )


def waited_ns(window: StepWindow) -> np.ndarray:
    """How long each replica waited in each step for the last one to arrive; shape `(replicas, steps)`."""
    records = window.records
    enter = records["t_enter_ns"] + records["clock_offset_ns"]
    return window.by_cell(np.maximum(records["ready_ns"] - enter, 0))


def waited_shares(window: StepWindow) -> tuple[float | None, ...]:
    """The share of its steps that each replica waited, which `pace` averages; None if unknown."""
    return tuple(_share(waited, window.length_ns) for waited in waited_ns(window))


def computing_ns(window: StepWindow) -> np.ndarray:
    """How long each replica computes per step on average, that is, outside collectives; shape `(replicas,)`."""
    records, steps = window.records, len(window.length_ns)
    if not steps:
        return np.zeros(len(window.replicas))
    spent = window.by_cell(np.maximum(records["t_end_ns"] - records["t_enter_ns"], 0))[:, :-1]
    computing: np.ndarray = np.maximum(window.length_ns - spent, 0).mean(axis=1)
    return computing


def _mean(window: StepWindow) -> float:
    return float(window.length_ns.mean()) if len(window.length_ns) else 0.0


def _rate(window: StepWindow) -> float | None:
    """The rate over steps with a successor; where steps are missing, their times are unknown."""
    lengths = window.length_ns[np.diff(window.steps) == 1]
    whole = float(lengths.sum())
    return len(lengths) * 1e9 / whole if whole else None


def _share(part_ns: np.ndarray, length_ns: np.ndarray) -> float | None:
    whole = float(length_ns.sum())
    return float(np.minimum(part_ns[:-1], length_ns).sum()) / whole if whole else None
