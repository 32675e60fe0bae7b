"""The fork server's own program: what it imports for the workers, and how it forks them. Nothing else imports this."""

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
    """Forks a process for each request, and tells how it ended, until the driver is gone.

    A request is a message with descriptors. The first is where the child's pid and later its exit code go. With `FORK`
    follow where it reads what it shall run, the resource tracker's, and those that what it runs has. Else the message
    names a function, which the child calls with the others. Each child has a line to the server, for its own requests.
    """
    for name in _PRELOADED:  # for the workers; the server itself uses none of them
        importlib.import_module(name)
    # Dask's messages about itself are no news for the user's terminal.
    logging.getLogger("distributed").setLevel(logging.WARNING)
    # Otherwise all workers would draw the same numbers. The module `random` does this by itself.
    os.register_at_fork(after_in_child=np.random.seed)
    util._close_stdin()  # type: ignore[attr-defined]
    # Objects imported so far stay, so no worker's garbage collector needs to visit them.
    gc.freeze()
    bell, ear = os.pipe()
    os.set_blocking(bell, False)
    os.set_blocking(ear, False)
    children: dict[int, Any] = {
        signal.SIGCHLD: signal.signal(signal.SIGCHLD, lambda *_: None),
        signal.SIGINT: signal.default_int_handler,
    }
    signal.set_wakeup_fd(ear)
    statuses: dict[int, int] = {}  # for each living child, where to report how it ended
    lines = {driver.fileno(): driver}  # connections that may send requests
    with selectors.DefaultSelector() as selector:
        selector.register(driver, selectors.EVENT_READ)
        selector.register(bell, selectors.EVENT_READ)
        while driver.fileno() >= 0:
            for key, _ in selector.select():
                if key.fd == bell:
                    os.read(bell, 65536)
                    _bury(statuses)
                    continue
                line = lines[key.fd]
                try:
                    message, descriptors, _, _ = socket.recv_fds(line, 256, MAX_DESCRIPTORS)
                except ConnectionError:  # the peer was killed
                    message, descriptors = b"", []
                if not message:
                    selector.unregister(line)
                    del lines[key.fd]
                    line.close()
                    continue
                status, *given = descriptors
                mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                pid = os.fork()
                if not pid:
                    selector.close()
                    unused = [status, bell, ear, mine.detach(), *statuses.values()]
                    unused += [other.detach() for other in lines.values()]
                    _run(message.decode(), given, partial(_begin, children, unused, its))
                its.close()
                lines[mine.fileno()] = mine
                selector.register(mine, selectors.EVENT_READ)
                statuses[pid] = status
                _tell(status, pid)
                for each in given:
                    os.close(each)
    _leave(statuses)


def _begin(handlers: dict[int, Any], unused: Sequence[int], line: socket.socket) -> None:
    """Runs in the child: releases what belongs to the server; `line` connects to it."""
    signal.set_wakeup_fd(-1)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    for each in unused:
        os.close(each)
    server.adopt(line)


def _run(what: str, descriptors: Sequence[int], begin: Callable[[], None]) -> None:
    """Runs in the child: does what was requested, then ends the process."""
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
    """Waits for the code to run; False if the driver lost interest first.

    There is no deadline, because the pipe ends with the driver at the latest, and then so does the wait.
    """
    waiting = select.poll()
    waiting.register(data, select.POLLIN)
    return any(event & select.POLLIN for _, event in waiting.poll())


def _bury(statuses: dict[int, int]) -> None:
    """Collects the exit codes of children that have ended, and reports them."""
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
    with contextlib.suppress(BrokenPipeError):  # the driver has lost interest
        forkserver.write_signed(status, number)


def _leave(statuses: dict[int, int]) -> None:
    """Cleans up after killed processes. The driver is gone, and the workers will be in a moment."""
    ends = time.monotonic() + _PATIENCE_SECONDS
    while statuses and time.monotonic() < ends:
        for pid in statuses:
            # A process that a signal has stopped cannot notice that the driver is gone.
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
