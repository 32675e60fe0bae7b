"""Drain: collects what the replicas of one worker recorded, as one batch."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from workbench.telemetry.recording.ring import NUMBERS, Replica, Ring
from workbench.telemetry.records import TEXT_COLUMNS, InFlight, Record, Signature

if TYPE_CHECKING:
    import numpy as np

    from workbench.telemetry.events import Event
    from workbench.telemetry.recording import batches

_WIDTH: Final = 2 + len(NUMBERS)


class Drain:
    """Takes what was written to rings, as their only reader. One thread.

    One batch for all rings: creating, sending and reading a batch costs as much as a thousand records.

    Attributes:
      id: A unique id, which identifies a batch together with its number.
    """

    def __init__(self) -> None:
        self.id = uuid.uuid4().hex
        self._batches = 0
        self._dropped = 0
        self._dropped_events = 0

    def take(self, rings: Iterable[tuple[Ring, InFlight | None]]) -> bytes:
        """The records since the last call, as one Arrow IPC stream; b"" if there are none.

        The stream has the schema of `records.schema()`; its metadata say which batch of which drain it is and how many
        records were lost so far, and carry the events (see `batches.Header`).

        Args:
          rings: Each with a collective that its replica has been waiting in for long, to report once, as a record in
            state "entered". Look it up before draining: if it ends in between, its final record is in the same batch
            and wins.
        """
        from workbench.telemetry.recording import batches

        taken = [(ring, ring.take(waiting)) for ring, waiting in rings]
        taken = [(ring, part) for ring, part in taken if part]
        if not taken:
            return b""
        events: list[Event] = []
        found = _columns([(ring, _array(part.rows)) for ring, part in taken])
        for ring, part in taken:
            self._dropped += part.dropped
            self._dropped_events += part.dropped_events
            events += part.events
            if part.waiting is not None:
                found = batches.append(found, _entered(ring, part.waiting))
        count, number = len(found["seq"]), self._batches
        self._batches += 1
        header = batches.Header(self.id, count, self._dropped, self._dropped_events, tuple(events), number)
        return batches.encode(found, header)


def _entered(ring: Ring, waiting: InFlight) -> Record:
    return Record(
        **waiting.signature._asdict(),
        run_id=ring.run_id,
        replica=ring.replica,
        host=ring.host,
        device=ring.device,
        clock_offset_ns=ring.clock_offset_ns,
        clock_err_ns=ring.clock_err_ns,
        step=waiting.step,
        seq=waiting.seq,
        count=waiting.count,
        bytes=waiting.bytes,
        t_enter_ns=waiting.t_enter_ns,
        t_start_ns=0,
        t_end_ns=0,
        n=ring.size,
    )


def _array(rows: bytes) -> np.ndarray:
    """A ring's rows as int64, shape `(rows, 2 + numbers)`."""
    import numpy as np

    return np.frombuffer(rows, np.int64).reshape(-1, _WIDTH)


def _columns(parts: Sequence[tuple[Ring, np.ndarray]]) -> batches.Columns:
    """The rows of rings as columns, ring after ring.

    A row of a ring that belongs to several replicas appears once for each.

    Args:
      parts: Rings, each with its rows from `_array`.
    """
    import numpy as np

    from workbench.telemetry.recording.batches import Text

    def texts(values: Sequence[str], positions: np.ndarray) -> Text:
        numbers = {text: number for number, text in enumerate(dict.fromkeys(values))}
        codes = np.array([numbers[text] for text in values], dtype=np.int32)
        return Text(codes[positions], tuple(numbers))

    known: dict[Signature, int] = {}
    signatures, read, whose = [], [], []
    replicas: list[tuple[Ring, Replica]] = []
    for ring, rows in parts:
        used, positions = np.unique(rows[:, 1], return_inverse=True)
        numbers = [known.setdefault(ring.signatures[code], len(known)) for code in used]
        several = len(ring.replicas)
        signatures.append(np.repeat(np.array(numbers, np.int64)[positions], several))
        read.append(np.repeat(rows, several, axis=0) if several > 1 else rows)
        whose.append(np.tile(np.arange(several) + len(replicas), len(rows)))
        replicas += [(ring, replica) for replica in ring.replicas]
    numbers_read, of, by = np.concatenate(read), np.concatenate(signatures), np.concatenate(whose)
    found: batches.Columns = {name: numbers_read[:, 2 + place].copy() for place, name in enumerate(NUMBERS)}
    by_column = zip(*known, strict=True) if known else [()] * len(Signature._fields)
    for values, name in zip(by_column, Signature._fields, strict=True):
        found[name] = texts(values, of) if name in TEXT_COLUMNS else np.array(values, np.int32)[of]
    found["run_id"] = texts([ring.run_id for ring, _ in replicas], by)
    found["host"] = texts([ring.host for ring, _ in replicas], by)
    found["device"] = texts([replica.device for _, replica in replicas], by)
    found["replica"] = np.array([replica.id for _, replica in replicas], np.int32)[by]
    found["n"] = np.array([ring.size for ring, _ in replicas], np.int32)[by]
    for name in ("clock_offset_ns", "clock_err_ns"):
        found[name] = np.array([getattr(ring, name) for ring, _ in replicas], np.int64)[by]
    return found
