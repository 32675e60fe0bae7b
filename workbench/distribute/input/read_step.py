"""ReadStep: the elements of a host's replicas in one step, in the reading process or in memory that others can read.

`share` writes the leaves to unnamed memory (memfd), which leaves nothing behind when a process is killed. It contains
raw arrays, beside a pickle of the rest. Readers copy their part into their own arrays. Mapping the memory instead takes
as long (45 µs for 400 KB; copying takes 39) and keeps a descriptor for each batch in use.
"""

from __future__ import annotations

import mmap
import os
import pickle
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from workbench import by_value
from workbench.errors import CaptureError, StorageFull

SHARED: Final = hasattr(os, "memfd_create")
"""Whether processes can share unnamed memory."""
_ALIGNMENT: Final = 64
_Part = tuple[tuple[int, int], ...]


class ReadStep(Protocol):
    """The leaves of one step, by position among the host's replicas."""

    @property
    def nbytes(self) -> int:
        """Their approximate size in memory."""

    def leaves(self, position: int) -> list[Any]:
        """The leaves of one replica, with arrays of its own."""


class LocalStep:
    """A step in the process that read it; each replica takes its part once, or the same arrays again."""

    def __init__(self, parts: Mapping[int, list[Any]]) -> None:
        self._parts = parts

    @property
    def nbytes(self) -> int:
        """Bytes of arrays."""
        return sum(getattr(leaf, "nbytes", 0) for leaves in self._parts.values() for leaf in leaves)

    def leaves(self, position: int) -> list[Any]:
        """The leaves as read."""
        return self._parts[position]


class SharedPlace(NamedTuple):
    """The place of shared memory for other processes of this machine, valid as long as this process keeps it.

    Attributes:
      path: Path of the descriptor in /proc.
      identity: Device and number of the file, because processes of another container may see another file there.
      start: See `SharedStep.index`.
      nbytes: Its size.
    """

    path: str
    identity: tuple[int, int]
    start: int
    nbytes: int

    def opened(self) -> SharedStep | None:
        """Opens the memory; None if this process cannot reach it."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        if _identity(descriptor) != self.identity:
            os.close(descriptor)
            return None
        return SharedStep(descriptor, self.start, self.nbytes)


class SharedStep:
    """A step in shared memory.

    Attributes:
      descriptor: The file descriptor of the memory; closed with this object.
      index: Start of the index of its parts, which extends to the end.
      nbytes: Its size.
    """

    def __init__(self, descriptor: int, index: int, nbytes: int) -> None:
        self.descriptor, self.index, self.nbytes = descriptor, index, nbytes
        weakref.finalize(self, os.close, descriptor).atexit = False

    @property
    def place(self) -> SharedPlace:
        """Its place, for other processes."""
        path = f"/proc/{os.getpid()}/fd/{self.descriptor}"
        return SharedPlace(path, _identity(self.descriptor), self.index, self.nbytes)

    def leaves(self, position: int) -> list[Any]:
        """Copies of the leaves, for any number of threads and processes."""
        first, *others = self._parts()[position]
        buffers = [read_memory(self.descriptor, start, length) for start, length in others]
        found: list[Any] = pickle.loads(read_memory(self.descriptor, *first), buffers=buffers)
        return found

    def mapped(self) -> Any:
        """The object given to `share_pickled`; its arrays stay in the memory, and pages are copied on write."""
        memory = memoryview(mmap.mmap(self.descriptor, self.nbytes, access=mmap.ACCESS_COPY))
        first, *others = (memory[start : start + length] for start, length in self._parts()[0])
        return pickle.loads(first, buffers=others)

    def _parts(self) -> dict[int, _Part]:
        index = read_memory(self.descriptor, self.index, self.nbytes - self.index)
        parts: dict[int, _Part] = pickle.loads(index)
        return parts


def share(parts: Mapping[int, list[Any]]) -> SharedStep:
    """Puts the leaves of a step into shared memory.

    Args:
      parts: For each position on the host, the leaves of its element.

    Raises:
      CaptureError: if an element cannot be pickled.
      StorageFull: if there is not enough memory.
    """
    return _written(
        lambda memory: {position: memory.add_leaves(leaves) for position, leaves in parts.items()}
    )


def share_pickled(data: bytes, arrays: Sequence[Any]) -> SharedStep:
    """Puts an object that was pickled without its arrays into shared memory.

    Args:
      data: The pickle.
      arrays: The bytes of each array.

    Raises:
      StorageFull: if there is not enough memory.
    """
    return _written(lambda memory: {0: (memory.add(data), *map(memory.add, arrays))})


def _written(write: Callable[[_Memory], dict[int, _Part]]) -> SharedStep:
    memory = _Memory()
    try:
        start, _ = memory.add(pickle.dumps(write(memory), protocol=5))
    except BaseException:
        os.close(memory.descriptor)
        raise
    return SharedStep(memory.descriptor, start, memory.end)


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def in_memory(data: bytes) -> int:
    """The descriptor of shared memory that holds `data`."""
    memory = _Memory()
    try:
        memory.add(data)
    except BaseException:
        os.close(memory.descriptor)
        raise
    return memory.descriptor


def read_memory(descriptor: int, start: int = 0, length: int | None = None) -> memoryview:
    """Copies bytes of shared memory; without a length, all from `start` on.

    Args:
      descriptor: Descriptor of the memory.
      start: First byte.
      length: Number of bytes.
    """
    if length is None:
        length = os.fstat(descriptor).st_size - start
    found = missing = memoryview(np.empty(length, np.uint8))  # type: ignore[arg-type]  # arrays are buffers
    while missing:
        count = os.preadv(descriptor, [missing], start)
        if not count:
            raise EOFError(f"shared memory ends {len(missing)} bytes too early")
        missing, start = missing[count:], start + count
    return found


class _Memory:
    """Shared memory for writing. Arrays are aligned to 64 bytes, for fast access."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("workbench-input", os.MFD_CLOEXEC)
        self.end = 0

    def add(self, data: Any) -> tuple[int, int]:
        """Appends bytes; returns their offset and their size."""
        rest = memoryview(data).cast("B")
        start = self.end = -(-self.end // _ALIGNMENT) * _ALIGNMENT
        length = len(rest)
        try:
            while rest:
                count = os.pwrite(self.descriptor, rest, self.end)
                rest, self.end = rest[count:], self.end + count
        except OSError as error:
            raise StorageFull(
                f"no room for a batch of {length} bytes in shared memory: {error.strerror}"
            ) from error
        return start, length

    def add_leaves(self, leaves: list[Any]) -> _Part:
        buffers: list[pickle.PickleBuffer] = []
        data = _pickled(leaves, buffers)
        return (self.add(data), *(self.add(buffer.raw()) for buffer in buffers))


def _pickled(leaves: list[Any], buffers: list[pickle.PickleBuffer]) -> bytes:
    """As `runtime.comm.messages.dumps`, with the arrays separate."""
    try:
        data = pickle.dumps(leaves, protocol=5, buffer_callback=buffers.append)
        if b"_main__" not in data:  # other processes cannot import what a notebook defines
            return data
    except (pickle.PicklingError, AttributeError, TypeError):
        pass
    buffers.clear()
    try:
        return by_value.dumps(leaves, buffer_callback=buffers.append)
    except Exception as error:  # pickling calls code of any class inside
        kinds = ", ".join(dict.fromkeys(type(leaf).__name__ for leaf in leaves))
        raise CaptureError(
            f"an element of a dataset cannot travel from the process that reads it to a replica: it has {kinds}, and "
            f"pickling that fails with {type(error).__name__}: {error}; return arrays, numbers or text"
        ) from error
