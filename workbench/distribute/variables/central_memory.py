"""The memory of one process with the variables of a CentralStorageStrategy, which others on the host map."""

from __future__ import annotations

import os
import secrets
import weakref
from collections.abc import Sequence

import numpy as np

from workbench.backends.library import Library, owned
from workbench.communicators.core.shared_memory import SharedFile
from workbench.communicators.shm.arena import Arena, PeerMemory
from workbench.distribute.arrays.as_array import Array
from workbench.errors import FailedPreconditionError

Place = np.ndarray
"""The place of a value: process, file descriptor there, the memory's number, offset. int64, shape (4,)."""


class CentralValue:
    """The value of a variable, in central memory. Immutable: an update writes a new one.

    The holder's reference prevents reuse of its bytes. It is dropped once no replica can need them any more: after the
    step that replaced the value was committed.

    Attributes:
      place: Its place.
      array: The value in place, read-only.
      library: The array library of the reading replica.
    """

    __slots__ = ("array", "library", "place")

    def __init__(self, place: Place, array: Array, library: Library) -> None:
        self.place = place
        self.array = array
        self.library = library

    def read(self) -> Array:
        """A copy for the reading replica, as an array of its library, on its device."""
        copy: Array = owned(self.library, self.array)
        return copy


class CentralMemory:
    """The memory in the holder's process. Only the holder's thread uses it."""

    def __init__(self) -> None:
        file = SharedFile(1)  # so that no value has offset 0, which means "elsewhere"
        self._arena = Arena(file)
        self._name = (os.getpid(), file.fd, secrets.randbits(62))
        weakref.finalize(self, file.close)

    def put(self, array: Array) -> tuple[Place, Array]:
        """Copies `array` to the memory; returns its place, and the array there, which must be kept while in use."""
        block = self._arena.take(array.nbytes)
        there = block.view(array.dtype).reshape(array.shape)
        there[...] = array
        there.flags.writeable = False
        return np.array([*self._name, self._arena.offset(block)], np.int64), there


class MappedMemory:
    """The memory of the holder, in the process of another replica.

    Raises:
      FailedPreconditionError: if the holder's memory cannot be reached.
    """

    def __init__(self, place: Place) -> None:
        self.name = tuple(place[:3].tolist())
        pid, fd, _ = self.name
        try:
            own = (
                os.dup(fd)
                if pid == os.getpid()
                else os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)
            )
        except OSError as error:
            raise FailedPreconditionError(
                f"the variables of a CentralStorageStrategy are in the memory of process {pid}, which process "
                f"{os.getpid()} cannot map: {error.strerror}. Its workers must run on one Linux machine, as one user "
                f"and in one container; wb.MirroredStrategy has no such condition"
            ) from error
        self._peer = PeerMemory(own)
        weakref.finalize(self, os.close, own)

    def at(self, place: Place, shape: Sequence[int], dtype: np.dtype) -> Array:
        """The array at `place`, read-only. It stays readable after the end of the holder's process."""
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        array = self._peer.block(int(place[3]), nbytes).view(dtype).reshape(tuple(shape))
        array.flags.writeable = False
        return array
