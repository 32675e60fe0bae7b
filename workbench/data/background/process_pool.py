"""Processes that call a function, once per element, and return the results in order.

Each has two calls, so that it starts the second one before the first answer is fetched. The reader itself sends calls
and fetches answers: a thread for each process would be woken twice per element, and only one of them could run Python
code at a time.
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Iterator
from typing import Final

from workbench.data.background.arrivals import Arrival
from workbench.data.background.call_process import CallProcess, Returned
from workbench.data.background.held import held_bytes
from workbench.data.background.threads import CHECK_SECONDS, Threads
from workbench.data.meter import StageMeter, Unmeasured
from workbench.data.structure import Array
from workbench.data.tables import Failed, Run, Task, single
from workbench.errors import CancelledError

_SENT: Final = 2  # calls that a process may have: one in progress and the next
_AHEAD: Final = 4  # tasks per process: its calls, and as many results waiting for an earlier one


class _Call:
    __slots__ = ("held_bytes", "ids", "result", "task")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.ids: Array | None = None
        self.result: Run | None = task if isinstance(task, Failed) else None
        self.held_bytes = 0


class _Member:
    """A process, and the calls that it has not answered, oldest first."""

    __slots__ = ("process", "unanswered")

    def __init__(self, process: CallProcess) -> None:
        self.process = process
        self.unanswered: deque[_Call] = deque()


class ProcessPool:
    """Calls in `count` processes."""

    def __init__(
        self,
        function: bytes,
        what: str,
        count: int,
        *,
        arrival: Arrival | None,
        most_bytes: int,
        meter: StageMeter | Unmeasured,
    ) -> None:
        """The processes start with the first tasks, and end with the iterator.

        Args:
          function: The pickled function, which takes components, structure and number of an element and returns
            components and structure.
          what: The stage, for errors.
          count: How many processes.
          arrival: Notes the order in which results come, as soon as they are ready; None for that of the tasks.
          most_bytes: How many bytes of results may wait; above that, no further call is sent.
          meter: The meter of the stage.
        """
        self._members = [_Member(CallProcess(function, what)) for _ in range(count)]
        self._what = what
        self._arrival = arrival
        self._most_bytes = most_bytes
        self._held_bytes = 0
        self._meter = meter
        self._waiting: deque[_Call] = deque()
        self._todo: deque[_Call] = deque()
        # There are no threads, but the processes end in the same way, with the thread that created this.
        self._threads = Threads()
        self._threads.at_end(self._kill)

    def run(self, tasks: Iterator[Task]) -> Iterator[Run]:
        """The results of all tasks; elements that had failed before keep their places."""
        most = _AHEAD * len(self._members)
        try:
            for task in tasks:
                call = _Call(task)
                self._waiting.append(call)
                if call.result is None:
                    self._todo.append(call)
                while len(self._waiting) >= most:
                    yield self._next()
                self._send()
                if self._threads.closed:
                    return
            while self._waiting:
                yield self._next()
        finally:
            self._close()

    def _next(self) -> Run:
        self._fetch(0)
        if self._done() is None:
            with self._meter.waiting():
                while self._done() is None:
                    self._fetch(CHECK_SECONDS)
        call = self._done()
        assert call is not None
        assert call.result is not None
        place = self._waiting.index(call)
        del self._waiting[place]
        if self._arrival is not None:
            self._arrival.note(place)
        self._held_bytes -= call.held_bytes
        return call.result

    def _done(self) -> _Call | None:
        """A call whose result may be returned now."""
        if self._threads.forked:
            self._waiting[0].result = self._threads.failed_by_fork()
        elif self._threads.closed:
            self._waiting[0].result = Failed(CancelledError(f"{self._what}: the iterator was closed"))
        if self._arrival is None:
            first = self._waiting[0]
            return None if first.result is None else first
        return next((call for call in self._waiting if call.result is not None), None)

    def _send(self) -> None:
        """Sends calls to processes that have room for them, in the order of the tasks."""
        while self._todo and not self._threads.closed:
            # A call that the others wait for is always sent; it returns even if its process ends.
            if self._held_bytes > self._most_bytes and self._todo[0] is not self._waiting[0]:
                return
            member = min(self._members, key=lambda each: len(each.unanswered))
            if len(member.unanswered) >= _SENT:
                return
            call = self._todo.popleft()
            assert not isinstance(call.task, Failed)
            index, (leaves, structure, call.ids) = call.task
            try:
                member.process.call(leaves, structure, index)
            except Exception as error:
                call.result = Failed(error)
            else:
                member.unanswered.append(call)
        if self._threads.closed:  # possibly just before the process was there to kill
            self._kill()

    def _fetch(self, seconds: float) -> None:
        """Waits for an answer for up to `seconds`, receives all that have arrived, then sends further calls."""
        poll = select.poll()
        members = {}
        for member in self._members:
            if member.unanswered:
                members[member.process.fileno()] = member
                poll.register(member.process, select.POLLIN | select.POLLOUT * member.process.has_unwritten)
        for descriptor, events in poll.poll(1e3 * seconds):
            if events & select.POLLOUT:
                members[descriptor].process.write()
            if events != select.POLLOUT:
                self._receive(members[descriptor])
        self._send()

    def _receive(self, member: _Member) -> None:
        try:
            answer = member.process.answer()
        except EOFError:
            call = member.unanswered.popleft()
            # Other processes take over this process's later calls, in the order of the tasks.
            undone = {*member.unanswered, *self._todo}
            self._todo = deque(call for call in self._waiting if call in undone)
            member.unanswered.clear()
            call.result = Failed(member.process.ended())
            return
        except Exception as error:
            answer = error
        if answer is None:
            return
        call = member.unanswered.popleft()
        if isinstance(answer, Returned):
            leaves, structure = answer.value
            self._meter.worked(answer.elapsed_ns)
            call.result = single(leaves, structure, call.ids)
            call.held_bytes = held_bytes(call.result)
            self._held_bytes += call.held_bytes
        else:
            call.result = Failed(answer)

    def _kill(self) -> None:
        for member in self._members:
            member.process.kill()

    def _close(self) -> None:
        self._threads.close()
        if self._threads.forked:  # the processes belong to the parent
            return
        for member in self._members:
            member.process.close()
