"""The telemetry rings of a worker: one per replica of each group, and one for what holds of all its replicas."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterator, Sequence

from workbench.runtime.comm.messages import JoinGroup
from workbench.telemetry.recording.flight_memory import FlightMemory, Identity
from workbench.telemetry.recording.ring import Replica, Ring

ALL = -1  # in place of a rank: all replicas of a host


class Rings:
    """Made by the host's threads, drained by the telemetry thread.

    Args:
      outlive: Whether records not drained yet shall outlive this process, for the driver to read.

    Attributes:
      drain: Id of what drains them.
    """

    def __init__(self, *, outlive: bool) -> None:
        self.drain = ""
        self._outlive = outlive and hasattr(os, "memfd_create")
        self._rings: dict[tuple[int, int], Ring] = {}
        self._retired: deque[Ring] = deque()

    def of_replicas(self, join: JoinGroup) -> dict[int, Ring]:
        """Rank -> ring of each replica here; none if nothing is recorded."""
        return {rank: self._ring(join, rank, [rank]) for rank in join.local if _is_recorded()}

    def shared(self, join: JoinGroup) -> Ring | None:
        """The ring for records that hold of all replicas here, None if nothing is recorded."""
        return self._ring(join, ALL, sorted(join.local)) if _is_recorded() else None

    def retire(self, join: JoinGroup) -> None:
        """The group has ended: its rings are drained once more, and then forgotten."""
        for rank in (*join.local, ALL):
            ring = self._rings.pop((join.group, rank), None)
            if ring is not None:
                self._retired.append(ring)

    def open(self) -> Iterator[tuple[int, int, Ring]]:
        """Group id, rank (or `ALL`) and ring, of groups that have not ended."""
        # Copies the dict, which is atomic. Listing its items would allocate objects, which may trigger a garbage
        # collection, and with it the end of a group, which changes the dict.
        for (group_id, rank), ring in self._rings.copy().items():
            yield group_id, rank, ring

    def retired(self) -> Iterator[Ring]:
        """Rings of groups that have ended, each given once."""
        while self._retired:
            yield self._retired.popleft()

    def _ring(self, join: JoinGroup, key: int, ranks: Sequence[int]) -> Ring:
        ring = self._rings.get((join.group, key))
        # The size differs if other replicas take part now, under other ranks.
        if ring is not None and ring.size != len(join.devices):
            self._retired.append(ring)
            ring = None
        if ring is None:
            first, *others = [Replica(rank, join.devices[rank].short) for rank in ranks]
            host, size = join.devices[ranks[0]].host, len(join.devices)
            memory = None
            if key != ALL and self._outlive:
                who = Identity(self.drain, join.run_id, first.id, host, first.device, size)
                # Without it, the last records of a killed process are lost.
                with contextlib.suppress(OSError):
                    memory = FlightMemory(f"{join.group}-{key}", who)
            ring = self._rings[join.group, key] = Ring(
                4096,
                replica=first.id,
                host=host,
                device=first.device,
                run_id=join.run_id,
                size=size,
                others=others,
                memory=memory,
            )
        return ring


def _is_recorded() -> bool:
    return os.environ.get("WB_TELEMETRY") != "off"  # the environment of the worker, which writes the records
