"""Forks the processes of embedded workers from one that has already imported what they need.

A worker that starts Python and imports Dask by itself takes 0.6 s of a core, both when a cluster starts and when a lost
worker is replaced. The server does that once, while the driver imports Dask, too; a fork takes milliseconds and shares
its memory. The server runs no threads, and imports no library that cannot be forked (CUDA, JAX, PyTorch).

It is not the server of `multiprocessing`, whose workers end with it, and which a stray byte at its socket ends. This
one has an unnamed socket that only the driver holds. If it ends, workers continue, and the next one is forked from a
new server. `multiprocessing` still creates the processes, with a separate context (`forking_context`).
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Final

from workbench import forks
from workbench.errors import UnavailableError

AVAILABLE: Final = sys.platform == "linux"
"""On other systems, libraries do not survive a fork, or there is no fork: processes are spawned."""
_KEPT_BYTES: Final = str(64 * 1024 * 1024)
MEMORY_ENVIRONMENT: Final = {"MALLOC_TRIM_THRESHOLD_": _KEPT_BYTES, "MALLOC_MMAP_THRESHOLD_": _KEPT_BYTES}
"""Freed arrays of up to 64 MiB stay in the process, because requesting each one again from the system costs a page
fault per 4 KiB.
"""
MAX_DESCRIPTORS: Final = 64
"""The largest number of descriptors in one request."""
FORK: Final = b"fork"
"""Requests a process that runs the code that `multiprocessing` sends it."""
_FORK_SECONDS: Final = 60.0  # includes the imports of a new server
_CHECK_SECONDS: Final = 1.0
_NUMBER: Final = struct.Struct("q")
UNKNOWN_EXIT: Final = 256
"""Stands for the unknown exit code of a process that ended after the server. No process has this code."""
_PROGRAM: Final = """
import json, os, signal, socket, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.setsid()
driver = socket.socket(fileno={descriptor})
sys.path[:] = json.loads(driver.recv(1 << 20))
from workbench.runtime.process.fork_preload import serve
serve(driver)
driver.close()
"""


class ForkServer:
    """A connection to the server; starts it when it is needed, and again when it is gone.

    The driver has one, as does each process that the server has forked, which can thus request further processes.
    """

    def __init__(self) -> None:
        self._lock = forks.lock(threading.Lock())
        self._socket: socket.socket | None = None
        self._pid = 0
        forks.tell(self)
        atexit.register(self.leave)

    def disown(self) -> None:
        """See `forks.tell`: a child that needs workers starts its own server."""
        self._socket, self._pid = None, 0

    def leave(self) -> None:
        """Ends the server at the end of the driver, once it has cleaned up after the workers."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def adopt(self, line: socket.socket) -> None:
        """Sets the connection to the server in a process that it has forked."""
        self._socket, self._pid = forks.descriptor(line), 0

    def fileno(self) -> int:
        """The descriptor of the socket to the server; -1 while there is none."""
        return -1 if self._socket is None else self._socket.fileno()

    def start(self) -> None:
        """Starts the server if necessary; returns while it still imports."""
        with self._lock:
            if self._socket is None:
                self._start()

    def request(self, descriptors: Sequence[int], what: bytes = FORK) -> None:
        """Requests a process that gets `descriptors`.

        Args:
          descriptors: See `fork_preload.serve`.
          what: `FORK`, or the function that it calls, as "module:function".

        Raises:
          UnavailableError: if no server can be started.
        """
        if len(descriptors) > MAX_DESCRIPTORS:
            raise ValueError(f"{len(descriptors)} descriptors for one process; {MAX_DESCRIPTORS} can travel")
        with self._lock:
            for _ in range(2):
                if self._socket is None:
                    self._start()
                assert self._socket is not None
                try:
                    socket.send_fds(self._socket, [what], list(descriptors))
                    return
                except OSError:  # it was killed, which has not been noticed yet
                    self._stop()
        raise UnavailableError(
            "the process that workers are forked off ends as soon as it is started; its messages are above"
        )

    def pid(self, status: int) -> int:
        """Waits for the pid of the requested process.

        Args:
          status: The end of a pipe to which the server writes it.

        Raises:
          TimeoutError: if the server does not answer.
          EOFError: if it has ended.
        """
        deadline = time.monotonic() + _FORK_SECONDS
        answer = select.poll()
        answer.register(status, select.POLLIN)
        while not answer.poll(_CHECK_SECONDS * 1000):
            if self.is_stopped():
                raise TimeoutError("the process that workers are forked off is stopped")
            if time.monotonic() > deadline:
                raise TimeoutError(f"no process was forked within {_FORK_SECONDS:.0f} s")
        return signed_number(status)

    def is_stopped(self) -> bool:
        """Whether a signal has stopped the server, so that it does not answer until another signal continues it."""
        import psutil  # only if a fork is late

        try:
            return bool(self._pid) and psutil.Process(self._pid).status() == psutil.STATUS_STOPPED
        except psutil.Error:
            return False

    def stop(self) -> None:
        """Ends a server that does not answer; the next request starts another one."""
        with self._lock:
            self._stop()

    def _start(self) -> None:
        from multiprocessing import spawn, util

        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # One BLAS thread, because a pool's threads do not survive a fork. Each worker creates its own pool; see `blas`.
        variables = MEMORY_ENVIRONMENT | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        with its, _environment(variables):
            program = _PROGRAM.format(descriptor=its.fileno())
            executable = os.fsencode(spawn.get_executable())
            flags: list[str] = util._args_from_interpreter_flags()  # type: ignore[attr-defined]
            self._pid = util.spawnv_passfds(
                executable, [executable, *map(os.fsencode, flags), b"-c", program.encode()], [its.fileno()]
            )
        mine.send(json.dumps([path or os.getcwd() for path in sys.path]).encode())
        self._socket = forks.descriptor(mine)

    def _stop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):  # another thread waits for all children
                os.waitpid(self._pid, 0)
            self._pid = 0


server = ForkServer()


def signed_number(descriptor: int) -> int:
    """Reads a number that the server wrote in the format of `multiprocessing.forkserver.write_signed`.

    Raises:
      EOFError: if there is none.
    """
    data = os.read(descriptor, _NUMBER.size)
    if len(data) < _NUMBER.size:
        raise EOFError("the process that workers are forked off has ended")
    return int(_NUMBER.unpack(data)[0])


def start() -> None:
    """Starts the server if the system supports it and it is not running; returns while it still imports."""
    if AVAILABLE:
        server.start()


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
