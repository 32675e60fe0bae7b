"""The page of shared memory in which a process publishes its state to its peers. Only its owner writes to it.

Words have 64 bits and are written atomically. A word that announces other data is written after that data.
"""

from __future__ import annotations

import json

import numpy as np

from workbench.communicators.core.call import Asked
from workbench.communicators.core.failure import Failure
from workbench.communicators.core.shared_memory import PAGE_BYTES, rounded

# Positions of words. Each word on which peers spin has its own cache line (8 words).
ARRIVED = 0  # barrier rounds that this process has reached
SLEEPING = 8  # the round that it blocks for; 0 while awake, negative when it abandons that round
FINGERPRINT = 16  # the call that it requests, by parity of the round
PLACE = 18  # where its input is, by parity: offset in its file, 0 for its slot
TARGET = 20  # where a shared result is, by parity: offset in the first process's file, 0 for none
HOLDS = 22  # number of the shared result's block, by parity
FINISHED_ORDER = 24  # order of the last step that it left, plus 2 (0 for none, because orders start at -1)
FINISHED_COUNT = 25  # how many collectives it made in that step
STARTED = 26  # when all hosts had reached the present collective (monotonic ns); the first process only
FAILED = 32  # when it published its failure (monotonic ns), 0 for none
FAILED_BYTES = 33
ASKED_BYTES = 34
HELD = 64  # one word per block of shared results: 1 while this process refers to it
SEATS = 320  # in a process with several replicas, one word each: the call in which it waits for the others

SHARED_BLOCKS = 256
MOST_SEATS = 192  # if a process has more replicas, they count as present once all of them are
_ASKED_AT = 4096
_FAILURE_AT = _ASKED_AT + 8192
_TABLES_AT = _FAILURE_AT + 16384
_TABLE_BYTES = 32768
CONTROL_BYTES = rounded(_TABLES_AT + 2 * _TABLE_BYTES)
MOST_BLOCKS = _TABLE_BYTES // 16 - 1

assert HELD + SHARED_BLOCKS <= SEATS
assert 8 * (SEATS + MOST_SEATS) <= _ASKED_AT
assert CONTROL_BYTES % PAGE_BYTES == 0


class Control:
    """A process's page, mapped by itself and by its peers.

    Attributes:
      words: Its 64-bit words, indexed by the constants of this module.
    """

    def __init__(self, memory: np.ndarray) -> None:
        self._bytes = memory.data
        self.words = self._bytes[:_ASKED_AT].cast("q")
        self._tables = [
            memory[start : start + _TABLE_BYTES].view(np.int64)
            for start in (_TABLES_AT, _TABLES_AT + _TABLE_BYTES)
        ]

    def write_failure(self, failure: Failure, when_ns: int) -> None:
        """Publishes the failure that this process saw first."""
        data = failure.encode()
        self._bytes[_FAILURE_AT : _FAILURE_AT + len(data)] = data
        self.words[FAILED_BYTES] = len(data)
        self.words[FAILED] = when_ns

    def read_failure(self) -> Failure:
        """Reads what `write_failure` published."""
        return Failure.decode(bytes(self._bytes[_FAILURE_AT : _FAILURE_AT + self.words[FAILED_BYTES]]))

    def write_asked(self, asked: Asked) -> None:
        """Publishes a call in words; peers read it after the next round of the barrier."""
        data = asked.encode()
        self._bytes[_ASKED_AT : _ASKED_AT + len(data)] = data
        self.words[ASKED_BYTES] = len(data)

    def read_asked(self) -> Asked:
        """Reads what `write_asked` published."""
        return Asked.decode(bytes(self._bytes[_ASKED_AT : _ASKED_AT + self.words[ASKED_BYTES]]))

    def write_table(self, parity: int, sizes: dict[int, int]) -> None:
        """Announces blocks: their numbers and bytes."""
        table = self._tables[parity]
        flat = [item for pair in sizes.items() for item in pair]
        table[0] = len(sizes)
        table[1 : 1 + len(flat)] = flat

    def read_table(self, parity: int) -> dict[int, int]:
        """Reads what `write_table` announced."""
        table = self._tables[parity]
        flat = table[1 : 1 + 2 * int(table[0])].tolist()
        return dict(zip(flat[::2], flat[1::2], strict=True))


assert len(json.dumps("\0")) == 8  # a character may take 6 bytes, so 2,000 of them fit a failure's field
