"""Which replicas are in which group, and what each of them did last."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from workbench.telemetry.feed.group_view import belongs
from workbench.telemetry.feed.history import Texts, changes
from workbench.telemetry.feed.lane_choice import GroupKey
from workbench.telemetry.snapshot import LastSeen

_MAX_GROUPS: Final = 64


@dataclass(slots=True)
class _Group:
    """The newest collective of each replica as (step, seq, op, site), with texts by number."""

    last: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)
    active_ns: int = 0


class Members:
    """The newest 64 groups and generations seen."""

    def __init__(self) -> None:
        self._groups: dict[GroupKey, _Group] = {}

    def update(self, rows: np.ndarray) -> None:
        """Takes new records into account, and fills in missing `n`.

        Args:
          rows: Rows of `history.RECORD`; changed in place.
        """
        columns = ("run_id", "group", "generation", "replica", "step", "seq")
        order = np.lexsort([rows[name] for name in reversed(columns)])
        begins = changes(rows, columns[:4], order)
        for row in rows[order[np.append(begins[1:], True)[: len(order)]]]:
            key = int(row["run_id"]), int(row["group"]), int(row["generation"])
            group = self._groups.setdefault(key, _Group())
            replica = int(row["replica"])
            position = int(row["step"]), int(row["seq"]), int(row["op"]), int(row["site"])
            group.last[replica] = max(group.last.get(replica, position), position, key=lambda p: p[:2])
            group.active_ns = max(group.active_ns, int(row["t_enter_ns"] + row["clock_offset_ns"]))
        while len(self._groups) > _MAX_GROUPS:
            del self._groups[min(self._groups, key=lambda key: self._groups[key].active_ns)]
        if len(rows) and not rows["n"].all():
            self._fill_sizes(rows)

    def _fill_sizes(self, rows: np.ndarray) -> None:
        for key, group in self._groups.items():
            rows["n"][belongs(rows, key) & (rows["n"] == 0)] = len(group.last)

    def newest(self, limit: int) -> list[GroupKey]:
        """The newest generation of each group, latest activity first, at most `limit`."""
        generations: dict[tuple[int, int], int] = {}
        for run_id, group, generation in self._groups:
            generations[run_id, group] = max(generation, generations.get((run_id, group), generation))
        keys = [(run_id, group, generation) for (run_id, group), generation in generations.items()]
        return sorted(keys, key=lambda key: (-self._groups[key].active_ns, key))[:limit]

    def newest_of(self, key: GroupKey, replica: int) -> tuple[int, int]:
        """Step and number of a replica's newest collective, (-1, -1) if it has none."""
        group = self._groups.get(key)
        return (-1, -1) if group is None else group.last.get(replica, (-1, -1, 0, 0))[:2]

    def newest_step(self, key: GroupKey) -> int:
        """The newest step in which a replica of a group reached a collective, -1 before the first."""
        return max((position[0] for position in self._groups[key].last.values()), default=-1)

    def last(self, key: GroupKey, texts: Texts) -> dict[int, LastSeen]:
        """The newest collective of each replica of a group."""
        return {
            replica: LastSeen(replica, step, seq, texts[op], texts[site])
            for replica, (step, seq, op, site) in sorted(self._groups[key].last.items())
        }
