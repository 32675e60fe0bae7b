"""What one ring holds, read as its drain reads it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from workbench.telemetry.recording import batches
from workbench.telemetry.recording.drain import Drain
from workbench.telemetry.recording.ring import Ring
from workbench.telemetry.records import COLUMNS, InFlight, Record

_drains: WeakKeyDictionary[Ring, Drain] = WeakKeyDictionary()
_records: WeakKeyDictionary[Ring, list[Record]] = WeakKeyDictionary()


def drained(ring: Ring, waiting: InFlight | None = None) -> bytes:
    """The next batch of a ring that has a drain of its own."""
    return _drains.setdefault(ring, Drain()).take([(ring, waiting)])


def records(ring: Ring) -> list[Record]:
    """All records that were written so far, of a ring that is read by this function only."""
    found = _records.setdefault(ring, [])
    if data := drained(ring):
        columns = batches.decode(data)[1]
        found += [Record(*row) for row in zip(*(columns[name].tolist() for name in COLUMNS), strict=True)]
    return found
