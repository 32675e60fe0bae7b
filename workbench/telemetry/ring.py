"""The ring into which one replica writes a record per collective.

One writer (the replica's thread) and one reader (the thread that ships). Neither locks: the writer appends a
numbered tuple, which costs a third of packing the numbers into memory; the reader takes the tuples out one by one
and makes columns of them. When the reader is too slow the oldest records are lost, which the numbers tell.
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from workbench.telemetry.events import Event
from workbench.telemetry.formatting import encodable, shorten
from workbench.telemetry.records import COLUMNS, TEXT_COLUMNS, InFlight, Record, Signature

if TYPE_CHECKING:
    import numpy as np

    from workbench.telemetry import batches

_NUMBERS: Final = ("step", "seq", "count", "bytes", "t_enter_ns", "t_start_ns", "t_end_ns")
_WIDTH: Final = 2 + len(_NUMBERS)
_OWN: Final = ("run_id", "replica", "host", "device", "clock_offset_ns", "clock_err_ns")
_Row = tuple[int, int, int, int, int, int, int, int, int]
_MAX_SIGNATURES: Final = 4096
_MAX_EVENTS: Final = 1024
_MAX_MESSAGE: Final = 8192


class Ring:
    """Bounded buffer of records and rare events of one replica.

    Attributes:
      id: Unique id of this ring; batches of it are told apart by it.
      capacity: Most records that can wait to be drained.
      dropped: Records lost so far because nobody drained them in time.
      dropped_events: Events lost so far, likewise.
      clock_offset_ns: Stamped onto drained records; set it from `clocks.OffsetEstimator`.
      clock_err_ns: Bound of the error of that offset.
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
    ) -> None:
        """Makes an empty ring.

        Args:
          capacity: Most records that can wait to be drained.
          replica: Id of the replica that writes.
          host: Its host.
          device: Its device, such as "cpu:0".
          run_id: Id of the run.
          size: Replicas in its group; without it a reader must guess who is missing from a collective.
        """
        if capacity < 1:
            raise ValueError(f"capacity of a telemetry ring must be at least 1, got {capacity}")
        self.id = uuid.uuid4().hex
        self.capacity = capacity
        self.replica = replica
        self.host = host
        self.device = device
        self.run_id = run_id
        self.size = size
        self.dropped = 0
        self.dropped_events = 0
        self.clock_offset_ns = 0
        self.clock_err_ns = 0
        # Its number, that of its signature, then `_NUMBERS`, of each of the newest records.
        self._records: deque[_Row] = deque(maxlen=capacity)
        self._drained: deque[_Row] = deque(maxlen=capacity)  # for `recent`; the reader only appends
        self._append = self._records.append
        self._head = 0  # records ever written; moved by the writer only
        self._tail = 0  # records ever drained or dropped; moved by the reader only
        self._codes: dict[Signature, int] = {}
        self._signatures: list[Signature] = []
        self._events: deque[Event] = deque(maxlen=_MAX_EVENTS)
        self._events_emitted = 0
        self._events_read = 0
        self._losses_told = (0, 0)
        self._waiting_told: InFlight | None = None
        self._batches = 0

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
        self._append((head, signature, step, seq, count, nbytes, enter_ns, start_ns, end_ns))
        self._head = head + 1

    def _intern(self, signature: Signature) -> int:
        if len(self._signatures) >= _MAX_SIGNATURES:
            # Call sites are the one part without natural bound (a notebook makes new ones in every cell).
            signature = signature._replace(site="")
            if (code := self._codes.get(signature)) is not None:
                return code
        # The list first: a code that a reader can see must already have its text.
        self._signatures.append(signature)
        code = self._codes[signature] = len(self._signatures) - 1
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

    def drain(self, in_flight: InFlight | None = None) -> bytes:
        """Takes out what was written since the last call, as one Arrow IPC stream; b"" if there is nothing.

        The reader only. The stream has the schema of `records.schema()`; its metadata say which batch of
        which ring it is and how many records were lost, and carry the events (see `batches.Header`).

        Args:
          in_flight: A collective that the replica has been waiting in for long, to be told once, as a record
            in state "entered". Look it up before draining: should it end in between, its record is in the
            same batch and wins.
        """
        from workbench.telemetry import batches

        # Not "until empty", lest a busy writer keep us here. It may push the oldest out meanwhile, never the last.
        taken = [self._records.popleft() for _ in range(len(self._records))]
        self._drained.extend(taken)
        rows = _array(taken)
        if taken:
            head = taken[-1][0] + 1
            self.dropped += head - self._tail - len(taken)
            self._tail = head
        events = self._take_events()
        losses = (self.dropped, self.dropped_events)
        waiting = in_flight if in_flight != self._waiting_told else None
        if not len(rows) and not events and losses == self._losses_told and waiting is None:
            return b""
        self._losses_told = losses
        self._waiting_told = in_flight
        columns = self._columns(rows)
        if waiting is not None:
            columns = batches.append(columns, self._entered(waiting))
        header = batches.Header(self.id, len(columns["seq"]), *losses, events, self._batches)
        self._batches += 1
        return batches.encode(columns, header)

    def recent(self, limit: int = 2000) -> list[Record]:
        """The newest records, oldest first, drained or not: the flight recorder.

        Takes nothing out; any thread may call it.
        """
        # What moves from one to the other while we look may be in both.
        rows = {row[0]: row for row in (*self._drained.copy(), *self._records.copy())}
        newest = [rows[number] for number in sorted(rows)[-limit:]]
        columns = self._columns(_array(newest))
        return [Record(*row) for row in zip(*(columns[name].tolist() for name in COLUMNS), strict=True)]

    def _entered(self, waiting: InFlight) -> Record:
        own = {name: getattr(self, name) for name in _OWN}
        return Record(
            **waiting.signature._asdict(),
            **own,
            step=waiting.step,
            seq=waiting.seq,
            count=waiting.count,
            bytes=waiting.bytes,
            t_enter_ns=waiting.t_enter_ns,
            t_start_ns=0,
            t_end_ns=0,
            n=self.size,
        )

    def _take_events(self) -> tuple[Event, ...]:
        waiting = len(self._events)  # not "until empty": a replica printing in a loop must not keep us here
        offset = self.clock_offset_ns
        taken = (self._events.popleft() for _ in range(waiting))
        events = tuple(replace(event, t_ns=event.t_ns + offset) for event in taken)
        self._events_read += waiting
        lost = self._events_emitted - self._events_read - len(self._events)
        self.dropped_events = max(self.dropped_events, lost)
        return events

    def _columns(self, read: np.ndarray) -> batches.Columns:
        import numpy as np

        from workbench.telemetry.batches import Text

        rows = len(read)
        columns: batches.Columns = {name: read[:, 2 + place].copy() for place, name in enumerate(_NUMBERS)}
        used, positions = np.unique(read[:, 1], return_inverse=True)
        signatures = [self._signatures[code] for code in used]
        by_column = zip(*signatures, strict=True) if signatures else [()] * len(Signature._fields)
        for parts, name in zip(by_column, Signature._fields, strict=True):
            if name not in TEXT_COLUMNS:
                columns[name] = np.array(parts, dtype=np.int32)[positions]
                continue
            values = {text: code for code, text in enumerate(dict.fromkeys(parts))}
            codes = np.array([values[text] for text in parts], dtype=np.int32)
            columns[name] = Text(codes[positions], tuple(values))
        for name in ("run_id", "host", "device"):
            columns[name] = Text.constant(getattr(self, name), rows)
        for name, value in (("replica", self.replica), ("n", self.size)):
            columns[name] = np.full(rows, value, dtype=np.int32)
        for name in ("clock_offset_ns", "clock_err_ns"):
            columns[name] = np.full(rows, getattr(self, name), dtype=np.int64)
        return columns


def _array(rows: list[_Row]) -> np.ndarray:
    """Rows as int64, shape `(rows, _WIDTH)`."""
    import numpy as np

    return np.fromiter(chain.from_iterable(rows), np.int64, _WIDTH * len(rows)).reshape(-1, _WIDTH)
