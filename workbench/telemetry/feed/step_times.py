"""How long each of the newest steps took, and how much of it was waiting; `pace` summarizes this."""

from __future__ import annotations

import numpy as np

from workbench.telemetry.feed.pace import waited_ns
from workbench.telemetry.feed.step_window import StepWindow
from workbench.telemetry.snapshot import StepTiming


def step_times(window: StepWindow | None, *, not_finite: int) -> tuple[StepTiming, ...]:
    """The newest steps, oldest first.

    Args:
      window: The last steps of one group; None without records.
      not_finite: Number of the text "not finite".
    """
    if window is None:
        return ()
    records, steps = window.records, window.steps
    seconds = [
        round(ns / 1e9, 9) if follows else None
        for ns, follows in zip(window.took_ns.tolist(), (np.diff(steps) == 1).tolist(), strict=True)
    ]
    # The newest step has no successor, so it counts as long as the others.
    of = np.append(window.length_ns, window.step_ns)
    others = max(1, len(window.replicas) - 1)
    waited = waited_ns(window).sum(axis=0) / others
    percent = np.round(np.minimum(100.0, 100 * waited / np.maximum(of, 1)), 2)
    bad = window.by_step(records["inputs"] == not_finite) > 0
    return tuple(
        StepTiming(step, at, took, share, is_bad)
        for step, at, took, share, is_bad in zip(
            steps.tolist(),
            window.begin_ns.tolist(),
            [*seconds, None],
            percent.tolist(),
            bad.tolist(),
            strict=True,
        )
    )
