"""Results in memory that all processes of a host share.

The first process of the host owns the blocks. Each process marks in its control page the blocks that it refers to;
a block is reused only when it has no marks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from time import monotonic

import numpy as np

from workbench.communicators.core.control_page import HELD, SHARED_BLOCKS
from workbench.communicators.core.result_pool import is_idle
from workbench.communicators.core.shared_memory import rounded
from workbench.communicators.shm.arena import Arena, PeerMemory, Reserved


class SharedResults:
    """One process's side of the blocks. Only one thread uses it; any thread may drop arrays."""

    def __init__(
        self, words: Sequence[memoryview], index: int, memory: PeerMemory, arena: Arena | None
    ) -> None:
        """Starts without blocks.

        Args:
          words: The control words of all processes.
          index: Position of this process.
          memory: The shared file of the first process.
          arena: Where that process allocates the blocks; None in the others.
        """
        self._words = words
        self._own = words[index]
        self._memory = memory
        self._arena = arena
        self._blocks: list[Reserved] = []  # by number; the first process only
        self._used: dict[int, float] = {}  # number -> when it was last offered; only blocks that have pages
        self._mapped: dict[int, deque[np.ndarray]] = {}
        self._held: set[int] = set()

    def offer(self, nbytes: int) -> tuple[int, int]:
        """Number and offset of an unreferenced block, or (0, 0) if there can be no more. First process only."""
        assert self._arena is not None
        size = rounded(nbytes)
        for number, block in enumerate(self._blocks):
            if block.nbytes == size and not self._is_held(number):
                self._used[number] = monotonic()
                return number, block.offset
        if len(self._blocks) == SHARED_BLOCKS:
            return 0, 0
        self._blocks.append(self._arena.reserve(size))
        number = len(self._blocks) - 1
        self._used[number] = monotonic()
        return number, self._blocks[number].offset

    def give_back(self, before: float) -> None:
        """Removes the marks of dropped blocks; the first process also frees the pages of blocks without marks.

        Not during a collective, because not all processes may have marked the block that was offered.

        Args:
          before: A `time.monotonic` time; blocks that were offered later keep their pages.
        """
        self.release_dropped()
        for number in [number for number, used in self._used.items() if used < before]:
            if not self._is_held(number):
                self._blocks[number].give_back()
                del self._used[number]

    def _is_held(self, number: int) -> bool:
        return any(words[HELD + number] for words in self._words)

    def hold(self, number: int, offset: int, nbytes: int) -> np.ndarray:
        """Marks a block as referred to, before the next round shows the owner the mark, and returns its bytes."""
        if number not in self._mapped:
            self._mapped[number] = deque([self._memory.block(offset, rounded(nbytes))])
        self._own[HELD + number] = 1
        self._held.add(number)
        return self._mapped[number][0][:nbytes]

    def release_dropped(self) -> None:
        """Removes the marks of blocks whose arrays are all gone."""
        for number in [number for number in self._held if is_idle(self._mapped[number])]:
            self._own[HELD + number] = 0
            self._held.discard(number)
