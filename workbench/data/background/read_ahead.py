"""A thread that reads ahead: runs wait in a queue that is bounded in elements and in bytes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from workbench.data.background.held import held_bytes
from workbench.data.background.threads import CHECK_SECONDS, Signal, Threads
from workbench.data.blocks.table import one_by_one
from workbench.data.failing import guarded
from workbench.data.meter import UNMEASURED, StageMeter, Unmeasured
from workbench.data.tables import Failed, ListTable, Run

_FIRST_ELEMENTS: Final = 2
_MOST_ELEMENTS: Final = 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may wait to be read. One run may always wait, however large it is.

    Attributes:
      bytes: Bytes of arrays and texts.
      elements: Number of elements, or None for as many as prove useful.
    """

    bytes: int
    elements: int | None = None


class ReadAhead:
    """Reads runs on its own thread, and yields them in their order."""

    def __init__(
        self,
        open_runs: Callable[[], Iterator[Run]],
        limits: Limits,
        *,
        name: str,
        provenance: bool = False,
        meter: StageMeter | Unmeasured = UNMEASURED,
        signal: Signal | None = None,
        gate: threading.Semaphore | None = None,
    ) -> None:
        """The thread starts with `start`, or with the first request.

        An interrupt may come while it starts, so the owner of this object must already be prepared to close it.

        Args:
          open_runs: Called on the thread; returns the runs to read.
          limits: How far it may be ahead.
          name: The name of the thread.
          provenance: Whether ids of source elements are kept.
          meter: The meter of the stage that reads ahead.
          signal: Shared by several of them, for a reader that waits for any of them.
          gate: Held while the next run is made, to limit how many work at a time.
        """
        self.threads = Threads(signal)
        self._lock, self._changed = self.threads.lock, self.threads.changed
        self._most_bytes = limits.bytes
        self._grows = limits.elements is None
        self._most = _FIRST_ELEMENTS if limits.elements is None else limits.elements
        self._gate = gate
        self._provenance = provenance
        self._meter = meter
        self._ready: deque[tuple[Run, int]] = deque()
        self._elements = self._bytes = 0
        self._full = self._was_full = False
        self._ended = False
        self._fatal: BaseException | None = None
        self._open_runs: Callable[[], Iterator[Run]] | None = open_runs
        self._name = name

    def __iter__(self) -> ReadAhead:
        return self

    def start(self) -> None:
        """Starts reading, if it has not started yet."""
        if self._open_runs is not None:
            open_runs, self._open_runs = self._open_runs, None
            self.threads.start(self._read, open_runs, name=self._name)

    def __next__(self) -> Run:
        self.start()
        with self._lock:
            if not self._ready and not self.ended:
                self._grow()
                with self._meter.waiting():
                    while not self._ready and not self.ended:
                        self._changed.wait(CHECK_SECONDS)
            if self._ready:
                return self._taken()
        if self.threads.forked and not self._ended:
            self._ended = True
            return self.threads.failed_by_fork()
        if self._fatal is not None:
            fatal, self._fatal = self._fatal, None
            raise fatal
        raise StopIteration

    @property
    def ready(self) -> bool:
        """Whether the next run, or the end, is available without waiting; the lock is held."""
        return bool(self._ready) or self.ended

    @property
    def ended(self) -> bool:
        """Whether no further run will enter the queue; the lock is held."""
        return self._ended or self.threads.closed

    def is_over(self) -> bool:
        """Whether everything was taken, so that there is nothing to close."""
        with self._lock:
            return self._ended and not self._ready

    def close(self) -> None:
        """Ends the thread; see `Threads.close`."""
        self.threads.close()

    def _grow(self) -> None:
        # The reader waits although the queue was full: it reads in bursts, and needs a longer queue.
        if self._grows and self._was_full:
            self._most, self._was_full = min(2 * self._most, _MOST_ELEMENTS), False

    def _taken(self) -> Run:
        run, size = self._ready.popleft()
        self._elements -= len(run) or 1
        self._bytes -= size
        self._tell()
        # Not after each run, because every wake-up costs both threads time.
        room = 2 * self._elements <= self._most and 2 * self._bytes <= self._most_bytes
        if self._full and (room or not self._ready):
            self._full = False
            self._changed.notify_all()
        return run

    def _read(self, open_runs: Callable[[], Iterator[Run]]) -> None:
        try:
            runs = guarded(one_by_one(open_runs(), self._provenance))
            while self._read_one(runs):
                pass
            # On this thread, because it closes files and the threads of earlier stages.
            del runs
        except BaseException as error:  # such as a SystemExit from a user's function; the reader raises it
            self._fatal = error
        finally:
            with self._lock:
                self._ended = True
                self._changed.notify_all()

    def _read_one(self, runs: Iterator[Run]) -> bool:
        """Reads the next run; False if there is none, or the reader is gone.

        The thread keeps no reference to the run.
        """
        run = self._next(runs)
        return run is not None and self._put(run)

    def _next(self, runs: Iterator[Run]) -> Run | None:
        if self._gate is None:
            return self._gathered(next(runs, None))
        while not self._gate.acquire(timeout=CHECK_SECONDS):
            if self.threads.closed:
                return None
        try:
            return None if self.threads.closed else self._gathered(next(runs, None))
        finally:
            self._gate.release()

    def _gathered(self, run: Run | None) -> Run | None:
        """Makes the element of a run that has only one, because that is this thread's work.

        Runs of many rows stay as they are: the order of a later shuffle, for example, must not depend on reading ahead.
        """
        if run is None or len(run.rows) != 1 or run.table.at_rest:
            return run
        (row,) = run.indices()
        try:
            ids = [run.table.ids(range(row, row + 1))] if self._provenance else None
            leaves = run.table.row(row)
        except Exception as error:
            return Failed(error)
        return Run(ListTable([leaves], run.table.structure, ids), range(1))

    def _put(self, run: Run) -> bool:
        """Puts a run into the queue once there is room; False if the reader is gone."""
        count, size = len(run) or 1, held_bytes(run)
        with self._lock:
            if not self._has_room(count, size):
                with self._meter.blocked():
                    while not self._has_room(count, size):
                        self._full = self._was_full = True
                        self._changed.wait(CHECK_SECONDS)
            if self.threads.closed:
                return False
            self._ready.append((run, size))
            self._elements += count
            self._bytes += size
            self._tell()
            self._changed.notify_all()
        return True

    def _has_room(self, count: int, size: int) -> bool:
        if not self._ready or self.threads.closed:
            return True
        return self._elements + count <= self._most and self._bytes + size <= self._most_bytes

    def _tell(self) -> None:
        self._meter.queue(self._elements, self._most, chosen=self._grows, held_bytes=self._bytes)
