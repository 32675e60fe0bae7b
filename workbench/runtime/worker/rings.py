"""The telemetry rings of a worker: one per replica of each group, and one for records about all its replicas."""

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
    """The host's threads create the rings, and the telemetry thread drains them.

    Args:
      outlive: Whether undrained records outlive this process, for the driver to read.

    Attributes:
      drain: Id of the drain that empties them.
    """

    def __init__(self, *, outlive: bool) -> None:
        self.drain = ""
        self._outlive = outlive and hasattr(os, "memfd_create")
        self._rings: dict[tuple[int, int], Ring] = {}
        self._retired: deque[Ring] = deque()

    def of_replicas(self, join: JoinGroup) -> dict[int, Ring]:
        """Rank -> ring, for each replica here; empty if nothing is recorded."""
        return {rank: self._ring(join, rank, [rank]) for rank in join.local if _is_recorded()}

    def shared(self, join: JoinGroup) -> Ring | None:
        """The ring for records about all replicas here, None if nothing is recorded."""
        return self._ring(join, ALL, sorted(join.local)) if _is_recorded() else None

    def retire(self, join: JoinGroup) -> None:
        """Retires an ended group's rings: they are drained once more, then dropped."""
        for rank in (*join.local, ALL):
            ring = self._rings.pop((join.group, rank), None)
            if ring is not None:
                self._retired.append(ring)

    def open(self) -> Iterator[tuple[int, int, Ring]]:
        """Group id, rank (or `ALL`) and ring, for groups that have not ended."""
        # Copying the dict is atomic. Listing its items would allocate objects, which may trigger a garbage collection,
        # and with it the end of a group, which changes the dict.
        for (group_id, rank), ring in self._rings.copy().items():
            yield group_id, rank, ring

    def retired(self) -> Iterator[Ring]:
        """Rings of groups that have ended, each yielded once."""
        while self._retired:
            yield self._retired.popleft()

    def _ring(self, join: JoinGroup, key: int, ranks: Sequence[int]) -> Ring:
        ring = self._rings.get((join.group, key))
        # The size differs if the set of replicas, and thus ranks, has changed.
        if ring is not None and ring.size != len(join.devices):
            self._retired.append(ring)
            ring = None
        if ring is None:
            first, *others = [Replica(rank, join.devices[rank].short) for rank in ranks]
            host, size = join.devices[ranks[0]].host, len(join.devices)
            memory = None
            if key != ALL and self._outlive:
                who = Identity(self.drain, join.run_id, first.id, host, first.device, size)
                # Without this file, the last records of a killed process are lost.
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
    return os.environ.get("WB_TELEMETRY") != "off"  # of the worker, which writes the records
