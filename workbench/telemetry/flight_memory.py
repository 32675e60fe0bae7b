"""What a replica has recorded, in memory that outlives its process: the last completed steps, and where it was.

The replica writes and its thread alone; a driver on the same machine maps the memory while the process is alive, and
reads it once that has ended, however it ended. No lock, no system call: a step costs one copy of its records.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from workbench.telemetry.records import Signature

PREFIX: Final = "workbench-flight"
ROWS: Final = 1024
"""Records that are kept, the newest."""
_WIDTH: Final = 9
_HEAD, _STEP, POSITION, _TEXT_BYTES, _OFFSET, _ERROR = range(6)
_FIRST_ROW: Final = 16
_ROW: Final = struct.Struct(f"={_WIDTH}q")
_ROWS_AT: Final = _FIRST_ROW * 8
_TEXT_AT: Final = _ROWS_AT + ROWS * _ROW.size
_MAX_TEXT: Final = 256 << 10
_BYTES: Final = _TEXT_AT + _MAX_TEXT

Row = tuple[int, ...]


class Identity(NamedTuple):
    """Whose records they are.

    Attributes:
      drain: Id of the drain that ships them meanwhile.
      run_id, replica, host, device, size: As of the ring.
    """

    drain: str
    run_id: str
    replica: int
    host: str
    device: str
    size: int


class FlightMemory:
    """The writer's end, of one replica.

    Attributes:
      words: Numbers in the memory. `words[POSITION]` is twice the number of the replica's latest collective in its
        step, and one more while it is in it; the replica sets it in every collective.
    """

    def __init__(self, name: str, identity: Identity) -> None:
        """Makes the memory.

        Raises:
          OSError: if there is none.
        """
        descriptor = os.memfd_create(f"{PREFIX}-{name}", os.MFD_CLOEXEC)
        try:
            os.ftruncate(descriptor, _BYTES)
            self._memory = mmap.mmap(
                descriptor, _BYTES
            )  # has a descriptor of its own, by which others find it
        finally:
            os.close(descriptor)
        self.words = memoryview(self._memory)[:_TEXT_AT].cast("q")
        self._add_text(list(identity))

    def begin(self, step: int) -> None:
        """A step begins."""
        self.words[_STEP] = step
        self.words[POSITION] = -2

    def set_clock(self, offset_ns: int, err_ns: int) -> None:
        """As the ring's; any thread."""
        self.words[_OFFSET], self.words[_ERROR] = offset_ns, err_ns

    def add_signature(self, signature: Signature) -> None:
        """The next signature, in the order of their numbers."""
        self._add_text(list(signature))

    def _add_text(self, fields: Sequence[str | int]) -> None:
        line = json.dumps(fields).encode() + b"\n"
        used = self.words[_TEXT_BYTES]
        if used + len(line) <= _MAX_TEXT:  # else records that refer to it are left out
            self._memory[_TEXT_AT + used : _TEXT_AT + used + len(line)] = line
            self.words[_TEXT_BYTES] = used + len(line)

    def store(self, rows: Iterable[Row]) -> None:
        """Keeps rows as a ring has them; the oldest make room."""
        words, memory = self.words, self._memory
        head = words[_HEAD]
        for row in rows:
            _ROW.pack_into(memory, _ROWS_AT + head % ROWS * _ROW.size, *row)
            head += 1
        words[_HEAD] = head  # only now: whoever reads takes whole rows


class Flight(NamedTuple):
    """What the memory of a replica held when its process had ended.

    Attributes:
      identity: Whose it is.
      signatures: What rows refer to.
      rows: Records, oldest first, as rows of a ring.
      step: The last step that it began.
      seq: Its last collective there, -1 before the first.
      inside: Whether it was in it.
      clock: Offset and error of its clock.
    """

    identity: Identity
    signatures: list[Signature]
    rows: list[Row]
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
        """What is in it now; of a writer that still writes the newest rows may be torn."""
        with memoryview(self._memory)[:_TEXT_AT].cast("q") as words:
            head, step, position, used, offset, err = words[:6].tolist()
            numbers = range(max(0, head - ROWS), head)
            starts = [_FIRST_ROW + number % ROWS * _WIDTH for number in numbers]
            rows = [tuple(words[start : start + _WIDTH].tolist()) for start in starts]
        lines = self._memory[_TEXT_AT : _TEXT_AT + used].splitlines()
        identity, *signatures = map(json.loads, lines)
        known = [Signature(*fields) for fields in signatures]
        rows = [row for row in rows if row[1] < len(known)]
        return Flight(
            Identity(*identity), known, rows, step, position >> 1, bool(position & 1), (offset, err)
        )

    def close(self) -> None:
        """Unmaps it."""
        self._memory.close()
