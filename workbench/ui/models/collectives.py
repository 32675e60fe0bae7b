"""The models of collectives: their timing, and the run at a glance."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.telemetry.added import ADDED
from workbench.telemetry.feed.sweeps import Sweep
from workbench.telemetry.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said of a run first; see `telemetry.verdicts`.

    Attributes:
      severity: "error", "warning", "good" or "watching".
      code: What was found, in a short word.
      sentence: At most 80 characters.
      evidence: One line with numbers.
      link: The view that explains it, or "".
      replica: Replica concerned, or -1.
      step: Step concerned, or -1.
    """

    severity: str
    code: str
    sentence: str
    evidence: str
    link: str
    replica: int
    step: int


@dataclass(frozen=True, slots=True)
class Overview:
    """A run at a glance: the strategy whose replicas met last.

    Attributes:
      run_id, group: Which group of the snapshot; "" where no replicas have met yet.
      replicas: How many there are.
      live: How many of them are not lost.
      hosts: On how many hosts they are; 0 before each of them has recorded something.
      step: The newest step, -1 before the first.
      more_groups: Other strategies of the run.
      verdict: What is to be said first.
      steps_per_second: Over the newest steps, without pauses between cells; None where it cannot be told.
      waited_percent: How much of a step replicas wait for the last one, over the newest steps, or None.
      not_finite_steps: Into how many steps something went that is not finite.
      others: What is to be said after the verdict, the most important first; a few.
      lost: Which replicas are lost.
    """

    run_id: str
    group: str
    replicas: int
    live: int
    hosts: int
    step: int
    more_groups: int
    verdict: Verdict
    steps_per_second: float | None
    waited_percent: float | None
    not_finite_steps: int
    others: tuple[Verdict, ...] = field(default=(), metadata=ADDED)
    lost: tuple[int, ...] = field(default=(), metadata=ADDED)


@dataclass(frozen=True, slots=True)
class Collectives:
    """Timing of collectives, and everything else that the feed knows.

    Attributes:
      status: "live", "stopped", or "replay" for a recorded run.
      silent: Addresses of workers that did not answer.
      snapshot: The feed.
      sweeps: Bandwidth over size.
      overview: The run at a glance.
    """

    status: str
    silent: tuple[str, ...]
    snapshot: Snapshot
    sweeps: tuple[Sweep, ...]
    overview: Overview
