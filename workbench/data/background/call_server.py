"""What a `CallProcess` runs: calls a function for whatever comes through a socket."""

from __future__ import annotations

import io
import os
import pickle
import queue
import socket
import sys
import threading

from workbench.data.background.call_process import PRINTED, RAISED, RETURNED, receive, send
from workbench.runtime.comm.failure_report import report

_CHECK_SECONDS = 3600.0
_LONGEST_LINE = 8192  # characters


def serve(sock: socket.socket) -> None:
    """Calls until the other end is gone, which also ends a call that is under way."""
    calls: queue.SimpleQueue[object] = queue.SimpleQueue()
    sending = threading.Lock()
    sys.stdout, sys.stderr = _Printed("stdout", sock, sending), _Printed("stderr", sock, sending)
    # The main thread is the function's, as libraries may want; this one notices the end of the other process.
    threading.Thread(target=_read, args=(sock, calls), daemon=True).start()
    function = pickle.loads(calls.get(timeout=_CHECK_SECONDS))  # type: ignore[arg-type]
    while True:
        try:
            arguments = calls.get(timeout=_CHECK_SECONDS)
        except queue.Empty:
            continue
        try:
            answer = RETURNED, function(*arguments)  # type: ignore[misc]
        except Exception as error:
            answer = RAISED, report(0, error)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        with sending:
            try:
                send(sock, answer)
            except (TypeError, AttributeError, pickle.PicklingError) as error:  # before anything was sent
                send(sock, (RAISED, report(0, error)))


class _Printed(io.TextIOBase):
    """What the function prints; it goes to the other process line by line, and at the end of a call."""

    def __init__(self, stream: str, sock: socket.socket, sending: threading.Lock) -> None:
        self._stream = stream
        self._sock = sock
        self._sending = sending  # threads of the function may print at any moment
        self._waiting = ""

    def writable(self) -> bool:
        """As `io.TextIOBase.writable`."""
        return True

    def write(self, text: str) -> int:
        """As `io.TextIOBase.write`; waits while the other process has much to read."""
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
            send(self._sock, (PRINTED, (self._stream, self._waiting)))
            self._waiting = ""


def _read(sock: socket.socket, calls: queue.SimpleQueue[object]) -> None:
    try:
        while True:
            calls.put(receive(sock))
    except (OSError, EOFError):
        os._exit(0)
