"""The shared files of all processes of a host, from one process's point of view.

A file has its owner's control page, two slots through which its input passes chunk by chunk, two slots for results
that it has combined for all, and then the arena. Slots are used in turn, by the parity of the round or chunk: no
process writes to a slot again before a later round has shown that all peers are done with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.communicators.core.control_page import CONTROL_BYTES, Control
from workbench.communicators.core.shared_memory import mapped
from workbench.communicators.shm.arena import PeerMemory

SLOT_BYTES = 1024 * 1024
_OUTPUTS_AT = CONTROL_BYTES + 2 * SLOT_BYTES
FILE_BYTES = _OUTPUTS_AT + 2 * SLOT_BYTES
_MAX_VIEWS = 4096


class HostMemory:
    """Views of the shared files, in the order of the processes.

    Attributes:
      index: Position of this process.
      controls: The control pages.
      arenas: The memory after the slots.
    """

    def __init__(self, index: int, fds: Sequence[int]) -> None:
        self.index = index
        self._files = [mapped(fd, 0, FILE_BYTES) for fd in fds]
        self.controls = [Control(file) for file in self._files]
        self.arenas = [PeerMemory(fd) for fd in fds]
        self._inputs = [_pair(file, CONTROL_BYTES) for file in self._files]
        self._outputs = [_pair(file, _OUTPUTS_AT) for file in self._files]
        self._views: dict[tuple[int, int, np.dtype], list[np.ndarray]] = {}

    def inputs(self, parity: int, count: int, dtype: np.dtype) -> list[np.ndarray]:
        """The first `count` elements of each process's input slot; cached."""
        key = (parity, count, dtype)
        views = self._views.get(key)
        if views is None:
            if len(self._views) >= _MAX_VIEWS:
                self._views.clear()
            nbytes = count * dtype.itemsize
            views = self._views[key] = [pair[parity][:nbytes].view(dtype) for pair in self._inputs]
        return views

    def input(self, p: int, parity: int) -> np.ndarray:
        """The bytes of the input slot of process `p`."""
        return self._inputs[p][parity]

    def is_staged(self, flat: np.ndarray) -> bool:
        """Whether an array lies in a slot of this process."""
        return flat.base is self._files[self.index]

    def outputs(self, parity: int, dtype: np.dtype) -> list[np.ndarray]:
        """Each process's result slot; cached."""
        key = (parity, -1, dtype)
        views = self._views.get(key)
        if views is None:
            nbytes = SLOT_BYTES // dtype.itemsize * dtype.itemsize
            views = self._views[key] = [pair[parity][:nbytes].view(dtype) for pair in self._outputs]
        return views


def _pair(file: np.ndarray, start: int) -> tuple[np.ndarray, np.ndarray]:
    return file[start : start + SLOT_BYTES], file[start + SLOT_BYTES : start + 2 * SLOT_BYTES]
