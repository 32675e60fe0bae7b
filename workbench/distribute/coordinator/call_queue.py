"""CallQueue: functions that wait for a worker, are with one, or have failed."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from workbench import forks
from workbench.distribute.coordinator.remote_value import RemoteValue
from workbench.distribute.servers.overview import FunctionQueue
from workbench.errors import ClusterClosed, UnavailableError
from workbench.runtime.shipping.function_registry import Prepared

_CHECK_SECONDS: Final = 1.0
# One lock for all queues, because the result of one may be an argument in another, and two locks would be taken in
# different orders.
_lock: Final = forks.lock(threading.RLock())
_MOST_RUNS: Final = 4


@dataclass(slots=True, eq=False)
class Call:
    """A scheduled function.

    Attributes:
      number: Counts from 0.
      function: The function that runs.
      arguments: Pickled (args, kwargs); unpickled while they wait for other results.
      result: Its future result.
      observation: How it is checked and dumped, pickled; b"" if it is not.
      waits_for: How many results its arguments still lack.
      runs: How often it was sent to a worker.
      losses: What happened to the workers or servers with which it was lost.
    """

    number: int
    function: Prepared
    arguments: Any
    result: RemoteValue
    observation: bytes = b""
    waits_for: int = 0
    runs: int = 0
    losses: list[str] = field(default_factory=list)


class CallQueue:
    """Holds calls; any thread may use it.

    The first error that a function raises cancels all waiting calls. The next `schedule`, `join` or `done` raises it,
    once, after the running calls have ended.

    Attributes:
      changed: Held for each change; waits for results use it, too.
    """

    def __init__(self, capacity: int) -> None:
        self.changed = threading.Condition(_lock)
        self._capacity = capacity
        self._waiting: deque[Call] = deque()
        self._blocked: set[Call] = set()
        self._running: set[Call] = set()
        self._error: BaseException | None = None
        self._closed = False
        self._next = 0
        self._ended: set[int] = set()
        self._first_open = 0
        self._down: dict[int, UnavailableError] = {}
        self._counts = {"done": 0, "failed": 0, "cancelled": 0, "run_again": 0}

    def __len__(self) -> int:
        """Number of calls that wait for a worker or for results of others."""
        return len(self._waiting) + len(self._blocked)

    @property
    def running(self) -> int:
        """Number of calls on workers."""
        return len(self._running)

    def now(self) -> FunctionQueue:
        """Its calls, and counts of those that have ended."""
        with self.changed:
            error = self._error
            return FunctionQueue(
                waiting=len(self._waiting),
                blocked=len(self._blocked),
                running=len(self._running),
                capacity=self._capacity,
                error="" if error is None else _in_words(error),
                **self._counts,
            )

    @property
    def scheduled(self) -> int:
        """The number of calls so far, which is the number of the next one."""
        return self._next

    @property
    def first_open(self) -> int:
        """The first call that has not ended."""
        return self._first_open

    # -- for the notebook
    # --------------------------------------------------------------------------------------------

    def next_number(self) -> int:
        """The number of a new call."""
        with self.changed:
            number, self._next = self._next, self._next + 1
            return number

    def put(self, call: Call, needs: Iterable[RemoteValue]) -> None:
        """Adds a call; waits while there are too many.

        Args:
          call: The call; it runs as soon as a worker is free.
          needs: Results for which it waits.

        Raises:
          Exception: the error of an earlier function; the call is not added.
          ClusterClosed: if the coordinator was closed.
        """
        with self.changed:
            try:
                self._raise_pending()
                while len(self) >= self._capacity:
                    self.changed.wait(_CHECK_SECONDS)
                    self._raise_pending()
            except BaseException:
                self._end(call)  # otherwise its number would stay open forever
                raise
            for value in needs:
                call.waits_for += value.then(lambda: self._unblock(call))
            if call.waits_for:
                self._blocked.add(call)
            else:
                self._waiting.append(call)
                self.changed.notify_all()

    def join(self) -> None:
        """Waits until no call is waiting or running.

        Raises:
          Exception: the error of a function.
        """
        with self.changed:
            while True:
                self._raise_pending()
                if not (self._waiting or self._running or self._blocked):
                    return
                self.changed.wait(_CHECK_SECONDS)

    def settle(self, timeout_seconds: float) -> int:
        """Waits until all calls so far have ended; leaves errors for `join`.

        Returns:
          The number of calls that have not ended in time.
        """
        deadline = time.monotonic() + timeout_seconds
        with self.changed:
            count = self._next
            while self._first_open < count and (left := deadline - time.monotonic()) > 0:
                self.changed.wait(min(left, _CHECK_SECONDS))
            return sum(number not in self._ended for number in range(self._first_open, count))

    def done(self) -> bool:
        """Whether no call is waiting or running; raises as `join`."""
        with self.changed:
            self._raise_pending()
            return not (self._waiting or self._running or self._blocked)

    def close(self) -> None:
        """Cancels waiting calls; threads that wait here get `ClusterClosed`."""
        with self.changed:
            self._closed = True
            self._cancel("the coordinator was closed")
            for call in tuple(self._running):
                self._running.discard(call)
                self._give_up(call, "the coordinator was closed")
            self.changed.notify_all()

    # -- for lanes
    # ---------------------------------------------------------------------------------------------------

    def take(self, most: int, lanes: int) -> list[Call]:
        """Takes the next calls to run: at least one, at most a fair share; none if the queue is closed."""
        with self.changed:
            while not self._waiting:
                if self._closed:
                    return []
                self.changed.wait(_CHECK_SECONDS)
            share = min(most, -(-len(self._waiting) // lanes))
            calls = [self._waiting.popleft() for _ in range(share)]
            self._running.update(calls)
            for call in calls:
                call.runs += 1
            return calls

    def ended(
        self, ends: Iterable[tuple[Call, bytes | BaseException]], not_begun: Sequence[Call] = ()
    ) -> None:
        """Records the outcomes of calls: a pickled result, or an error.

        Args:
          ends: Each call with its outcome.
          not_begun: Calls that were sent with one that raised. They wait again, and so are cancelled with the others.
        """
        with self.changed:
            for call in reversed(not_begun):
                if call in self._running:
                    self._running.discard(call)
                    self._waiting.appendleft(call)
            for call, end in ends:
                if call not in self._running:
                    continue  # `close` has cancelled it meanwhile
                self._running.discard(call)
                if isinstance(end, bytes):
                    self._counts["done"] += 1
                    call.result.set(end)
                    self._end(call)
                else:
                    self._fail(call, end)
            self.changed.notify_all()

    def give_back(self, calls: Iterable[Call], why: str) -> None:
        """Puts lost calls back at the front of the queue; up to four times for each call.

        Args:
          calls: Calls on one worker.
          why: What happened to the worker, or to a server that they needed.
        """
        with self.changed:
            for call in reversed(list(calls)):
                if call not in self._running:
                    continue
                self._running.discard(call)
                call.losses.append(why)
                if self._error is not None or self._closed:
                    self._give_up(call, "another function has failed")
                elif call.runs >= _MOST_RUNS:
                    self._fail(call, UnavailableError(_lost_too_often(call)))
                else:
                    self._counts["run_again"] += 1
                    self._waiting.appendleft(call)
            self.changed.notify_all()

    def lane_down(self, lane: int, lanes: int, error: UnavailableError) -> None:
        """Notes that a worker is unavailable; if all are, calls fail.

        Args:
          lane: Number of the worker.
          lanes: Number of workers.
          error: Why the worker is unavailable; the calls fail with it.
        """
        with self.changed:
            self._down[lane] = error
            if len(self._down) == lanes and (self._waiting or self._blocked) and self._error is None:
                self._error = error
                self._cancel(str(error))
            self.changed.notify_all()

    def lane_up(self, lane: int) -> None:
        """Notes that a worker is available again."""
        with self.changed:
            self._down.pop(lane, None)

    # -- with `changed` held
    # -----------------------------------------------------------------------------------------

    def _raise_pending(self) -> None:
        if self._closed:
            raise ClusterClosed("the coordinator was closed: its strategy or cluster has ended")
        if self._error is None:
            return
        while self._running:
            self.changed.wait(_CHECK_SECONDS)
        error, self._error = self._error, None
        if error is not None:  # no other caller has raised it meanwhile
            raise error

    def _fail(self, call: Call, error: BaseException) -> None:
        if self._error is None:
            self._error = error
        self._counts["failed"] += 1
        call.result.fail(error)
        self._end(call)
        self._cancel(f"{call.result.name} has failed before it ({_in_words(error)})")

    def _cancel(self, why: str) -> None:
        waiting, self._waiting = self._waiting, deque()
        blocked, self._blocked = self._blocked, set()
        for call in (*waiting, *blocked):
            self._give_up(call, why)

    def _give_up(self, call: Call, why: str) -> None:
        self._counts["cancelled"] += 1
        call.result.cancel(why)
        self._end(call)

    def _unblock(self, call: Call) -> None:
        call.waits_for -= 1
        if not call.waits_for and call in self._blocked:
            self._blocked.discard(call)
            self._waiting.append(call)
            self.changed.notify_all()  # a value for which it waited may belong to another queue

    def _end(self, call: Call) -> None:
        self._ended.add(call.number)
        while self._first_open in self._ended:
            self._ended.discard(self._first_open)
            self._first_open += 1


def _in_words(error: BaseException) -> str:
    """The type of an error and the first line of its message."""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _lost_too_often(call: Call) -> str:
    told = "; ".join(
        why if count == 1 else f"{why} ({count} times)" for why, count in Counter(call.losses).items()
    )
    return (
        f"{call.result.name} has begun {call.runs} times and never ended: {told}. It is not run again; if nobody has "
        f"ended or restarted these processes, look for what ends them in the function, such as memory or C code"
    )
