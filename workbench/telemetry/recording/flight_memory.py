"""The memory in which a replica records its collectives and its position. It can outlive the process.

Only the replica's thread writes rows. A driver on the same machine maps the memory while the process lives, and reads
it once the process has ended, for whatever reason. Recording needs no lock, system call or copy: this memory is also
the ring that the worker drains.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from workbench.telemetry.records import Signature

PREFIX: Final = "workbench-flight"
ROWS: Final = 4096
"""How many of the newest records are kept."""
ROW: Final = struct.Struct("=9q")
"""A record: its number, that of its signature, then `ring.NUMBERS`."""
HEAD, _STEP, POSITION, _TEXT_BYTES, _OFFSET, _ERROR, _BEGAN = range(7)
ROWS_AT: Final = 128
# One more than are kept: the slot to write next never holds a kept record, so no reader finds half a row.
SLOTS: Final = ROWS + 1
_TEXT_AT: Final = ROWS_AT + SLOTS * ROW.size
_MAX_TEXT: Final = 256 << 10
_BYTES: Final = _TEXT_AT + _MAX_TEXT


class Identity(NamedTuple):
    """Identifies the owner of records.

    Attributes:
      drain: Id of the drain that sends them while the process lives.
      run_id, replica, host, device, size: As in the ring.
    """

    drain: str
    run_id: str
    replica: int
    host: str
    device: str
    size: int


class FlightMemory:
    """The writer's end, for one replica. Its `Ring` writes the rows.

    Attributes:
      buffer: The memory, with rows from `ROWS_AT` on.
      words: Its first numbers: `words[HEAD]` records were written. `words[POSITION]` is the number of the replica's
        latest collective in its step, which the replica sets when it enters it; the record shows that it has left it.
    """

    def __init__(self, name: str, identity: Identity) -> None:
        """Creates the memory.

        Raises:
          OSError: if there is no memory.
        """
        descriptor = os.memfd_create(f"{PREFIX}-{name}", os.MFD_CLOEXEC)
        try:
            os.ftruncate(descriptor, _BYTES)
            # It has its own descriptor, through which other processes find it.
            self.buffer = mmap.mmap(descriptor, _BYTES)
        finally:
            os.close(descriptor)
        self.words = memoryview(self.buffer)[:ROWS_AT].cast("q")
        self._add_text(list(identity))

    def begin(self, step: int) -> None:
        """A step begins."""
        words = self.words
        words[_STEP], words[POSITION], words[_BEGAN] = step, -1, words[HEAD]

    def set_clock(self, offset_ns: int, err_ns: int) -> None:
        """As the ring's clock; any thread."""
        self.words[_OFFSET], self.words[_ERROR] = offset_ns, err_ns

    def add_signature(self, signature: Signature) -> None:
        """Adds the next signature, in the order of their numbers."""
        self._add_text(list(signature))

    def _add_text(self, fields: Sequence[str | int]) -> None:
        line = json.dumps(fields).encode() + b"\n"
        used = self.words[_TEXT_BYTES]
        if used + len(line) <= _MAX_TEXT:  # otherwise, records that refer to it are left out
            self.buffer[_TEXT_AT + used : _TEXT_AT + used + len(line)] = line
            self.words[_TEXT_BYTES] = used + len(line)


def newest(buffer: bytes | mmap.mmap, at: int, slots: int, since: int, head: int) -> bytes:
    """Rows `since` to `head`, whole and in their order.

    Args:
      buffer: The memory.
      at: The position of its first slot.
      slots: The number of slots.
      since: Number of the first requested row, which must not have been overwritten.
      head: Number of the row to write next.
    """
    first, end = since % slots, head % slots
    if since == head:
        return b""
    if first < end:
        return bytes(buffer[at + first * ROW.size : at + end * ROW.size])
    older = buffer[at + first * ROW.size : at + slots * ROW.size]
    return bytes(older) + bytes(buffer[at : at + end * ROW.size])


class Flight(NamedTuple):
    """The content of a replica's memory after its process has ended.

    Attributes:
      identity: The identity of the owner.
      signatures: The signatures that rows refer to.
      rows: Records, oldest first, each a `ROW`.
      step: The last step that it began.
      seq: Its last collective there, -1 before the first.
      inside: Whether it was in it.
      clock: Offset and error of its clock.
    """

    identity: Identity
    signatures: list[Signature]
    rows: bytes
    step: int
    seq: int
    inside: bool
    clock: tuple[int, int]


class FlightReader:
    """The reader's end: maps the memory as long as the process is there, reads it afterwards."""

    def __init__(self, path: str) -> None:
        """Maps the memory behind a descriptor of another process, such as "/proc/12/fd/7".

        Raises:
          OSError: if it is gone.
        """
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._memory = mmap.mmap(descriptor, _BYTES, access=mmap.ACCESS_READ)
        finally:
            os.close(descriptor)

    def read(self) -> Flight:
        """Its content, once the writer has ended."""
        with memoryview(self._memory)[:ROWS_AT].cast("q") as words:
            head, step, seq, used, offset, err, began = words[:7].tolist()
        rows = newest(self._memory, ROWS_AT, SLOTS, max(0, head - ROWS), head)
        # A collective's record is written when the replica leaves it.
        left = head > began and ROW.unpack(rows[-ROW.size :])[3] == seq
        lines = self._memory[_TEXT_AT : _TEXT_AT + used].splitlines()
        identity, *signatures = map(json.loads, lines)
        known = [Signature(*fields) for fields in signatures]
        inside = seq >= 0 and not left
        return Flight(Identity(*identity), known, rows, step, seq, inside, (offset, err))

    def close(self) -> None:
        """Unmaps it."""
        self._memory.close()
