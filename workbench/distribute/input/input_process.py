"""The program of an input process, which reads a host's pipelines so that their functions take no replica's time.

Its worker sends the pipelines, and for each iterator one end of a socket, on which a thread answers. All data is in
shared memory; only descriptors are sent. The process ends with its worker, because the sockets then end. Nothing else
imports this module's `serve`; `remote_reader` is the worker's side.
"""

from __future__ import annotations

import io
import os
import pickle
import socket
import sys
import threading
from pathlib import Path
from typing import Any, Final, NamedTuple

from workbench.data.sharding.distributed import HostPipeline
from workbench.debugging import numerics
from workbench.distribute.input.read_step import SharedStep, in_memory, read_memory, share
from workbench.distribute.input.reader import Chunk, Reader
from workbench.runtime.comm.failure_report import report

MESSAGE_BYTES: Final = 64 << 10
"""Limit for messages; data that may be large is sent as a descriptor."""
MAX_DESCRIPTORS: Final = 64
LINE_CHARACTERS: Final = 10_000
"""Limit for printed text in one message."""
_NAME: Final = "workbench-input"  # a process name on this machine has at most fifteen characters


class Surroundings(NamedTuple):
    """The parts of the worker's environment that user functions also find here.

    Attributes:
      environment: Environment variables.
      path: Search path for modules.
      folder: The current folder.
    """

    environment: dict[str, str]
    path: list[str]
    folder: str


class Open(NamedTuple):
    """Requests a reader. Its end of a socket and the memory of all hosts' pipelines travel with it.

    Attributes:
      dataset: Id of the input source.
      host: The pipeline's host.
      epoch: Number of the epoch.
      replicas: Positions of the host's replicas.
      ranks: Numbers of these replicas.
      pipelines: Start of the index and size of that memory.
    """

    dataset: str
    host: int
    epoch: int
    replicas: tuple[int, ...]
    ranks: tuple[int, ...]
    pipelines: tuple[int, int] = (0, 0)


class Forget(NamedTuple):
    """Drops a dataset that is no longer needed.

    Attributes:
      dataset: Id of the input source.
    """

    dataset: str


class Ask(NamedTuple):
    """Requests steps from a reader; see `Reader.steps`.

    Attributes:
      first: Number of the first step.
      steps: Number of steps.
      keep: Number of the first step that may be requested again.
      checked: Whether numbers in elements must be finite.
    """

    first: int
    steps: int
    keep: int
    checked: bool


class Answer(NamedTuple):
    """A reader's answer. The memory of each step, and of the pickled `FailureReport` if there is one, travel with it.

    Attributes:
      steps: For each step, start of the index and size of its `SharedStep`.
      failed: Whether there is a failure.
      cost: See `Reader.cost`.
    """

    steps: tuple[tuple[int, int], ...]
    failed: bool
    cost: bytes


class Printed(NamedTuple):
    """Text that a user function has printed.

    Attributes:
      stream: "stdout" or "stderr".
      text: A line with its end, or a part of one.
    """

    stream: str
    text: str


def send(line: socket.socket, message: Any, descriptors: list[int]) -> None:
    """Sends a message with descriptors.

    Args:
      line: The control socket.
      message: A picklable object.
      descriptors: Open descriptors; the receiver gets copies of them.
    """
    socket.send_fds(line, [pickle.dumps(message, protocol=5)], descriptors)


def receive(line: socket.socket) -> tuple[Any, list[int]]:
    """Waits for the next message and its descriptors, or for the end of the other process.

    Raises:
      EOFError: if the other end is closed.
    """
    try:
        data, descriptors, _, _ = socket.recv_fds(line, MESSAGE_BYTES, MAX_DESCRIPTORS)
    except ConnectionError:
        data, descriptors = b"", []
    if not data:
        raise EOFError("the other end of a line is closed")
    return pickle.loads(data), descriptors


def serve(descriptor: int) -> None:
    """Reads for the worker at the other end of the socket `descriptor`, until that is closed."""
    Path("/proc/self/comm").write_text(_NAME)
    control = socket.socket(fileno=descriptor)
    try:
        _settle(control)
        plans: dict[str, tuple[HostPipeline, ...]] = {}
        while True:
            message, descriptors = receive(control)
            if isinstance(message, Forget):
                plans.pop(message.dataset, None)
                continue
            line, pipelines = (
                socket.socket(fileno=descriptors[0]),
                SharedStep(descriptors[1], *message.pipelines),
            )
            threading.Thread(
                target=_answer, args=(line, message, pipelines, plans), name="workbench-reader", daemon=True
            ).start()
    except EOFError:
        os._exit(0)  # whatever user functions are doing


def _settle(control: socket.socket) -> None:
    _, (descriptor,) = receive(control)
    there: Surroundings = pickle.loads(read_memory(descriptor))
    os.close(descriptor)
    os.environ.clear()
    # Pipelines run on the CPU; JAX would otherwise claim the worker's accelerator for this process.
    os.environ.update(there.environment | {"JAX_PLATFORMS": "cpu"})
    sys.path[:] = there.path
    os.chdir(there.folder)
    for stream in ("stdout", "stderr"):
        setattr(sys, stream, _Sent(control, stream))


def _answer(
    line: socket.socket, asked: Open, pipelines: SharedStep, plans: dict[str, tuple[HostPipeline, ...]]
) -> None:
    """Answers the requests of one reader, on a separate thread."""
    with line:
        reader: Reader | None = None
        try:
            while True:
                ask, _ = receive(line)
                numerics.follow(ask.checked)
                try:
                    reader = reader or _opened(asked, pipelines, plans)
                except Exception as error:  # any error of the user's code
                    _send_chunk(line, ([], report(-1, error)), b"")
                    continue
                chunk = reader.steps(ask.first, ask.steps, keep=ask.keep)
                _send_chunk(line, chunk, reader.cost())
        except (EOFError, BrokenPipeError):  # the iterator is gone
            if reader is not None:
                reader.close()


def _opened(asked: Open, pipelines: SharedStep, plans: dict[str, tuple[HostPipeline, ...]]) -> Reader:
    known = plans.get(asked.dataset) or plans.setdefault(asked.dataset, pipelines.mapped())
    return Reader(
        known[asked.host], asked.epoch, asked.replicas, ranks=asked.ranks, keep_as=share, ahead=True
    )


def _send_chunk(line: socket.socket, chunk: Chunk, cost: bytes) -> None:
    sys.stdout.flush()
    steps, failure = chunk
    shared = [step for step in steps if isinstance(step, SharedStep)]
    failed = [] if failure is None else [in_memory(pickle.dumps(failure, protocol=5))]
    try:
        answer = Answer(tuple((step.index, step.nbytes) for step in shared), bool(failed), cost)
        send(line, answer, [*(step.descriptor for step in shared), *failed])
    finally:
        for each in failed:
            os.close(each)


class _Sent(io.TextIOBase):
    """Replaces sys.stdout or sys.stderr: the worker prints the text as its replica's output.

    It sends whole lines, because several threads may print at once.
    """

    def __init__(self, control: socket.socket, stream: str) -> None:
        super().__init__()
        self._control = control
        self._stream = stream
        self._thread = threading.local()

    def write(self, text: str) -> int:
        """As `io.TextIOBase.write`; waits while the worker has much left to read."""
        lines, end, rest = (self._pending() + text).rpartition("\n")
        if len(rest) > LINE_CHARACTERS:
            lines, end, rest = lines + end + rest, "", ""
        self._thread.pending = rest
        self._send(lines + end)
        return len(text)

    def flush(self) -> None:
        """Sends the unfinished last line of this thread."""
        rest, self._thread.pending = self._pending(), ""
        self._send(rest)

    def _pending(self) -> str:
        return getattr(self._thread, "pending", "")

    def _send(self, text: str) -> None:
        for start in range(0, len(text), LINE_CHARACTERS):
            try:
                send(self._control, Printed(self._stream, text[start : start + LINE_CHARACTERS]), [])
            except OSError:  # the worker has ended, as will this process
                return

    def writable(self) -> bool:
        """As `io.IOBase.writable`."""
        return True
