"""Handing batches from the process that has them for a host to the host's other processes.

Peers are told by a collective in which descriptors the batches are, open them under /proc, copy their part and close
them. Where there is no memory that can be shared like this, the leaves travel with the collective.
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
    """A chunk on its way to the host's other processes.

    Attributes:
      leader: Replica whose process has it.
      process: Id of that process.
      places: Per step, descriptor, start of the index and size of its `SharedStep`.
      copies: Per step, the leaves by position, where memory cannot be shared.
    """

    leader: int
    process: int
    places: tuple[tuple[int, int, int], ...]
    copies: tuple[dict[int, list[Any]], ...]


def pack(leader: int, steps: Sequence[ReadStep], positions: Iterable[int]) -> tuple[Parcel, list[SharedStep]]:
    """What peers are told, and what has to be kept until they have taken their parts.

    Args:
      leader: The replica that tells them.
      steps: The steps.
      positions: Those of the replicas in other processes.
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
    """The leaves of each step for one position of the host; arrays of this process's own."""
    if parcel.copies:
        return [copies[position] for copies in parcel.copies]
    found = []
    for descriptor, index, nbytes in parcel.places:
        here = os.open(f"/proc/{parcel.process}/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
        found.append(SharedStep(here, index, nbytes).leaves(position))
    return found


def exchange(communicator: Communicator, parcel: Parcel | None) -> list[Parcel]:
    """Tells every replica the parcels of all that have one, in rank order."""
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
