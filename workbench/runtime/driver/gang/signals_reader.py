"""The driver's side thread: reads the urgent links of all workers, to notice silent and ended ones."""

from __future__ import annotations

import contextlib
import select
import threading
import time
from collections.abc import Sequence
from typing import Any

from workbench.runtime.comm.links import LinkClosed, Wakeup
from workbench.runtime.comm.messages import BEAT, CLOCK, LEAVING, PING, PONG, REPLY
from workbench.runtime.deploy.worker_link import EndKind, WorkerEnd, WorkerLink
from workbench.runtime.driver.gang.gang import Gang
from workbench.runtime.driver.gang.silence import is_silent, whereabouts
from workbench.telemetry.clocks import OffsetEstimator, Ping

_POLL_SECONDS = 1.0
_PING_SECONDS = 5.0
# If a round of this thread takes longer, this process was stopped, or was in C code that held the GIL.
_PAUSED_SECONDS = 3.0


class WatchThread(threading.Thread):
    """Records the heartbeats of a gang, and wakes it when a worker's link ends."""

    def __init__(self, gang: Gang[Any]) -> None:
        super().__init__(name="workbench-watch", daemon=True)
        self._gang = gang
        self._ended = threading.Event()
        self._wakeup = Wakeup()
        self._clocks: dict[str, OffsetEstimator] = {}
        self._next_ping = 0.0
        self._last_round = time.monotonic()

    def run(self) -> None:
        """Runs until `close`."""
        while not self._ended.is_set():
            poll = select.poll()
            poll.register(self._wakeup.fileno(), select.POLLIN)
            workers: dict[int, WorkerLink] = {}
            for worker in list(self._gang.workers.values()):
                if not worker.lost and not worker.silenced:
                    with contextlib.suppress(OSError, ValueError):  # the other thread has just closed it
                        descriptor = worker.signals.fileno()
                        poll.register(descriptor, select.POLLIN)
                        workers[descriptor] = worker
            for descriptor, _ in poll.poll(_POLL_SECONDS * 1000):
                if descriptor in workers:
                    self._read(workers[descriptor])
            self._examine()
            self._ping()
            self._gang.tidy()
            for group in list(self._gang.groups.values()):
                group.look_for_returned()

    def _examine(self) -> None:
        """Gives up silent workers, unless this process was unable to listen."""
        now = time.monotonic()
        workers = self._gang.living()
        if now - self._last_round > _PAUSED_SECONDS:
            for worker in workers:
                worker.last_beat = now
        self._last_round = now
        for worker in workers:
            self._gang.examine(worker)
        self._locate([worker for worker in workers if is_silent(worker)])

    def _locate(self, silent: Sequence[WorkerLink]) -> None:
        """Finds out where silent workers are if others wait for them; one per round, because it takes half a second."""
        unknown = [worker for worker in silent if not worker.standing]
        for worker in unknown[:1]:
            worker.standing = whereabouts(worker)
        for worker in silent:
            if worker.standing:
                self._gang.heard(worker)

    def _ping(self) -> None:
        """From time to time asks workers on other machines for their clock, except workers that read nothing."""
        now = time.monotonic()
        if now < self._next_ping:
            return
        self._next_ping = now + _PING_SECONDS
        for worker in self._gang.living():
            if not worker.local and not is_silent(worker):
                with contextlib.suppress(LinkClosed):
                    worker.signals.send((PING, time.monotonic_ns()))

    def _set_clock(self, worker: WorkerLink, ping: Ping) -> None:
        offset = self._clocks.setdefault(worker.host, OffsetEstimator()).add(ping)
        with contextlib.suppress(LinkClosed):
            worker.signals.send((CLOCK, offset.offset_ns, offset.err_ns))

    def _read(self, worker: WorkerLink) -> None:
        try:
            messages = worker.signals.receive()
        except LinkClosed:
            worker.silenced = True
            self._gang.urgent.ended(worker)
            self._gang.suspect(worker)
            return
        for message in messages:
            if message[0] == BEAT:
                worker.statuses, worker.beside = message[1:3]
                worker.last_beat = time.monotonic()
                worker.standing = ""
                self._gang.beaten(worker)
            elif message[0] == LEAVING:
                worker.doomed = worker.doomed or WorkerEnd(EndKind.LEFT, *message[1:])
            elif message[0] == PONG:
                _, sent_ns, received_ns, answered_ns = message
                self._set_clock(worker, Ping(sent_ns, received_ns, answered_ns, time.monotonic_ns()))
            elif message[0] == REPLY:
                self._gang.urgent.settled(message[1], message[2], message[3])

    def close(self) -> None:
        """Ends the thread."""
        self._ended.set()
        self._wakeup.set()
        if threading.current_thread() is not self:
            self.join(5.0)
        self._wakeup.close()
