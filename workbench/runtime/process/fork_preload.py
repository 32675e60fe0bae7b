"""The fork server's program: its imports for the workers, and how it forks them. Nothing else imports this file."""

from __future__ import annotations

import contextlib
import gc
import importlib
import logging
import os
import select
import selectors
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import forkserver, resource_tracker, spawn, util
from typing import Any, Final

import dask
import numpy as np
import numpy.random
from distributed.diskutils import WorkSpace

from workbench.communicators.core.socket_folder import sweep
from workbench.runtime.process.fork_server import FORK, MAX_DESCRIPTORS, server
from workbench.runtime.process.process_state import process_state

_PRELOADED: Final = (
    "workbench.data",
    "workbench.distribute.strategies.mirrored",
    "workbench.telemetry.recording.batches",
    "workbench.runtime.deploy.plugin",
)
_PATIENCE_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.01


def serve(driver: socket.socket) -> None:
    """Forks a process for each request, and reports how it ended, until the driver is gone.

    A request is a message with descriptors. The server writes the child's pid, and later its exit code, to the first
    one. With `FORK`, the others are the pipe from which the child reads its code, the resource tracker's, and those for
    that code. Any other message names a function, which the child calls with the other descriptors. Each child has a
    connection to the server for its own requests.
    """
    for name in _PRELOADED:  # for the workers; the server itself does not use them
        importlib.import_module(name)
    # Dask's messages about itself do not belong in the user's terminal.
    logging.getLogger("distributed").setLevel(logging.WARNING)
    # Otherwise all workers would draw the same random numbers. The module `random` reseeds by itself.
    os.register_at_fork(after_in_child=np.random.seed)
    util._close_stdin()  # type: ignore[attr-defined]
    # Objects imported so far are permanent, so no worker's garbage collector needs to visit them.
    gc.freeze()
    with selectors.DefaultSelector() as selector:
        family = _Family(driver, selector)
        while driver.fileno() >= 0:
            family.attend()
    _leave(family.statuses)


class _Family:
    """The processes that the server has forked, and the connections for requests.

    Attributes:
      statuses: For each live child, where to report its exit code.
    """

    def __init__(self, driver: socket.socket, selector: selectors.BaseSelector) -> None:
        self.statuses: dict[int, int] = {}
        self._selector = selector
        self._lines: dict[int, socket.socket] = {}
        self._bell, self._rope = os.pipe()  # Python writes to the rope at each signal
        os.set_blocking(self._bell, False)
        os.set_blocking(self._rope, False)
        self._handlers_in_children: dict[int, Any] = {
            signal.SIGCHLD: signal.signal(signal.SIGCHLD, lambda *_: None),
            signal.SIGINT: signal.default_int_handler,
        }
        signal.set_wakeup_fd(self._rope)
        selector.register(self._bell, selectors.EVENT_READ)
        self._listen_to(driver)

    def attend(self) -> None:
        """Waits for requests and for ends of children, and handles them."""
        for key, _ in self._selector.select():
            if key.fd == self._bell:
                os.read(self._bell, 65536)
                _bury(self.statuses)
            else:
                self._receive_from(self._lines[key.fd])

    def _listen_to(self, line: socket.socket) -> None:
        self._lines[line.fileno()] = line
        self._selector.register(line, selectors.EVENT_READ)

    def _receive_from(self, line: socket.socket) -> None:
        try:
            message, descriptors, _, _ = socket.recv_fds(line, 256, MAX_DESCRIPTORS)
        except ConnectionError:  # the peer was killed
            message, descriptors = b"", []
        if message:
            self._fork(message.decode(), *descriptors)
        else:
            self._selector.unregister(line)
            del self._lines[line.fileno()]
            line.close()

    def _fork(self, what: str, status: int, *given: int) -> None:
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if not pid:
            self._selector.close()
            unused = [status, self._bell, self._rope, mine.detach(), *self.statuses.values()]
            unused += [other.detach() for other in self._lines.values()]
            _run(what, given, partial(_begin, self._handlers_in_children, unused, its))
        its.close()
        self._listen_to(mine)
        self.statuses[pid] = status
        _tell(status, pid)
        for each in given:
            os.close(each)


def _begin(handlers: dict[int, Any], unused: Sequence[int], line: socket.socket) -> None:
    """Runs in the child: releases the server's resources; `line` connects to the server."""
    signal.set_wakeup_fd(-1)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    for each in unused:
        os.close(each)
    server.adopt(line)


def _run(what: str, descriptors: Sequence[int], begin: Callable[[], None]) -> None:
    """Runs in the child: executes the request, then ends the process."""
    code = 1
    try:
        begin()
        if what.encode() == FORK:
            data, tracker, *inherited = descriptors
            resource_tracker._resource_tracker._fd = tracker  # type: ignore[attr-defined]
            forkserver._forkserver._inherited_fds = inherited  # type: ignore[attr-defined]
            if _has_come(data):
                code = spawn._main(data, os.dup(data))
        else:
            module, _, function = what.partition(":")
            getattr(importlib.import_module(module), function)(*descriptors)
            code = 0
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _has_come(data: int) -> bool:
    """Waits for the code to run; False if the driver closes the pipe first.

    There is no deadline, because the wait ends with the pipe, and the pipe at the latest with the driver.
    """
    waiting = select.poll()
    waiting.register(data, select.POLLIN)
    return any(event & select.POLLIN for _, event in waiting.poll())


def _bury(statuses: dict[int, int]) -> None:
    """Collects and reports the exit codes of ended children."""
    while statuses:
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        if (status := statuses.pop(pid, None)) is not None:
            _tell(status, os.waitstatus_to_exitcode(ended))
            os.close(status)


def _tell(status: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # the driver does not read it any more
        forkserver.write_signed(status, number)


def _leave(statuses: dict[int, int]) -> None:
    """Cleans up after killed processes. The driver is gone, and the workers soon will be."""
    ends = time.monotonic() + _PATIENCE_SECONDS
    while statuses and time.monotonic() < ends:
        for pid in statuses:
            # A process stopped by a signal cannot notice that the driver is gone.
            if process_state(pid) == "T":
                os.kill(pid, signal.SIGKILL)
        _bury(statuses)
        time.sleep(_POLL_SECONDS)
    sweep()
    with contextlib.suppress(OSError):  # as Dask does when it starts this user's next worker
        scratch = os.path.join(
            dask.config.get("temporary-directory") or tempfile.gettempdir(), "dask-scratch-space"
        )
        if os.path.isdir(scratch):
            WorkSpace(scratch)._purge_leftovers()
