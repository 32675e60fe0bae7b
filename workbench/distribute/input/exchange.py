"""Passes batches from the process that reads for a host to the host's other processes.

A collective informs peers of the batches' descriptors; they open these through /proc, copy their part and close them.
If memory cannot be shared in this way, the leaves travel with the collective.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.distribute.input.read_step import SHARED, ReadStep, SharedStep, share

if TYPE_CHECKING:
    from workbench.communicators.communicator import Communicator


@dataclass(frozen=True, slots=True)
class Parcel:
    """A chunk for the host's other processes.

    Attributes:
      leader: The replica in the process that has it.
      process: Id of that process.
      places: For each step, descriptor, start of the index and size of its `SharedStep`.
      copies: For each step, the leaves by position, if memory cannot be shared.
    """

    leader: int
    process: int
    places: tuple[tuple[int, int, int], ...]
    copies: tuple[dict[int, list[Any]], ...]


def pack(leader: int, steps: Sequence[ReadStep], positions: Iterable[int]) -> tuple[Parcel, list[SharedStep]]:
    """Returns the parcel for the peers, and the memory to keep until they have copied their parts.

    Args:
      leader: The replica that sends it.
      steps: The steps.
      positions: Positions of the replicas in other processes.
    """
    if not SHARED:
        copies = tuple({other: step.leaves(other) for other in positions} for step in steps)
        return Parcel(leader, os.getpid(), (), copies), []
    shared = [
        step if isinstance(step, SharedStep) else share({other: step.leaves(other) for other in positions})
        for step in steps
    ]
    places = tuple((step.descriptor, step.index, step.nbytes) for step in shared)
    return Parcel(leader, os.getpid(), places, ()), shared


def unpack(parcel: Parcel, position: int) -> list[list[Any]]:
    """The leaves of each step for one position of the host, copied to this process's memory."""
    if parcel.copies:
        return [copies[position] for copies in parcel.copies]
    found = []
    for descriptor, index, nbytes in parcel.places:
        here = os.open(f"/proc/{parcel.process}/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
        found.append(SharedStep(here, index, nbytes).leaves(position))
    return found


def exchange(communicator: Communicator, parcel: Parcel | None) -> list[Parcel]:
    """Sends all parcels to every replica, in rank order."""
    blob = b"" if parcel is None else pickle.dumps(parcel, protocol=5)
    with communicator.internal("input"):
        sizes = communicator.all_gather(np.array([len(blob)], np.int64), 0, site="input")
        together = communicator.all_gather(np.frombuffer(blob, np.uint8), 0, site="input").tobytes()
    return _split(together, [int(size) for size in sizes])


def _split(together: bytes, sizes: Sequence[int]) -> list[Parcel]:
    parcels: list[Parcel] = []
    start = 0
    for size in sizes:
        if size:
            parcels.append(pickle.loads(together[start : start + size]))
        start += size
    return parcels
