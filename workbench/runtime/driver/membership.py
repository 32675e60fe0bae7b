"""Decides which replicas of a group take part: all, or the remaining ones while workers are missing.

A *seat* is a replica's number among all. Ranks number the ones that take part, without gaps: if seats 0 and 2 remain,
seat 2 has rank 1. A replica's state belongs to its device and stays with it.
"""

from __future__ import annotations

import time

from workbench.errors import ReplicaLost
from workbench.runtime.driver.replicas import Replicas
from workbench.telemetry.events import Event
from workbench.telemetry.formatting import MOST_NAMED, replicas_text

# How long a returned worker must have answered before it takes part again.
SETTLED_SECONDS = 2.0


def seat(group: Replicas) -> None:
    """Finds successors for lost workers, or continues without them if `minimum_replicas` permits it.

    Raises:
      ReplicaLost: if a worker has no successor, and too few replicas are left.
    """
    absent: dict[str, ReplicaLost] = {}
    for name in dict.fromkeys(name for name, _ in group.seats):
        if group.gang.workers[name].lost:
            try:
                _replace(group, name)
            except ReplicaLost as error:
                absent[name] = error
    left = [number for number, (name, _) in enumerate(group.seats) if name not in absent]
    if absent and not _suffice(group, len(left)):
        first = next(iter(absent.values()))
        if group.gang.minimum_replicas and len(left) < group.gang.minimum_replicas:
            first.add_note(
                f"{len(left)} replicas are left, and minimum_replicas is {group.gang.minimum_replicas}"
            )
        raise first
    if tuple(left) != group.taken:
        group.take(left)
        group.absent = {name: str(error) for name, error in absent.items()}
        group.gang.notify(_resized(group))


def _suffice(group: Replicas, left: int) -> bool:
    # JAX connects its processes once, and compiles for all of them.
    traced = group.devices[0].kind == "TPU"
    return 0 < group.gang.minimum_replicas <= left and not traced


def _replace(group: Replicas, name: str) -> None:
    """Replaces the lost worker of a seat.

    Raises:
      ReplicaLost: if there is no successor; it names the replicas that cannot run.
    """
    try:
        group.gang.replace(name)
    except ReplicaLost as error:
        missing = [number for number, (worker, _) in enumerate(group.seats) if worker == name]
        others = len(group.seats) - len(missing)
        instead = ""
        if others and not group.gang.minimum_replicas:
            instead = (
                f". To continue with the {others} others until then, connect with minimum_replicas={others}"
            )
        raise ReplicaLost(
            f"{replicas_text(missing, MOST_NAMED)} of {group.label} cannot run: {error}. "
            f"{group.committed_text}{instead}",
            run=group.gang.run_id,
            generation=group.generation,
            replica=missing[0],
            worker=error.worker,
            pid=error.pid,
            cause=error.cause,
        ) from error


def missing_seats(group: Replicas) -> list[int]:
    """The seats that do not take part."""
    return [number for number in range(len(group.seats)) if number not in group.taken]


def look_for_returned(group: Replicas) -> None:
    """Notes whether all missing workers have been back for a while. For the watching thread."""
    if group.absent and not group.may_grow:
        gang = group.gang
        group.may_grow = all(gang.is_back(name, SETTLED_SECONDS) for name in group.absent)


def _resized(group: Replicas) -> Event:
    message = size_text(group.label, group.size, missing_seats(group))
    if group.absent:
        message += f" until their workers are back: {'; '.join(group.absent.values())}"
    return Event(
        "alert" if group.absent else "lifecycle",
        "strategy_resized",
        message,
        time.monotonic_ns(),
        severity="warning" if group.absent else "info",
        step=group.number - 1,
        generation=group.generation,
    )


def size_text(label: str, size: int, missing: list[int]) -> str:
    """A sentence about how many replicas of a group take part."""
    if not missing:
        return f"{label} has all its {size} replicas again"
    without = replicas_text(missing, MOST_NAMED)
    return f"{label} continues with {size} of {size + len(missing)} replicas, without {without},"
