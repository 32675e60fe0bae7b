"""The page by which a process tells its peers where it is. Only its owner writes to it.

Words are 64 bits and written in one go. A word that announces other data is written after them.
"""

from __future__ import annotations

import json

import numpy as np

from workbench.communicators.core.call import Asked
from workbench.communicators.core.failure import Failure
from workbench.communicators.core.shared_memory import PAGE_BYTES, rounded

# Positions of words; those that peers spin on have a cache line (8 words) to themselves.
ARRIVED = 0  # rounds of the barrier that this process has reached
SLEEPING = 8  # the round that it blocks for, 0 while it is awake, less than 0 if it gives that round up
FINGERPRINT = 16  # what it asks for, by parity of the round
PLACE = 18  # where its input is if not in its slot, by parity: offset in its file, 0 for the slot
TARGET = 20  # where a shared result goes, by parity: offset in the first process's file, 0 for none
HOLDS = 22  # number of the shared result's block, by parity
FINISHED_ORDER = 24  # order of the step that it has left, plus 2 (0 for none, as orders count from -1)
FINISHED_COUNT = 25  # how many collectives it had made in it
STARTED = 26  # when all hosts had come to the present collective (monotonic ns); the first process only
FAILED = 32  # when it published its failure (monotonic ns), 0 if it did not
FAILED_BYTES = 33
ASKED_BYTES = 34
HELD = 64  # one word per block of shared results: 1 while this process still refers to it
SEATS = 320  # one word per replica of a process with several: what it waits for the others of its process in

SHARED_BLOCKS = 256
MOST_SEATS = 192  # of more replicas in one process, the others are known to have come when all of them have
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
      words: Its 64-bit words, to be indexed by the constants of this module.
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
        """What `write_failure` has published."""
        return Failure.decode(bytes(self._bytes[_FAILURE_AT : _FAILURE_AT + self.words[FAILED_BYTES]]))

    def write_asked(self, asked: Asked) -> None:
        """Publishes a call in words, to be read after the next round of the barrier."""
        data = asked.encode()
        self._bytes[_ASKED_AT : _ASKED_AT + len(data)] = data
        self.words[ASKED_BYTES] = len(data)

    def read_asked(self) -> Asked:
        """What `write_asked` has published."""
        return Asked.decode(bytes(self._bytes[_ASKED_AT : _ASKED_AT + self.words[ASKED_BYTES]]))

    def write_table(self, parity: int, sizes: dict[int, int]) -> None:
        """Announces blocks: their numbers and bytes."""
        table = self._tables[parity]
        flat = [item for pair in sizes.items() for item in pair]
        table[0] = len(sizes)
        table[1 : 1 + len(flat)] = flat

    def read_table(self, parity: int) -> dict[int, int]:
        """What `write_table` has announced."""
        table = self._tables[parity]
        flat = table[1 : 1 + 2 * int(table[0])].tolist()
        return dict(zip(flat[::2], flat[1::2], strict=True))


assert len(json.dumps("\0")) == 8  # a character may take 6 bytes: 2,000 of them fit the field of a failure
