"""LaneChoice: which replicas of a group get a lane, and a row of the heat map, if there are too many for all."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

MAX_LANES: Final = 32
_KEEPS: Final = 2.0
"""A replica must be this many times as late as another to take its lane; otherwise, rows would jump with every
collective.
"""

GroupKey = tuple[int, int, int]
"""Numbers of run_id and group, and the generation."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The replicas that get a lane.

    Attributes:
      replicas: The replicas, sorted.
      hidden: How many replicas get no lane.
      since: Version of the feed since which they are the same; data by lane changed with it.
    """

    replicas: np.ndarray
    hidden: int
    since: int


class LaneChoice:
    """Chooses all replicas of a group, or the latest if there are too many; replicas tend to keep their lanes."""

    def __init__(self) -> None:
        self._chosen: dict[GroupKey, Chosen] = {}

    def keep(self, keys: Collection[GroupKey]) -> None:
        """Forgets all groups but these."""
        self._chosen = {key: chosen for key, chosen in self._chosen.items() if key in keys}

    def of(self, key: GroupKey, *, known: Collection[int], records: np.ndarray, version: int) -> Chosen:
        """The choice for a group now.

        Args:
          key: Which group.
          known: Its replicas.
          records: Joined rows of `history.RECORD` of this group.
          version: The version of the feed.
        """
        before = self._chosen.get(key)
        replicas = np.array(sorted(known), np.int64)
        hidden = max(0, len(replicas) - MAX_LANES)
        if hidden:
            replicas = _latest(replicas, records, before)
        if before is None or not np.array_equal(before.replicas, replicas) or before.hidden != hidden:
            self._chosen[key] = Chosen(replicas, hidden, version)
        return self._chosen[key]


def _latest(replicas: np.ndarray, records: np.ndarray, before: Chosen | None) -> np.ndarray:
    late = np.bincount(
        np.searchsorted(replicas, records["replica"]), weights=records["late_ns"], minlength=len(replicas)
    )
    if before is not None:
        late = np.where(np.isin(replicas, before.replicas), _KEEPS * late, late)
    return np.sort(replicas[np.argsort(-late, kind="stable")[:MAX_LANES]])
