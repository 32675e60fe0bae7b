"""A crew of threads that call a function, once per element, and return the results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from workbench.data.background.arrivals import Arrival
from workbench.data.background.held import held_bytes
from workbench.data.background.threads import CHECK_SECONDS, Signal, Threads
from workbench.data.meter import UNMEASURED, StageMeter, Unmeasured
from workbench.data.tables import Failed, Run
from workbench.errors import CancelledError

Call = Callable[[Any], Run]
"""Makes a run from a task; an error that it raises replaces the element."""
_AHEAD: Final = 2  # tasks per thread that may wait or be in progress: one of each
_MOST_THREADS: Final = 1024


class _Task:
    __slots__ = ("given", "held_bytes", "result")

    def __init__(self, given: Any, result: Run | None = None) -> None:
        self.given = given
        self.result = result
        self.held_bytes = 0


class Crew:
    """Calls on `count` threads."""

    def __init__(
        self,
        call: Call,
        count: int,
        *,
        name: str,
        arrival: Arrival | None,
        most_bytes: int,
        meter: StageMeter | Unmeasured = UNMEASURED,
    ) -> None:
        """Starts no thread yet, so that the owner can close it; a thread starts when a task finds the others busy.

        Args:
          call: Makes the result of a task.
          count: How many threads; 1,024 at most.
          name: The name of the threads.
          arrival: Notes the order in which results come, as soon as they are ready; None for that of the tasks.
          most_bytes: How many bytes of results may wait; above that, threads start no further task.
          meter: The meter of the stage.
        """
        # Two conditions on one lock, so that a result does not wake all threads, and a task does not wake the reader.
        signal = Signal()
        self._lock, self._changed, self._added = signal.lock, signal.changed, signal.condition()
        self.threads = Threads(signal)
        self.threads.at_end(self._wake)
        self._call = call
        self._count = min(count, _MOST_THREADS)
        self._name = name
        self._arrival = arrival
        self._most_bytes = most_bytes
        self._held_bytes = 0
        self._meter = meter
        self._todo: deque[_Task] = deque()
        self._waiting: deque[_Task] = deque()
        self._started = self._busy = 0
        self._fatal: BaseException | None = None

    def run(self, tasks: Iterator[Any]) -> Iterator[Run]:
        """The results of all tasks; elements that had failed before keep their places."""
        most = _AHEAD * self._count
        try:
            for task in tasks:
                self._add(task)
                while len(self._waiting) >= most:
                    yield self._next()
                if self.threads.closed:  # with the thread that this is
                    return
            while self._waiting:
                yield self._next()
        finally:
            self.threads.close()

    def _add(self, given: Any) -> None:
        task = _Task(given, given if isinstance(given, Failed) else None)
        with self._lock:
            self._waiting.append(task)
            if task.result is not None:
                return
            self._todo.append(task)
            self._added.notify()
            is_short = self._started < min(self._count, self._busy + len(self._todo))
        if is_short:
            self._started += 1
            self.threads.start(self._work, name=self._name)

    def _next(self) -> Run:
        with self._lock:
            if self._done() is None:
                with self._meter.waiting():
                    while self._done() is None:
                        self._changed.wait(CHECK_SECONDS)
            task = self._done()
            if self._fatal is not None:
                raise self._fatal
            assert task is not None
            place = self._waiting.index(task)
            del self._waiting[place]
            if self._arrival is not None:
                self._arrival.note(place)
            assert task.result is not None
            if self._held_bytes > self._most_bytes:
                self._added.notify_all()
            self._held_bytes -= task.held_bytes
            return task.result

    def _done(self) -> _Task | None:
        """A task whose result may be returned now."""
        if self._fatal is not None:
            return self._waiting[0]
        if self.threads.forked:
            self._waiting[0].result = self.threads.failed_by_fork()
        elif self.threads.closed:
            self._waiting[0].result = Failed(CancelledError("the iterator was closed"))
        if self._arrival is None:
            first = self._waiting[0]
            return None if first.result is None else first
        return next((task for task in self._waiting if task.result is not None), None)

    def _wake(self) -> None:
        with self._lock:
            self._added.notify_all()

    def _work(self) -> None:
        try:
            while self._do_one():
                pass
        except BaseException as error:  # such as a SystemExit from a user's function; the reader raises it
            with self._lock:
                self._fatal = error
                self._changed.notify_all()

    def _do_one(self) -> bool:
        """Performs the next task; False if the reader is gone.

        The thread must keep no reference to the task: a raised error holds the reader's stack, and so the reader.
        """
        task = self._take()
        if task is None:
            return False
        try:
            with self._meter.working():
                result = self._call(task.given)
        except Exception as error:
            result = Failed(error)
        size = held_bytes(result)
        with self._lock:
            task.result = result
            task.held_bytes = size
            self._busy -= 1
            self._held_bytes += size
            self._changed.notify_all()
        return True

    def _take(self) -> _Task | None:
        with self._lock:
            # Threads start tasks in order. While results are held back, a task that the reader needs first can start.
            while not (self._todo and self._held_bytes <= self._most_bytes) and not self.threads.closed:
                self._added.wait(CHECK_SECONDS)
            if self.threads.closed:
                return None
            self._busy += 1
            return self._todo.popleft()
