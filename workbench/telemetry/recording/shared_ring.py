"""A ring for a replica on a GPU: its thread writes, and the thread that notices that the GPU is done."""

from __future__ import annotations

import threading

from workbench.telemetry.recording.ring import Ring
from workbench.telemetry.records import Signature


class SharedRing:
    """A `Ring` with several writers."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._lock = threading.Lock()  # held for a microsecond; a ring's own writing knows one writer only

    def number(self, signature: Signature) -> int:
        """As `Ring.number`; any thread."""
        with self._lock:
            return self._ring.number(signature)

    def write(self, *record: int) -> None:
        """As `Ring.write`; any thread."""
        with self._lock:
            self._ring.write(*record)
