"""The ring into which one replica writes a record per collective.

One writer (the replica's thread) and one reader (a `Drain`). Neither locks: the writer appends a numbered tuple,
which costs a third of packing the numbers into memory; the reader takes the tuples out one by one, and the drain makes
columns of them. When the reader is too slow the oldest records are lost, which the numbers tell.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from workbench.telemetry.events import Event
from workbench.telemetry.flight_memory import FlightMemory
from workbench.telemetry.formatting import encodable, shorten
from workbench.telemetry.records import InFlight, Signature

NUMBERS: Final = ("step", "seq", "count", "bytes", "t_enter_ns", "t_start_ns", "t_end_ns")
_Row = tuple[int, int, int, int, int, int, int, int, int]
_MAX_SIGNATURES: Final = 4096
_MAX_EVENTS: Final = 1024
_MAX_MESSAGE: Final = 8192


class Replica(NamedTuple):
    """A replica of which records hold."""

    id: int
    device: str


class Taken(NamedTuple):
    """What was taken out of a ring at once; False if there was nothing to tell.

    Attributes:
      rows: Number, number of the signature, then `NUMBERS`, of each record.
      events: Rare events.
      dropped: Records lost meanwhile.
      dropped_events: Events lost meanwhile.
      waiting: A collective that the replica is in, if that was not told before.
    """

    rows: list[_Row]
    events: tuple[Event, ...]
    dropped: int
    dropped_events: int
    waiting: InFlight | None

    def __bool__(self) -> bool:
        return any(self)


class Ring:
    """Bounded buffer of records and rare events of one replica.

    Attributes:
      capacity: Most records that can wait to be drained.
      dropped: Records lost so far because nobody drained them in time.
      dropped_events: Events lost so far, likewise.
      replicas: The one that writes, and further ones of which its records hold as well.
      signatures: What records have in common, by the number that they have instead.
      clock_offset_ns: Stamped onto drained records; set it from `clocks.OffsetEstimator`.
      clock_err_ns: Bound of the error of that offset.
      memory: Where the records of completed steps outlive this process, None if nobody could read that.
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
        """Makes an empty ring.

        Args:
          capacity: Most records that can wait to be drained.
          replica: Id of the replica that writes.
          host: Its host.
          device: Its device, such as "cpu:0".
          run_id: Id of the run.
          size: Replicas in its group; without it a reader must guess who is missing from a collective.
          others: Further replicas on the same host, of which each record holds as well.
          memory: Where `keep` copies records.
        """
        if capacity < 1:
            raise ValueError(f"capacity of a telemetry ring must be at least 1, got {capacity}")
        self.capacity = capacity
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
        # Its number, that of its signature, then `NUMBERS`, of each of the newest records.
        self._records: deque[_Row] = deque(maxlen=capacity)
        self._append = self._records.append
        self._head = 0  # records ever written; moved by the writer only
        self._tail = 0  # records ever drained or dropped; moved by the reader only
        self._codes: dict[Signature, int] = {}
        self.signatures: list[Signature] = []
        self._events: deque[Event] = deque(maxlen=_MAX_EVENTS)
        self._events_emitted = 0
        self._events_read = 0
        self._waiting_told: InFlight | None = None
        self.memory = memory
        self._unkept: deque[_Row] = deque(maxlen=capacity)  # of the present step

    def number(self, signature: Signature) -> int:
        """The number of a signature, for `write`; callers keep it, as looking it up costs as much as writing.

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

        The arguments are the fields of `Record`, and what `number` gave for the others. Pass them by position:
        names more than double the cost.
        """
        head = self._head
        row = (head, signature, step, seq, count, nbytes, enter_ns, start_ns, end_ns)
        self._append(row)
        self._head = head + 1
        if self.memory is not None:
            self._unkept.append(row)

    def keep(self) -> None:
        """Copies the records of a step that ends into the memory that outlives the process; the replica's thread."""
        if self._unkept and self.memory is not None:
            self.memory.store(self._unkept)
            self._unkept.clear()

    def _intern(self, signature: Signature) -> int:
        if len(self.signatures) >= _MAX_SIGNATURES:
            # Call sites are the one part without natural bound (a notebook makes new ones in every cell).
            signature = signature._replace(site="")
            if (code := self._codes.get(signature)) is not None:
                return code
        # The list first: a code that a reader can see must already have its text.
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
        generation: int = -1,
    ) -> None:
        """Adds a rare event, such as `emit("alert", "nan", "loss is NaN", step=118)`; any thread."""
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
                generation,
            )
        )
        # Two threads may count one for two here; that understates a number of lost lines, nothing else.
        self._events_emitted += 1

    def take(self, in_flight: InFlight | None = None) -> Taken:
        """Takes out what was written since the last call; its drain only.

        Args:
          in_flight: A collective that the replica has been waiting in for long.
        """
        # Not "until empty", lest a busy writer keep us here. It may push the oldest out meanwhile, never the last.
        rows = [self._records.popleft() for _ in range(len(self._records))]
        dropped = 0
        if rows:
            head = rows[-1][0] + 1
            dropped = head - self._tail - len(rows)
            self._tail = head
        before = self.dropped_events
        events = self._take_events()
        waiting = in_flight if in_flight != self._waiting_told else None
        self._waiting_told = in_flight
        self.dropped += dropped
        return Taken(rows, events, dropped * len(self.replicas), self.dropped_events - before, waiting)

    def _take_events(self) -> tuple[Event, ...]:
        waiting = len(self._events)  # not "until empty": a replica printing in a loop must not keep us here
        offset = self.clock_offset_ns
        taken = (self._events.popleft() for _ in range(waiting))
        events = tuple(replace(event, t_ns=event.t_ns + offset) for event in taken)
        self._events_read += waiting
        lost = self._events_emitted - self._events_read - len(self._events)
        self.dropped_events = max(self.dropped_events, lost)
        return events
