"""A process that calls a function, for functions that hold the interpreter's lock.

It is a Python of its own, connected by a socket pair: no fork, no import of the caller's main module, and allowed
within processes of Dask and multiprocessing. Arrays travel as they lie in memory, beside what is pickled.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

import cloudpickle

from workbench import forks
from workbench.data.background.threads import Threads
from workbench.errors import CancelledError, UnavailableError
from workbench.runtime.comm.failure_report import FailureReport

_HEAD: Final = struct.Struct("<IQ")
_SMALL_BYTES: Final = 1 << 16
RETURNED: Final = "returned"
RAISED: Final = "raised"
PRINTED: Final = "printed"
"""Kinds of what such a process sends: an answer to a call, or text that comes before one."""
_END_SECONDS: Final = 10.0  # a process that was killed is gone much sooner
_PROGRAM: Final = """
import json, signal, socket, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sock = socket.socket(fileno={descriptor})
sys.path[:] = json.loads(sys.argv[1])
from workbench.data.background.call_server import serve
serve(sock)
"""


class CallProcess:
    """Calls one function in a process of its own, which ends with this object, or with this process."""

    def __init__(self, function: bytes, what: str, threads: Threads) -> None:
        """Starts no process yet.

        Args:
          function: What is called, pickled; see `portable`.
          what: The stage, for errors.
          threads: Whose end is the end of the process.
        """
        self._function = function
        self._what = what
        self._threads = threads
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        threads.at_end(self._kill)

    def __call__(self, *arguments: Any) -> Any:
        """What the function returns.

        Raises:
          Exception: What it raises, with its traceback as a note.
          UnavailableError: If the process ends meanwhile; the next call starts another one.
        """
        try:
            if self._socket is None:
                self._start()
            assert self._socket is not None
            send(self._socket, arguments)
            while (answer := receive(self._socket))[0] == PRINTED:
                _print(*answer[1])
        except (OSError, EOFError) as error:
            raise self._ended() from error
        kind, value = answer
        if kind == RETURNED:
            return value
        raise _rebuilt(value)

    def close(self) -> None:
        """Ends the process."""
        self._kill()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.wait(_END_SECONDS)
            self._process = None

    def _start(self) -> None:
        mine, its = socket.socketpair()
        with its:
            program = _PROGRAM.format(descriptor=its.fileno())
            path = json.dumps([entry or os.getcwd() for entry in sys.path])
            self._socket = forks.descriptor(mine)
            self._process = subprocess.Popen(
                [sys.executable, "-c", program, path], pass_fds=[its.fileno()], stdin=subprocess.DEVNULL
            )
        if self._threads.closed:  # just before there was anything to kill
            self._kill()
        send(mine, self._function)

    def _kill(self) -> None:
        process = self._process
        if process is not None:
            process.kill()

    def _ended(self) -> Exception:
        process, closed = self._process, self._threads.closed
        self.close()
        if closed:
            return CancelledError(f"{self._what}: the iterator was closed")
        status = None if process is None else process.returncode
        how = "ended" if status is None else f"exited with status {status}"
        if status is not None and status < 0:
            how = f"was killed by {signal.Signals(-status).name}"
        pid = "" if process is None else f" (pid {process.pid})"
        return UnavailableError(
            f"{self._what}: the process{pid} that called the function {how}. If memory ran out, use fewer of them "
            "(num_parallel_calls); the next element gets a new one"
        )


@contextlib.contextmanager
def call_process(function: bytes, what: str, threads: Threads) -> Iterator[CallProcess]:
    """A `CallProcess` until the end of the `with`."""
    process = CallProcess(function, what, threads)
    try:
        yield process
    finally:
        process.close()


def portable(function: Any) -> bytes:
    """The function as it travels to a process.

    Raises:
      Exception: Whatever pickling raises.
    """
    return cloudpickle.dumps(function, protocol=5)  # type: ignore[no-any-return]


def send(sock: socket.socket, value: Any) -> None:
    """Sends a value, the memory of its arrays as it lies."""
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    parts: list[bytes | memoryview] = [body, *(buffer.raw() for buffer in buffers)]
    first, *others = [len(part) for part in parts]
    head = _HEAD.pack(len(parts), first) + struct.pack(f"<{len(others)}Q", *others)
    if first + sum(others) <= _SMALL_BYTES:  # in one piece: each is a system call, and wakes the other end
        sock.sendall(b"".join((head, *parts)))
        return
    sock.sendall(head)
    for part in parts:
        sock.sendall(part)


def receive(sock: socket.socket) -> Any:
    """A value that the other end sent.

    Raises:
      EOFError: if the other end is gone.
    """
    count, first = _HEAD.unpack(_read(sock, _HEAD.size))
    others = struct.unpack(f"<{count - 1}Q", _read(sock, 8 * (count - 1))) if count > 1 else ()
    body, *buffers = [_read(sock, size) for size in (first, *others)]
    return pickle.loads(body, buffers=buffers)


def _read(sock: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = sock.recv_into(view)
        if not count:
            raise EOFError("the other end is gone")
        view = view[count:]
    return data


def _print(stream: str, text: str) -> None:
    """Prints on the thread that calls, so that it appears where prints of threads do: in a notebook, in the cell."""
    with contextlib.suppress(
        OSError, ValueError
    ):  # nobody reads it any more; that is no reason to lose an element
        print(text, end="", file=getattr(sys, stream), flush=True)


def _rebuilt(failure: FailureReport) -> Exception:
    error: Any = None
    if failure.pickled:
        with contextlib.suppress(Exception):  # a class that this process does not have
            error = pickle.loads(failure.pickled)
    if not isinstance(error, Exception):
        error = RuntimeError(f"{failure.type_name}: {failure.text}")
    error.add_note(f"in a process of its own:\n{failure.traceback}".rstrip())
    return error  # type: ignore[no-any-return]
