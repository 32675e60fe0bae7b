"""Sends a host's messages to the driver, with the completions of quick pipelined steps together.

Every message wakes the driver, which on a busy machine takes the core from the sending replica. While more steps are
queued, completions of steps that take microseconds are delayed for a moment.
"""

from __future__ import annotations

import contextlib
import threading
import time

from workbench.runtime.comm.links import Link, LinkClosed
from workbench.runtime.comm.messages import Message

# Half of the steps that may be in progress. The driver waits for that many, and so wakes once per worker.
_MOST = 16
_LONGEST_NS = 400_000


class Completions:
    """The sending end of a host's steps link; sends in order, from any thread.

    The reading thread notices if the driver is gone.

    Attributes:
      more_queued: Whether the replica's thread has further steps. Only for that thread.
    """

    def __init__(self, link: Link) -> None:
        self.more_queued = False
        self._link = link
        self._held: list[Message] = []
        self._since_ns = 0
        self._lock = threading.Lock()

    def complete(self, message: Message) -> None:
        """Reports a step; soon, but not necessarily at once."""
        if not self.more_queued and not self._held:
            self.send(message)
            return
        now = time.monotonic_ns()
        with self._lock:
            if not self._held:
                self._since_ns = now
            self._held.append(message)
            if self.more_queued and len(self._held) < _MOST and now - self._since_ns < _LONGEST_NS:
                return
            self._send_held()

    def send(self, message: Message) -> None:
        """Sends now, after all delayed messages."""
        if self._held:
            with self._lock:
                self._held.append(message)
                self._send_held()
        else:
            with contextlib.suppress(LinkClosed):
                self._link.send(message)

    def send_all(self, messages: list[Message]) -> None:
        """As `send`; the driver wakes once for all of them."""
        with self._lock:
            self._held += messages
            self._send_held()

    def flush(self) -> None:
        """Sends all delayed messages."""
        if self._held:
            with self._lock:
                self._send_held()

    def _send_held(self) -> None:
        if self._held:
            with contextlib.suppress(LinkClosed):
                self._link.send_all(self._held)
            # Last, because a thread that finds nothing delayed sends without the lock, and would overtake this one.
            self._held = []
