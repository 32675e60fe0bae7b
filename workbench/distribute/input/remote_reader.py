"""RemoteReader: a worker's side of its input process, which starts when needed, and restarts when killed."""

from __future__ import annotations

import os
import pickle
import select
import socket
import sys
import threading
from collections.abc import Sequence
from typing import Final

from workbench import forks
from workbench.debugging import numerics
from workbench.distribute.input.input_process import (
    Answer,
    Ask,
    Forget,
    Open,
    Surroundings,
    receive,
    send,
    serve,
)
from workbench.distribute.input.plan import PickledPlan
from workbench.distribute.input.read_step import SharedStep, in_memory, read_memory, share_pickled
from workbench.distribute.input.reader import Chunk
from workbench.errors import CancelledError, UnavailableError
from workbench.runtime.comm.failure_report import FailureReport
from workbench.runtime.process import beside
from workbench.runtime.process.beside import BesideStatus
from workbench.runtime.process.process_state import process_state
from workbench.runtime.process.side_process import SideProcess

_CHECK_SECONDS: Final = 0.5
_STOPPED_CHECKS: Final = 20
"""How often the process may be found stopped during a request, over ten seconds, before it counts as lost."""
_ENDING_SECONDS: Final = 1.0  # how long to wait for the exit code after the socket has ended
_ATTEMPTS: Final = 4
"""How often to repeat a request during which the process ends; a user function may be ending it."""


class InputProcess:
    """The process that reads for replicas of this worker, and of the other workers of its host. Any thread."""

    def __init__(self) -> None:
        self._lock = forks.lock(threading.Lock())
        self._process: SideProcess | None = None
        self._starts = self._given_bytes = 0
        self._replicas: frozenset[int] = frozenset()
        forks.tell(self)
        beside.add(self)

    def disown(self) -> None:
        """See `forks.tell`."""
        self._process = None

    @property
    def pid(self) -> int:
        """The pid of the process; 0 if there is none."""
        process = self._process
        return 0 if process is None else process.pid

    def status(self) -> BesideStatus | None:
        """See `runtime.process.beside`. Does not take the lock, which is held while a process starts."""
        pid = self.pid
        if not pid:
            return None
        state, replicas = process_state(pid), tuple(sorted(self._replicas))
        return BesideStatus("input", pid, state, self._starts, replicas, self._given_bytes)

    def feed(self, ranks: Sequence[int]) -> None:
        """Adds replicas for which it reads."""
        with self._lock:
            self._replicas |= frozenset(ranks)

    def start(self) -> SideProcess:
        """Returns the process; starts it if necessary."""
        with self._lock:
            if self._process is None:
                process = SideProcess(f"{serve.__module__}:{serve.__name__}")
                around = Surroundings(dict(os.environ), list(sys.path), os.getcwd())
                _send_memory(process.line, pickle.dumps(around, protocol=5))
                self._process = process
                self._starts += 1
            return self._process

    def open(self, process: SideProcess, request: Open, pipelines: SharedStep) -> socket.socket:
        """Opens a connection to a new reader in `process`.

        Args:
          process: The result of `start`.
          request: The request for the reader.
          pipelines: The pipelines of all hosts.

        Raises:
          OSError: if the process has ended.
        """
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with its:
                place = pipelines.index, pipelines.nbytes
                send(process.line, request._replace(pipelines=place), [its.fileno(), pipelines.descriptor])
        except BaseException:
            mine.close()
            raise
        return forks.descriptor(mine)

    def forget(self, dataset: str) -> None:
        """Drops a dataset that is no longer needed."""
        with self._lock:
            if self._process is not None:
                try:
                    send(self._process.line, Forget(dataset), [])
                except OSError:
                    pass  # the process has ended, so a new one knows no datasets

    def ended(self, process: SideProcess) -> str:
        """Notes that a process has ended, so that the next `start` starts another; returns how it ended, if known."""
        with self._lock:
            if self._process is not process:  # another thread has noted it
                return ""
            self._process = None
            how = process.ending(_ENDING_SECONDS)
            process.close()
            return how

    def give(self, nbytes: int) -> None:
        """Counts bytes that replicas have received."""
        with self._lock:
            self._given_bytes += nbytes

    def show_prints(self, process: SideProcess) -> None:
        """Writes the output of user functions there as that of the replica on this thread."""
        while True:
            with self._lock:
                if self._process is not process or not _ready(0, process.line.fileno()):
                    return
                try:
                    printed, _ = receive(process.line)
                except EOFError:
                    return
            getattr(sys, printed.stream).write(printed.text)

    def close(self) -> None:
        """Ends the process; it restarts when needed."""
        with self._lock:
            process, self._process = self._process, None
            self._starts = self._given_bytes = 0
            self._replicas = frozenset()
        if process is not None:
            process.close()


class RemotePipelines:
    """The pipelines of a plan in the input process, which gets them through shared memory."""

    def __init__(self, process: InputProcess, pipelines: PickledPlan | SharedStep) -> None:
        """If `pipelines` is a pickled plan, the shared memory is written at the first request."""
        self._inputs = process
        self._pipelines: PickledPlan | SharedStep | None = pipelines

    def reader(self, request: Open, ranks: Sequence[int]) -> RemoteReader:
        """Makes a reader for an iterator.

        Args:
          request: The request for the reader.
          ranks: The replicas that get them.
        """
        self._inputs.feed(ranks)
        pipelines = self._pipelines
        assert pipelines is not None
        if isinstance(pipelines, PickledPlan):
            pipelines = self._pipelines = share_pickled(pipelines.pipelines, pipelines.arrays)
        return RemoteReader(self._inputs, request, pipelines)

    def close(self) -> None:
        """Releases the pipelines, which are no longer needed."""
        self._pipelines = None


class RemoteReader:
    """A `Reader` in the input process. A killed process costs no step, because the next one reads the epoch again."""

    def __init__(self, process: InputProcess, request: Open, pipelines: SharedStep) -> None:
        """Does not start the process before the first request.

        Args:
          process: The input process.
          request: The request for the reader.
          pipelines: The pipelines of all hosts.
        """
        self._inputs = process
        self._request = request
        self._pipelines = pipelines
        self._asking = threading.Lock()
        self._place: tuple[SideProcess, socket.socket] | None = None
        self._last: tuple[Ask | None, Chunk] = (None, ([], None))
        self._cost = b""
        self._closed = False

    def cost(self) -> bytes:
        """See `Reader.cost`."""
        # Without the lock, which another waiting replica may hold. At worst, two report the same cost.
        cost, self._cost = self._cost, b""
        return cost

    def steps(self, first: int, count: int, *, keep: int) -> Chunk:
        """See `Reader.steps`.

        Raises:
          UnavailableError: if the process ends at each attempt.
        """
        asked = Ask(first, count, keep, numerics.is_enabled())
        with self._asking:
            # The host's other replicas in this process request the same steps.
            if self._last[0] is None or self._last[0][:2] != asked[:2]:
                self._last = asked, self._come(asked)
            return self._last[1]

    def close(self) -> None:
        """Ends the reader. Any thread, even while another one waits."""
        self._closed = True
        place = self._place
        if place is not None:
            try:
                place[1].shutdown(socket.SHUT_RDWR)  # wakes the waiting thread
            except OSError:
                pass  # the peer has closed its end
        if self._asking.acquire(blocking=False):
            try:
                self._leave()
            finally:
                self._asking.release()

    def _leave(self) -> None:
        place, self._place = self._place, None
        if place is not None:
            place[1].close()

    def _come(self, asked: Ask) -> Chunk:
        how = ""
        for _ in range(_ATTEMPTS):
            if self._closed:
                break
            process = self._place[0] if self._place is not None else self._inputs.start()
            try:
                if self._place is None:
                    self._place = process, self._inputs.open(process, self._request, self._pipelines)
                line = self._place[1]
                send(line, asked, [])
                return self._received(process, line)
            except (EOFError, OSError):
                self._leave()
                if not self._closed:
                    how = self._inputs.ended(process) or how
            # After an interrupt, the answer to this request must not be taken for another one's.
            except BaseException:
                self._leave()
                raise
        if self._closed:
            self._leave()
            raise CancelledError(
                "the iterator of a distributed dataset was closed while a replica waited for it"
            )
        raise UnavailableError(
            f"the input process of this host has ended {_ATTEMPTS} times while it read step {asked.first}"
            f"{how and f', {how}'}; a function of the dataset may be what ends it: with "
            f"InputOptions(input_process=False) it runs in the replica's own process"
        )

    def _received(self, process: SideProcess, line: socket.socket) -> Chunk:
        """Waits for the answer, and meanwhile shows printed output.

        Raises:
          EOFError: if the process has ended, or was stopped for too long.
        """
        stopped = 0
        while True:
            ready = _ready(_CHECK_SECONDS, line.fileno(), process.line.fileno())
            self._inputs.show_prints(process)
            if line.fileno() in ready:
                answer, descriptors = receive(line)
                self._cost = answer.cost or self._cost
                self._inputs.give(sum(nbytes for _, nbytes in answer.steps))
                return _chunk(answer, descriptors)
            stopped = stopped + 1 if not ready and process.is_stopped else 0
            if stopped == _STOPPED_CHECKS:
                process.kill()
                raise EOFError("the process was stopped for too long")


def _chunk(answer: Answer, descriptors: Sequence[int]) -> Chunk:
    steps = [
        SharedStep(descriptor, *place) for descriptor, place in zip(descriptors, answer.steps, strict=False)
    ]
    failure: FailureReport | None = None
    if answer.failed:
        failure = pickle.loads(read_memory(descriptors[-1]))
        os.close(descriptors[-1])
    return list(steps), failure


def _send_memory(line: socket.socket, data: bytes) -> None:
    descriptor = in_memory(data)
    try:
        send(line, None, [descriptor])
    finally:
        os.close(descriptor)


def _ready(seconds: float, *descriptors: int) -> set[int]:
    """The descriptors that are readable or closed; waits up to `seconds` for the first."""
    poll = select.poll()
    for each in descriptors:
        if each >= 0:
            poll.register(each, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(1000 * seconds)}
