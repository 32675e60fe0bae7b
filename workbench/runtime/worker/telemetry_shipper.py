"""Sends the worker's telemetry: drains its replicas' rings, corrects for its clock, reports long waits."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

from workbench.runtime.replica.local_group import LocalGroup
from workbench.runtime.worker.host import ReplicaHost
from workbench.telemetry.recording.drain import Drain
from workbench.telemetry.recording.ring import Ring
from workbench.telemetry.records import InFlight, Signature

# Records published this recently may still be on their way through the scheduler when the driver asks.
ON_ITS_WAY_SECONDS = 3.0
# Views show a replica that has been waiting this long in one collective while it still waits.
LONG_WAIT_SECONDS = 0.5


class TelemetryShipper:
    """Drains the rings of one `ReplicaHost`. Only its telemetry thread uses it; any thread may call `set_clock`.

    `publish` sends a batch.
    """

    def __init__(self, host: ReplicaHost, publish: Callable[[bytes], None]) -> None:
        self._host = host
        self._drain = Drain()
        host.rings.drain = self._drain.id
        self._publish = publish
        self._published: deque[tuple[float, bytes]] = deque()
        self._waits: dict[tuple[int, int], tuple[int, int, int]] = {}
        self._offset_ns = 0
        self._error_ns = 0

    def set_clock(self, offset_ns: int, error_ns: int) -> None:
        """Sets the offset from this host's times to the driver's, and its error bound."""
        self._offset_ns, self._error_ns = offset_ns, error_ns

    def ship(self) -> None:
        """Publishes the records since the last call."""
        now = time.monotonic()
        batch = self._drain.take(self._rings())
        if batch:
            self._published.append((now, batch))
            self._publish(batch)
        while self._published and self._published[0][0] < now - ON_ITS_WAY_SECONDS:
            self._published.popleft()

    def flush(self) -> list[bytes]:
        """Returns everything that the driver may not have; it recognises duplicates."""
        batches = [batch for _, batch in self._published]
        if last := self._drain.take(self._rings()):
            batches.append(last)
        return batches

    def _rings(self) -> Iterator[tuple[Ring, InFlight | None]]:
        """The rings, each with the collective in which its replica has been waiting for long."""
        for group_id, rank, ring in self._host.rings.open():
            ring.clock_offset_ns, ring.clock_err_ns = self._offset_ns, self._error_ns
            if ring.memory is not None:
                ring.memory.set_clock(self._offset_ns, self._error_ns)
            group = self._host.groups.get(group_id)
            yield ring, None if group is None else self._long_wait(group, rank)
        for ring in self._host.rings.retired():
            yield ring, None

    def _long_wait(self, group: LocalGroup, rank: int) -> InFlight | None:
        """The collective in which a replica has been waiting for long. Must be read before draining."""
        env = group.envs.get(rank)
        if env is None:
            return None
        step, seq, op, phase, site = env.communicator.status()
        key = (group.join.group, rank)
        if phase != "waiting":
            self._waits.pop(key, None)
            return None
        now = time.monotonic_ns()
        since = self._waits.get(key)
        if since is None or since[:2] != (step, seq):
            self._waits[key] = (step, seq, now)
            return None
        if now - since[2] < LONG_WAIT_SECONDS * 1e9:
            return None
        signature = Signature(
            generation=group.join.generation,
            group=group.join.name,
            op=op,
            redop="",
            dtype="",
            algorithm="",
            packs=0,
            transport=env.communicator.transport,
            state="entered",
            site=site,
        )
        return InFlight(signature, step, seq, count=0, bytes=0, t_enter_ns=since[2])
