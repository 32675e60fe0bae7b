"""What a `CallProcess` runs: calls a function for whatever comes through a socket."""

from __future__ import annotations

import os
import pickle
import queue
import socket
import threading

from workbench.data.background.call_process import receive, send
from workbench.runtime.comm.failure_report import report

_CHECK_SECONDS = 3600.0


def serve(sock: socket.socket) -> None:
    """Calls until the other end is gone, which also ends a call that is under way."""
    calls: queue.SimpleQueue[object] = queue.SimpleQueue()
    # The main thread is the function's, as libraries may want; this one notices the end of the other process.
    threading.Thread(target=_read, args=(sock, calls), daemon=True).start()
    function = pickle.loads(calls.get(timeout=_CHECK_SECONDS))  # type: ignore[arg-type]
    while True:
        try:
            arguments = calls.get(timeout=_CHECK_SECONDS)
        except queue.Empty:
            continue
        try:
            answer = True, function(*arguments)  # type: ignore[misc]
        except Exception as error:
            answer = False, report(0, error)
        try:
            send(sock, answer)
        except (TypeError, AttributeError, pickle.PicklingError) as error:  # before anything was sent
            send(sock, (False, report(0, error)))


def _read(sock: socket.socket, calls: queue.SimpleQueue[object]) -> None:
    try:
        while True:
            calls.put(receive(sock))
    except (OSError, EOFError):
        os._exit(0)
