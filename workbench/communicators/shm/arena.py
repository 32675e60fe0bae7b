"""Hands out arrays in shared memory, and recognises them when they come back as inputs."""

from __future__ import annotations

import mmap
import os
from collections import deque
from time import monotonic

import numpy as np

from workbench.communicators.core.result_pool import is_idle
from workbench.communicators.core.shared_memory import PAGE_BYTES, SharedFile, rounded

# Mapped as a whole, because each mapping holds a descriptor; pages cost nothing until written.
_EXTENT_BYTES = 64 * 1024 * 1024
_KEPT_IDLE_BYTES = 256 * 1024 * 1024
_MAX_PIECES = 1024


class Reserved:
    """A part of the shared file that others use.

    Attributes:
      offset: Where it begins in the file.
      nbytes: Its size, in whole pages.
    """

    __slots__ = ("_extent", "_start", "nbytes", "offset")

    def __init__(self, offset: int, nbytes: int, extent: mmap.mmap, start: int) -> None:
        self.offset = offset
        self.nbytes = nbytes
        self._extent = extent
        self._start = start

    def give_back(self) -> None:
        """Frees its pages; they read as zeros when used again."""
        if hasattr(mmap, "MADV_REMOVE"):
            self._extent.madvise(mmap.MADV_REMOVE, self._start, self.nbytes)


class Arena:
    """Blocks of this process's shared file. Only one thread uses it; any thread may drop arrays.

    Attributes:
      paged_bytes: Size of the blocks that have pages, in use or not.
    """

    def __init__(self, file: SharedFile) -> None:
        self._file = file
        self._extent: mmap.mmap | None = None
        self._extent_offset = 0  # offset in the file
        self._used = 0  # size of the extent
        self._blocks: dict[int, deque[np.ndarray]] = {}  # by size
        # By id, which is unique because blocks live as long as the arena: offset in the file, address, memory.
        self._known: dict[int, tuple[int, int, mmap.mmap, int]] = {}
        self._removed: set[int] = set()  # ids of blocks whose pages were released
        self._handed_out: dict[int, float] = {}  # block id -> when it was last handed out
        self.paged_bytes = 0

    def take(self, nbytes: int) -> np.ndarray:
        """An uninitialised block of `nbytes` bytes without other references."""
        size = rounded(nbytes)
        blocks = self._blocks.setdefault(size, deque())
        for _ in range(len(blocks)):
            if is_idle(blocks):
                break
            blocks.rotate(-1)
        else:
            blocks.appendleft(self._made(size))
        block = id(blocks[0])
        self._handed_out[block] = monotonic()
        if block in self._removed:
            self._removed.discard(block)
            self.paged_bytes += size
        return blocks[0][:nbytes]

    def give_back(self, before: float) -> None:
        """Frees the pages of unreferenced blocks that were last handed out before `before`.

        Never during `take`, and only after a collective, because peers read blocks in place.

        Args:
          before: A `time.monotonic` time.
        """
        self._release_idle(before)

    def reserve(self, nbytes: int) -> Reserved:
        """Reserves `nbytes` new bytes that the arena itself does not use."""
        size = rounded(nbytes)
        extent, start, offset = self._carve(size)
        return Reserved(offset, size, extent, start)

    def close(self) -> None:
        """Drops all blocks; arrays that are still referenced stay valid."""
        self._extent = None
        self._blocks.clear()
        self._known.clear()

    def offset(self, flat: np.ndarray) -> int:
        """Offset in the file of a contiguous array, 0 if it is elsewhere."""
        known = self._known.get(id(flat.base))
        if known is None:
            return 0
        return int(known[0] + flat.__array_interface__["data"][0] - known[1])

    def _made(self, size: int) -> np.ndarray:
        if self.paged_bytes + size > _KEPT_IDLE_BYTES:
            self._release_idle()
        extent, start, offset = self._carve(size)
        # A separate array object, so that its references can be counted.
        block = np.frombuffer(extent, np.uint8, size, start)
        self._known[id(block)] = (offset, block.ctypes.data, extent, start)
        self.paged_bytes += size
        return block

    def _carve(self, size: int) -> tuple[mmap.mmap, int, int]:
        """Takes `size` new bytes: returns the memory, the position in it, and the offset in the file."""
        if self._extent is None or self._used + size > len(self._extent):
            length = max(_EXTENT_BYTES, size)
            self._extent_offset = self._file.grow(length)
            self._extent = mmap.mmap(self._file.fd, length, offset=self._extent_offset)
            self._used = 0
        start = self._used
        self._used += size
        return self._extent, start, self._extent_offset + start

    def _release_idle(self, before: float = float("inf")) -> None:
        # The addresses stay valid; only the pages are freed, and read as zeros when used again.
        for size, blocks in self._blocks.items():
            for _ in range(len(blocks)):
                block = id(blocks[0])
                idle = is_idle(blocks) and self._handed_out.get(block, 0.0) < before
                if idle and block not in self._removed and hasattr(mmap, "MADV_REMOVE"):
                    _, _, extent, start = self._known[block]
                    extent.madvise(mmap.MADV_REMOVE, start, size)
                    self._removed.add(block)
                    self.paged_bytes -= size
                blocks.rotate(-1)


class PeerMemory:
    """The shared file of another process, mapped as it grows."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._windows: list[tuple[int, mmap.mmap]] = []
        self._pieces: dict[tuple[int, int], np.ndarray] = {}

    def view(self, offset: int, nbytes: int) -> np.ndarray:
        """The `nbytes` bytes at `offset` of the file, which must lie in one block; cached."""
        key = (offset, nbytes)
        piece = self._pieces.get(key)
        if piece is None:
            if len(self._pieces) >= _MAX_PIECES:
                self._pieces.clear()
            piece = self._pieces[key] = self.block(offset, nbytes)
        return piece

    def block(self, offset: int, nbytes: int) -> np.ndarray:
        """As `view`, but always a new array, so that its references can be counted."""
        for start, window in self._windows:
            if start <= offset and offset + nbytes <= start + len(window):
                return np.frombuffer(window, np.uint8, nbytes, offset - start)
        # The file only grows, by whole extents. One mapping covers everything new after the last window.
        start = max((first + len(window) for first, window in self._windows), default=0)
        start = min(start, offset // PAGE_BYTES * PAGE_BYTES)
        window = mmap.mmap(self._fd, os.fstat(self._fd).st_size - start, offset=start)
        self._windows.append((start, window))
        return np.frombuffer(window, np.uint8, nbytes, offset - start)
