"""What stands out about the replicas of a group in their newest steps, and how busy each of them is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.telemetry.feed.feed import Feed


@dataclass(frozen=True, slots=True)
class ReplicaNews:
    """What a feed tells of the replicas of a group.

    Attributes:
      late: Those that are late step after step.
      not_finite: Those that gave NaN or infinity to a collective first, as long as such values go into collectives.
      busy_shares: By replica, the part of its newest steps, 0 to 1, that it did not wait; only where that is
        known.
    """

    late: frozenset[int] = frozenset()
    not_finite: frozenset[int] = frozenset()
    busy_shares: Mapping[int, float] = field(default_factory=dict)

    def of(self, replica: int) -> str:
        """The news of a replica in a word or two, "" if there are none."""
        if replica in self.not_finite:
            return "not finite"
        return "late" if replica in self.late else ""


def replica_news(feed: Feed, run_id: str, group: str, generation: int) -> ReplicaNews:
    """What a feed tells of a group, in one of its generations.

    Args:
      feed: The feed.
      run_id: The run.
      group: The group's name.
      generation: How often it was connected.
    """
    shown = feed.snapshot().groups
    view = next((v for v in shown if (v.run_id, v.group, v.generation) == (run_id, group, generation)), None)
    if view is None:
        return ReplicaNews()
    onset = view.not_finite_now
    return ReplicaNews(
        frozenset(view.lateness.stragglers),
        frozenset(onset.replicas if onset else ()),
        feed.busy_shares(run_id, group, generation),
    )
