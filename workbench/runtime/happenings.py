"""What the driver sees happen beside the collectives, as events for the log: output of replicas, lost replicas."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from workbench.telemetry.events import Event

if TYPE_CHECKING:
    from workbench.runtime.group import Group
    from workbench.runtime.worker_link import WorkerLink


def printed(worker: WorkerLink, rank: int, stream: str, line: str) -> Event:
    """A line that a replica printed on "stdout" or "stderr"."""
    severity = "warning" if stream == "stderr" else "info"
    return Event("log", stream, line, time.monotonic_ns(), severity=severity, replica=rank, host=worker.host)


def replicas_lost(worker: WorkerLink, groups: Iterable[Group]) -> Iterator[Event]:
    """One alert for each replica on a worker that is gone, or one for the worker if it has none."""
    now = time.monotonic_ns()
    message = f"worker {worker.name} (pid {worker.pid}) {worker.lost}"
    alone = True
    for group in groups:
        for rank in group.ranks_of(worker.name):
            alone = False
            yield Event(
                "alert",
                "replica_lost",
                f"{group.label}: {message}",
                now,
                severity="error",
                replica=rank,
                host=worker.host,
                step=group.number - 1,
                generation=group.generation,
            )
    if alone:
        yield Event("alert", "worker_lost", message, now, severity="error", host=worker.host)
