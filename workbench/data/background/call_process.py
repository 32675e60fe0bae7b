"""A process that calls a function, for functions that hold the interpreter's lock.

It is a separate Python interpreter, connected by a socket pair: it does not fork or import the caller's main module,
and may be started within processes of Dask and multiprocessing. Memory of arrays is sent unchanged, beside the pickled
values.
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
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from workbench import by_value, forks
from workbench.errors import UnavailableError
from workbench.runtime.comm.failure_report import FailureReport

_HEAD: Final = struct.Struct("<IQ")
_SMALL_BYTES: Final = 1 << 16
RETURNED: Final = "returned"
RAISED: Final = "raised"
PRINTED: Final = "printed"
"""Kinds of messages from such a process: an answer to a call, or text that was printed before it."""
_END_SECONDS: Final = 10.0  # a killed process is gone much sooner
_PROGRAM: Final = """
import json, signal, socket, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sock = socket.socket(fileno={descriptor})
sys.path[:] = json.loads(sys.argv[1])
from workbench.data.background.call_server import serve
serve(sock)
"""


@dataclass(frozen=True, slots=True)
class Returned:
    """What the function returned for a call, and how long it took, in nanoseconds."""

    value: Any
    elapsed_ns: int


class CallProcess:
    """Calls one function in a separate process, which ends with this object or with this process.

    Calls wait in the socket, and the process makes one after the other. Writing never blocks, because the process may
    itself be blocked until its answers are read.
    """

    def __init__(self, function: bytes, what: str) -> None:
        """Starts no process yet.

        Args:
          function: The function to call, pickled; see `portable`.
          what: The stage, for errors.
        """
        self._function = function
        self._what = what
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._unwritten: deque[memoryview] = deque()

    @property
    def has_unwritten(self) -> bool:
        """Whether calls wait for room in the socket."""
        return bool(self._unwritten)

    def fileno(self) -> int:
        """The socket, for `select`."""
        assert self._socket is not None
        return self._socket.fileno()

    def call(self, *arguments: Any) -> None:
        """Requests a call; `answer` returns its result.

        Raises:
          Exception: if pickling an argument fails; then nothing is sent.
        """
        parts = packed(arguments)
        if self._socket is None:
            self._start()
        self._unwritten.extend(parts)
        self.write()

    def write(self) -> None:
        """Sends as many waiting calls as fit. If the process has ended, `answer` reports it."""
        assert self._socket is not None
        try:
            while self._unwritten:
                part = self._unwritten[0]
                sent = self._socket.send(part, socket.MSG_DONTWAIT)
                if sent == len(part):
                    self._unwritten.popleft()
                else:
                    self._unwritten[0] = part[sent:]
        except BlockingIOError:
            return
        except OSError:
            self._unwritten.clear()

    def answer(self) -> Returned | Exception | None:
        """Waits for the next message of the process.

        Returns:
          What the oldest call returned, or what it raised, with its traceback as a note; None for printed text.

        Raises:
          EOFError: if the process has ended.
          Exception: if the message cannot be unpickled here.
        """
        assert self._socket is not None
        try:
            message = receive(self._socket)
        except OSError as error:
            raise EOFError("the other end is gone") from error
        kind, value = unpacked(message)
        if kind == PRINTED:
            _print(*value)
            return None
        return Returned(*value) if kind == RETURNED else _rebuilt(value)

    def kill(self) -> None:
        """Ends the process, from any thread; `answer` raises then."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """Ends the process; the next call starts another one."""
        self.kill()
        self._unwritten.clear()
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
        self._unwritten.extend(packed(self._function))

    def ended(self) -> Exception:
        """Closes an ended process, and returns the error for the call that was in progress."""
        process = self._process
        self.close()
        status = None if process is None else process.returncode
        how = "ended" if status is None else f"exited with status {status}"
        if status is not None and status < 0:
            how = f"was killed by {signal.Signals(-status).name}"
        pid = "" if process is None else f" (pid {process.pid})"
        return UnavailableError(
            f"{self._what}: the process{pid} that called the function {how}. If memory ran out, use fewer of them "
            "(num_parallel_calls); the next element gets a new one"
        )


def portable(function: Any) -> bytes:
    """The function in the form that is sent to a process.

    Raises:
      Exception: whatever pickling raises.
    """
    return by_value.dumps(function)


def packed(value: Any) -> list[memoryview]:
    """A value in the form that is sent; the memory of its arrays is not copied."""
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    parts: list[bytes | memoryview] = [body, *(buffer.raw() for buffer in buffers)]
    first, *others = [len(part) for part in parts]
    head = _HEAD.pack(len(parts), first) + struct.pack(f"<{len(others)}Q", *others)
    # In one piece, because each write is a system call that wakes the other end.
    if first + sum(others) <= _SMALL_BYTES:
        return [memoryview(b"".join((head, *parts)))]
    return [memoryview(part) for part in (head, *parts) if len(part)]


def send(sock: socket.socket, message: list[memoryview]) -> None:
    """Sends a packed message."""
    for part in message:
        sock.sendall(part)


def receive(sock: socket.socket) -> list[bytearray]:
    """The next message from the other end, still packed.

    Raises:
      EOFError: if the other end is gone.
      OSError: if the connection fails.
    """
    count, first = _HEAD.unpack(_read(sock, _HEAD.size))
    others = struct.unpack(f"<{count - 1}Q", _read(sock, 8 * (count - 1))) if count > 1 else ()
    return [_read(sock, size) for size in (first, *others)]


def unpacked(message: list[bytearray]) -> Any:
    """The value in a message; raises whatever unpickling raises."""
    body, *buffers = message
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
    """Prints on the calling thread, so that the text appears where that thread prints: in a notebook, in the cell."""
    with contextlib.suppress(OSError, ValueError):  # a closed output is no reason to lose an element
        print(text, end="", file=getattr(sys, stream), flush=True)


def _rebuilt(failure: FailureReport) -> Exception:
    error: Any = None
    if failure.pickled:
        with contextlib.suppress(Exception):  # this process does not have the class
            error = pickle.loads(failure.pickled)
    if not isinstance(error, Exception):
        error = RuntimeError(f"{failure.type_name}: {failure.text}")
    error.add_note(f"in a process of its own:\n{failure.traceback}".rstrip())
    return error  # type: ignore[no-any-return]
