"""The program of a `CallProcess`: calls a function for each element that a socket delivers."""

from __future__ import annotations

import io
import os
import pickle
import select
import socket
import sys
import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from workbench.data.background.call_process import PRINTED, RAISED, RETURNED, packed, receive, send, unpacked
from workbench.runtime.comm.failure_report import report

_LONGEST_LINE = 8192  # characters


def serve(sock: socket.socket) -> None:
    """Serves calls until the other end is gone, which also ends a call in progress."""
    sending = threading.Lock()
    sys.stdout, sys.stderr = _Printed("stdout", sock, sending), _Printed("stderr", sock, sending)
    threading.Thread(target=_end_with, args=(sock,), daemon=True).start()
    try:
        # Everything runs on the main thread, as libraries may require. A second thread that receives would wait for the
        # interpreter's lock, which the function holds.
        function = _unpickled(unpacked(receive(sock)))
        while True:
            answer = _answer(function, receive(sock))
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            with sending:
                send(sock, answer)
    except (OSError, EOFError):
        os._exit(0)


def _unpickled(function: bytes) -> Callable[..., Any]:
    try:
        return pickle.loads(function)  # type: ignore[no-any-return]
    except Exception as error:
        failure, where = error, error.__traceback__

    def fail(*_: Any) -> Any:
        raise failure.with_traceback(where)  # each raise adds to the error's traceback

    return fail


def _answer(function: Callable[..., Any], message: list[bytearray]) -> list[memoryview]:
    try:
        arguments = unpacked(message)
        began = perf_counter_ns()
        value = function(*arguments)
        return packed((RETURNED, (value, perf_counter_ns() - began)))
    except Exception as error:
        return packed((RAISED, report(0, error)))


def _end_with(sock: socket.socket) -> None:
    poll = select.poll()
    poll.register(sock, 0)  # the end of the connection reports it in any case
    poll.poll()
    os._exit(0)


class _Printed(io.TextIOBase):
    """The function's prints. They go to the other process line by line, and at the end of each call."""

    def __init__(self, stream: str, sock: socket.socket, sending: threading.Lock) -> None:
        self._stream = stream
        self._sock = sock
        self._sending = sending  # the function's own threads may print at any time
        self._waiting = ""

    def writable(self) -> bool:
        """As `io.TextIOBase.writable`."""
        return True

    def write(self, text: str) -> int:
        """As `io.TextIOBase.write`; waits while the other process has a lot of output to read."""
        with self._sending:
            self._waiting += text
            if "\n" in text or len(self._waiting) > _LONGEST_LINE:
                self._send()
        return len(text)

    def flush(self) -> None:
        """As `io.TextIOBase.flush`."""
        with self._sending:
            self._send()

    def _send(self) -> None:
        if self._waiting:
            send(self._sock, packed((PRINTED, (self._stream, self._waiting))))
            self._waiting = ""
