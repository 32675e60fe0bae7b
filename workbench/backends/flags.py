"""Words in host memory that kernels set: how a GPU reports something that nothing waits for."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

FLAG = np.dtype(np.uint32)
WORDS = 16_384
"""Words per process: with two replicas, enough for 8,192 collectives in progress."""


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """Consecutive words that one caller currently uses.

    Attributes:
      words: A uint32 array of shape `(count,)`; 0 until a kernel sets a word.
      address: Address of the first word, for kernels.
    """

    words: np.ndarray
    address: int

    def of(self, place: int) -> int:
        """Address of one word."""
        return self.address + place * self.words.itemsize


class Flags:
    """Hands out the words of one block, which must outlive every kernel that may write to it.

    Any thread may call it; `_lock` guards which words are free.
    """

    def __init__(self, words: np.ndarray) -> None:
        """Starts with `words`, a uint32 array of zeros."""
        self._words = words
        self._address = int(words.ctypes.data)
        self._lock = threading.Lock()
        self._unused = 0
        self._free: dict[int, list[Taken]] = {}

    def take(self, count: int) -> Taken | None:
        """`count` words that are 0, or None if all are in use."""
        with self._lock:
            if free := self._free.get(count):
                return free.pop()
            first, end = self._unused, self._unused + count
            if end > len(self._words):
                return None
            self._unused = end
        return Taken(self._words[first:end], self._address + first * self._words.itemsize)

    def give_back(self, taken: Taken) -> None:
        """Clears and frees the words; no kernel may write to them any more."""
        taken.words[:] = 0
        with self._lock:
            self._free.setdefault(taken.words.size, []).append(taken)
