"""Reads the memory of replicas' records after a worker on this machine has ended unexpectedly."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Final

from workbench.telemetry.recording.drain import Drain
from workbench.telemetry.recording.flight_memory import PREFIX, ROW, ROWS, Flight, FlightReader
from workbench.telemetry.recording.ring import Ring

if TYPE_CHECKING:
    from workbench.runtime.deploy.worker_link import WorkerLink

_FILE: Final = re.compile(rf"/memfd:{PREFIX}-(\d+)-(\d+) ")


class Flights:
    """Maps, in the driver, the memory of the replicas' last steps while their processes live."""

    def __init__(self) -> None:
        self._readers: dict[tuple[int, int], tuple[int, FlightReader]] = {}

    def find(self, workers: Iterable[WorkerLink], groups: Container[int]) -> None:
        """Maps the memory of all visible replicas of these workers, and unmaps that of other groups."""
        for key in [key for key in self._readers if key[0] not in groups]:
            self._readers.pop(key)[1].close()
        for worker in workers:
            if worker.local and worker.pid != os.getpid():
                for key, path in _memories(worker.pid):
                    if key[0] in groups:
                        self._map(key, worker.pid, path)

    def _map(self, key: tuple[int, int], pid: int, path: str) -> None:
        known = self._readers.get(key)
        if known is not None:
            if known[0] == pid:
                return
            known[1].close()
        try:
            self._readers[key] = pid, FlightReader(path)
        except (OSError, ValueError):  # the process has just ended
            self._readers.pop(key, None)

    def of(self, group_id: int, rank: int, pid: int) -> Flight | None:
        """The records that a process's replica left behind; None if they were not visible.

        Args:
          group_id: Number of the group.
          rank: Rank of the replica.
          pid: The process.
        """
        known = self._readers.get((group_id, rank))
        return known[1].read() if known is not None and known[0] == pid else None

    def close(self) -> None:
        """Unmaps all."""
        for _, reader in self._readers.values():
            reader.close()
        self._readers.clear()


def _memories(pid: int) -> list[tuple[tuple[int, int], str]]:
    """Group and rank of each replica of a process, and where to open its memory."""
    found = []
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            path = f"/proc/{pid}/fd/{name}"
            try:
                known = _FILE.match(os.readlink(path))
            except OSError:  # closed meanwhile
                continue
            if known is not None:
                found.append(((int(known[1]), int(known[2])), path))
    except OSError:  # on another machine, or another user's
        pass
    return found


def batch_of(flight: Flight, seen: tuple[int, int], group: str, generation: int) -> bytes:
    """The records that were lost with a replica, in the form of `Drain.take`; b"" if there are none.

    Args:
      flight: The memory that it left behind.
      seen: Step and number of its newest collective with a received record.
      group: Label of its group.
      generation: Generation of the group.
    """
    _, run_id, replica, host, device, size = flight.identity
    ring = Ring(ROWS, replica=replica, host=host, device=device, run_id=run_id, size=size)
    ring.clock_offset_ns, ring.clock_err_ns = flight.clock
    for _, code, *numbers in ROW.iter_unpack(flight.rows):
        if code >= len(flight.signatures):  # the memory had no room for it
            continue
        signature = flight.signatures[code]
        own = (signature.group, signature.generation) == (group, generation)
        if own and numbers[0] >= 0 and (numbers[0], numbers[1]) > seen:
            ring.write(ring.number(signature), *numbers)
    return Drain().take([(ring, None)])
