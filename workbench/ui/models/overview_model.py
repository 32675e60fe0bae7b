"""The run at a glance: the most important statement, and the figures beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from workbench.telemetry import verdicts
from workbench.telemetry.snapshot import GroupView, Snapshot
from workbench.telemetry.verdicts.failures import recovered_ns
from workbench.ui.models.collectives import Overview, Verdict

_MOST_OTHERS: Final = 4
_VIEWS: Final = {"lateness": "heat_map", "dataset": "dataset_sharding"}
"""The views of verdicts' links, if they have other names."""


def overview_model(snapshot: Snapshot, *, status: str) -> Overview:
    """The overview of the group that was active last.

    Args:
      snapshot: The snapshot of a feed or a recorded run.
      status: The status of the run, in one word.
    """
    first, *others = map(_shown, verdicts.verdicts(snapshot))
    if not snapshot.groups:
        if first.code == "watching":
            first = Verdict("watching", "watching", "No replicas have met yet", "", "", -1, -1)
        return Overview("", "", 0, 0, 0, -1, 0, first, None, None, 0, tuple(others[:_MOST_OTHERS]))
    group = snapshot.groups[0]
    lost = lost_replicas(snapshot, group)
    waited = group.pace.waited_share
    return Overview(
        run_id=group.run_id,
        group=group.group,
        replicas=group.n,
        live=0 if status == "stopped" else group.n - len(lost),
        hosts=group.hosts,
        step=group.steps[-1].step if group.steps else -1,
        more_groups=len(snapshot.groups) - 1,
        verdict=first,
        steps_per_second=group.pace.steps_per_second,
        waited_percent=None if waited is None else round(100 * waited, 2),
        not_finite_steps=_not_finite_steps(group, (first, *others)),
        others=tuple(others[:_MOST_OTHERS]),
        lost=tuple(sorted(lost)),
    )


def lost_replicas(snapshot: Snapshot, group: GroupView) -> frozenset[int]:
    """Replicas of the group's newest generation that were lost and have not taken part in a step since."""
    since = recovered_ns(group.group, snapshot.events)
    return frozenset(
        event.replica
        for event in snapshot.events
        if event.name == "replica_lost" and event.is_of(group.group, group.generation) and event.t_ns > since
    )


def _not_finite_steps(group: GroupView, said: Sequence[Verdict]) -> int:
    """The known steps with NaN or infinity. An onset may be older than the kept steps; an inspection knows one step."""
    onset = group.not_finite
    since = 0 if onset is None else onset.last_step - onset.step + 1
    inspected = int(any(verdict.code == "nan" for verdict in said))
    return max(since, inspected, sum(step.not_finite for step in group.steps))


def _shown(verdict: verdicts.Verdict) -> Verdict:
    return Verdict(
        severity=verdict.severity,
        code=verdict.code,
        sentence=verdict.sentence,
        evidence=verdict.evidence,
        link=_VIEWS.get(verdict.link, verdict.link),
        replica=-1 if verdict.replica is None else verdict.replica,
        step=-1 if verdict.step is None else verdict.step,
    )
