"""News about a group's replicas in their newest steps, and how busy each is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.telemetry.feed.feed import Feed


@dataclass(frozen=True, slots=True)
class ReplicaNews:
    """What a feed knows about the replicas of a group.

    Attributes:
      late: Replicas that are late step after step.
      not_finite: Replicas that first passed NaN or infinity to a collective, while such values still go into
        collectives.
      busy_shares: By replica, the share of its newest steps, 0 to 1, in which it did not wait, if known.
    """

    late: frozenset[int] = frozenset()
    not_finite: frozenset[int] = frozenset()
    busy_shares: Mapping[int, float] = field(default_factory=dict)

    def of(self, replica: int) -> str:
        """The news of a replica in a word or two, "" if there are none."""
        if replica in self.not_finite:
            return "not finite"
        return "late" if replica in self.late else ""


def replica_news(feed: Feed, run_id: str) -> dict[tuple[str, int], ReplicaNews]:
    """What a feed knows about the present groups of a run, by name and generation."""
    return {
        (view.group, view.generation): ReplicaNews(
            frozenset(view.lateness.stragglers),
            frozenset(view.not_finite_now.replicas if view.not_finite_now else ()),
            feed.busy_shares(run_id, view.group, view.generation),
        )
        for view in feed.snapshot().groups
        if view.run_id == run_id
    }
