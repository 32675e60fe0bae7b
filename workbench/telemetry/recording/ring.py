"""The ring into which one replica writes a record per collective.

One writer (the replica's thread) and one reader (a `Drain`). Neither locks: the writer packs numbered rows into memory,
if possible into memory that outlives the process (`FlightMemory`); the reader copies them out, except for those that
the writer has overwritten in the meantime. If the reader is too slow, the oldest records are lost, which the numbers
show.
"""

from __future__ import annotations

import mmap
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from workbench.telemetry.events import Event
from workbench.telemetry.formatting import encodable, shorten
from workbench.telemetry.recording.flight_memory import HEAD, ROW, ROWS, ROWS_AT, SLOTS, FlightMemory, newest
from workbench.telemetry.records import InFlight, Signature

NUMBERS: Final = ("step", "seq", "count", "bytes", "t_enter_ns", "t_start_ns", "t_end_ns")
_pack = ROW.pack_into
_ROW_BYTES: Final = ROW.size
_MAX_SIGNATURES: Final = 4096
_MAX_EVENTS: Final = 1024
_MAX_MESSAGE: Final = 8192


class Replica(NamedTuple):
    """A replica that records belong to."""

    id: int
    device: str


class Taken(NamedTuple):
    """What was taken out of a ring at once; False if there was nothing.

    Attributes:
      rows: A `ROW` for each record: its number, that of its signature, then `NUMBERS`.
      events: Rare events.
      dropped: Records lost since the last time.
      dropped_events: Events lost since the last time.
      waiting: A collective that the replica is in, if not reported before.
    """

    rows: bytes
    events: tuple[Event, ...]
    dropped: int
    dropped_events: int
    waiting: InFlight | None

    def __bool__(self) -> bool:
        return any(self)


class Ring:
    """Bounded buffer of records and rare events of one replica.

    Attributes:
      capacity: The most records that can wait to be drained.
      dropped: Records lost so far because they were not drained in time.
      dropped_events: Events lost so far, likewise.
      replicas: The replica that writes, and others that its records also belong to.
      signatures: The common parts of records, by the number that refers to them.
      clock_offset_ns: Stamped onto drained records; set it from `clocks.OffsetEstimator`.
      clock_err_ns: Bound of the error of that offset.
      memory: Memory in which the records outlive this process, None if no process could read it.
    """

    def __init__(
        self,
        capacity: int = 4096,
        *,
        replica: int,
        host: str = "",
        device: str = "",
        run_id: str = "",
        size: int = 0,
        others: Sequence[Replica] = (),
        memory: FlightMemory | None = None,
    ) -> None:
        """Creates an empty ring.

        Args:
          capacity: The most records that can wait to be drained.
          replica: Id of the replica that writes.
          host: Its host.
          device: Its device, such as "cpu:0".
          run_id: Id of the run.
          size: Replicas in its group; without it a reader must guess who is missing from a collective.
          others: Other replicas on the same host that each record also belongs to.
          memory: Where to write records, `ROWS` of them; by default, private memory.
        """
        if capacity < 1:
            raise ValueError(f"capacity of a telemetry ring must be at least 1, got {capacity}")
        self.capacity = capacity if memory is None else ROWS
        self.replica = replica
        self.host = host
        self.device = device
        self.run_id = run_id
        self.size = size
        self.replicas = (Replica(replica, device), *others)
        self.dropped = 0
        self.dropped_events = 0
        self.clock_offset_ns = 0
        self.clock_err_ns = 0
        if memory is None:
            self._slots, self._first = capacity + 1, 0  # one more, as for `SLOTS`
            self._buffer = _private(self._slots * ROW.size)
            self._words = memoryview(bytearray(8)).cast("q")
        else:
            self._slots, self._first = SLOTS, ROWS_AT
            self._buffer, self._words = memory.buffer, memory.words
        self._at = self._first  # the position of the next row
        self._last = self._first + (self._slots - 1) * _ROW_BYTES
        self._head = 0  # records written so far; only the writer changes this
        self._tail = 0  # records drained or dropped so far; only the reader changes this
        self._codes: dict[Signature, int] = {}
        self.signatures: list[Signature] = []
        self._events: deque[Event] = deque(maxlen=_MAX_EVENTS)
        self._events_emitted = 0
        self._events_read = 0
        self._waiting_told: InFlight | None = None
        self.memory = memory

    def number(self, signature: Signature) -> int:
        """The number of a signature, for `write`; callers keep it, because looking it up costs as much as writing.

        The replica's thread only.
        """
        try:
            return self._codes[signature]
        except KeyError:
            return self._intern(signature)

    def write(
        self,
        signature: int,
        step: int,
        seq: int,
        count: int,
        nbytes: int,
        enter_ns: int,
        start_ns: int,
        end_ns: int,
    ) -> None:
        """Stores one record; the replica's thread only. Never blocks, never fails for lack of room.

        The arguments are the fields of `Record`, and the result of `number` for the others. Pass them by position:
        names more than double the cost.
        """
        head = self._head
        at = self._at
        _pack(self._buffer, at, head, signature, step, seq, count, nbytes, enter_ns, start_ns, end_ns)
        self._words[HEAD] = self._head = head + 1  # last, so that readers take whole rows
        self._at = at + _ROW_BYTES if at < self._last else self._first

    def _intern(self, signature: Signature) -> int:
        if len(self.signatures) >= _MAX_SIGNATURES:
            # Call sites are the only part without a natural bound: a notebook adds new ones in every cell.
            signature = signature._replace(site="")
            if (code := self._codes.get(signature)) is not None:
                return code
        # The list comes first, because the text of a code must exist before a reader can see the code.
        self.signatures.append(signature)
        if self.memory is not None:
            self.memory.add_signature(signature)
        code = self._codes[signature] = len(self.signatures) - 1
        return code

    def emit(
        self,
        kind: str,
        name: str,
        message: str,
        *,
        severity: str = "info",
        step: int = -1,
        site: str = "",
    ) -> None:
        """Adds a rare event, such as `emit("alert", "nan", "loss is NaN", step=118)`; any thread.

        Args:
          kind: The kind, such as "alert".
          name: The event's name, such as "nan".
          message: A sentence; long ones are cut.
          severity: "info", "warning" or "error".
          step: Number of the step; -1 for none.
          site: The user's line; "" for none.
        """
        self._events.append(
            Event(
                kind,
                name,
                encodable(shorten(message, _MAX_MESSAGE)),
                time.monotonic_ns(),
                severity,
                self.replica,
                self.host,
                step,
                site,
            )
        )
        # Two threads may count one instead of two, which only understates the number of lost lines.
        self._events_emitted += 1

    def take(self, in_flight: InFlight | None = None) -> Taken:
        """Takes out what was written since the last call; only for its drain.

        Args:
          in_flight: A collective that the replica has been waiting in for long.
        """
        head = self._head
        since = max(self._tail, head - self.capacity)
        rows = newest(self._buffer, self._first, self._slots, since, head)
        overwritten = self._head - self.capacity - since  # by a writer that continued meanwhile
        if overwritten > 0:
            rows = rows[overwritten * ROW.size :]
            since += min(overwritten, head - since)
        dropped = since - self._tail
        self._tail = head
        before = self.dropped_events
        events = self._take_events()
        waiting = in_flight if in_flight != self._waiting_told else None
        self._waiting_told = in_flight
        self.dropped += dropped
        return Taken(rows, events, dropped * len(self.replicas), self.dropped_events - before, waiting)

    def _take_events(self) -> tuple[Event, ...]:
        # Not "until empty": a replica that prints in a loop must not block this thread.
        waiting = len(self._events)
        offset = self.clock_offset_ns
        taken = (self._events.popleft() for _ in range(waiting))
        events = tuple(replace(event, t_ns=event.t_ns + offset) for event in taken)
        self._events_read += waiting
        lost = self._events_emitted - self._events_read - len(self._events)
        self.dropped_events = max(self.dropped_events, lost)
        return events


def _private(nbytes: int) -> mmap.mmap:
    """Private memory, which costs nothing until it is written."""
    if hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, nbytes)


class SharedRing:
    """A `Ring` with several writers: the thread of a replica on a GPU, and the one that waits for the GPU."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        # Held for a microsecond, because a ring supports only one writer at a time.
        self._lock = threading.Lock()

    def number(self, signature: Signature) -> int:
        """As `Ring.number`; any thread."""
        with self._lock:
            return self._ring.number(signature)

    def write(self, *record: int) -> None:
        """As `Ring.write`; any thread."""
        with self._lock:
            self._ring.write(*record)
