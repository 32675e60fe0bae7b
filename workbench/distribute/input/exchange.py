"""Handing batches from the process that reads for a host to the host's other processes, through shared memory.

The reading process puts the arrays of a chunk into a memfd. Peers, told its number by a collective, open it under
/proc, map it privately and close it: nothing has a name, and nothing stays behind when a process is killed. Where there
is no memfd, the bytes travel with the collective.
"""

from __future__ import annotations

import mmap
import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from workbench.communicators.communicator import Communicator

_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where an array is.

    Attributes:
      offset: First byte in the shared memory.
      shape: Its shape.
      dtype: Its dtype.
    """

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Parcel:
    """A chunk on its way to the host's other processes.

    Attributes:
      leader: Replica whose process read it.
      leaves: Per position on the host, per step, the leaves: slots, or values that are no plain arrays.
      process: Id of the process that holds the shared memory.
      descriptor: Its file descriptor there, -1 if there is none.
      size: Bytes of shared memory.
    """

    leader: int
    leaves: dict[int, list[list[Any]]]
    process: int
    descriptor: int
    size: int


def pack(leader: int, steps: dict[int, list[list[Any]]]) -> Parcel:
    """Puts arrays into shared memory; the caller closes `descriptor` once the peers have mapped it.

    Args:
      leader: The replica that packs.
      steps: Per position on the host, per step, the leaves of one element.
    """
    size = 0
    arrays: list[tuple[_Slot, np.ndarray[Any, Any]]] = []
    slots: dict[int, list[list[Any]]] = {}
    shared = hasattr(os, "memfd_create")
    for position, elements in steps.items():
        slots[position] = []
        for element in elements:
            row: list[Any] = []
            for leaf in element:
                if shared and type(leaf) is np.ndarray and not leaf.dtype.hasobject and leaf.nbytes:
                    slot = _Slot(size, leaf.shape, leaf.dtype)
                    arrays.append((slot, leaf))
                    size += -(-leaf.nbytes // _ALIGNMENT) * _ALIGNMENT
                    row.append(slot)
                else:
                    row.append(leaf)
            slots[position].append(row)
    if not size:
        return Parcel(leader, slots, os.getpid(), -1, 0)
    descriptor = os.memfd_create("workbench-input", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, size)
    with mmap.mmap(descriptor, size) as memory:
        for slot, array in arrays:
            target = np.ndarray(slot.shape, slot.dtype, buffer=memory, offset=slot.offset)
            np.copyto(target, array)
            del target  # a view would keep the mapping from being closed
    return Parcel(leader, slots, os.getpid(), descriptor, size)


def unpack(parcel: Parcel, position: int) -> list[list[Any]]:
    """The leaves of each step for one position of the host; arrays that this process may write to."""
    memory: mmap.mmap | None = None
    if parcel.size:
        descriptor = os.open(f"/proc/{parcel.process}/fd/{parcel.descriptor}", os.O_RDONLY)
        try:
            memory = mmap.mmap(descriptor, parcel.size, access=mmap.ACCESS_COPY)
        finally:
            os.close(descriptor)  # the mapping lives on, for as long as an array needs it
    return [[_found(leaf, memory) for leaf in element] for element in parcel.leaves[position]]


def _found(leaf: Any, memory: mmap.mmap | None) -> Any:
    if type(leaf) is not _Slot:
        return leaf
    return np.ndarray(leaf.shape, leaf.dtype, buffer=memory, offset=leaf.offset)


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
