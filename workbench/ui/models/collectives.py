"""The models of collectives: their timing, and the run at a glance."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.telemetry.added import ADDED
from workbench.telemetry.feed.sweeps import Sweep
from workbench.telemetry.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Verdict:
    """The most important statement about a run; see `telemetry.verdicts`.

    Attributes:
      severity: "error", "warning", "good" or "watching".
      code: A short word for the finding.
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
    """A run at a glance: the strategy whose replicas last took part in a collective.

    Attributes:
      run_id, group: The group in the snapshot; "" if there was no collective yet.
      replicas: Number of replicas.
      live: How many of them are not lost.
      hosts: Number of their hosts; 0 until each replica has recorded something.
      step: The newest step, -1 before the first.
      more_groups: Other strategies of the run.
      verdict: The most important statement.
      steps_per_second: Rate over the newest steps, without pauses between cells; None if unknown.
      waited_percent: How much of a step replicas wait for the last one, over the newest steps, or None.
      not_finite_steps: Number of steps with inputs that are not finite.
      others: A few more statements, the most important first.
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
