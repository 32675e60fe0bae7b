"""A context of `multiprocessing` for processes that are forked from workbench's server and outlive it."""

from __future__ import annotations

import contextlib
import io
import os
import queue
import threading
import time
from collections.abc import Iterator
from multiprocessing import (
    context,
    popen_forkserver,
    reduction,
    resource_tracker,
    spawn,
    util,
)
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Final

from workbench import forks
from workbench.runtime.process.fork_server import AVAILABLE, UNKNOWN_EXIT, server, signed_number

METHOD: Final = "workbench"
"""The context's name for `multiprocessing.get_context`."""
_DASK_METHOD: Final = "distributed.worker.multiprocessing-method"
_ATTEMPTS: Final = 3
TELL_SECONDS: Final = 5.0
"""How long to wait for a process's exit code after its end: on a busy machine, the server reports it late."""
_before: Any = None
_forking = 0
_lock = forks.lock(threading.Lock())


class _Popen(popen_forkserver.Popen):
    """Unlike the class of `multiprocessing`, does not take a process for ended when the server has ended."""

    _fds: list[int]
    _parts: tuple[int, ...] = ()
    _end = -1
    _seen_ended = 0.0
    returncode: int | None

    def _launch(self, process_obj: Any) -> None:
        data = io.BytesIO()
        context.set_spawning_popen(self)
        try:
            reduction.dump(spawn.get_preparation_data(process_obj._name), data)
            reduction.dump(process_obj, data)
        finally:
            context.set_spawning_popen(None)
        for attempt in range(_ATTEMPTS):
            try:
                self._start(data.getvalue())
                return
            except (EOFError, BrokenPipeError, TimeoutError) as error:  # the server has ended or is stopped
                server.stop()
                if attempt == _ATTEMPTS - 1:
                    raise ChildProcessError(
                        "no worker process could be forked: the server ended each time"
                    ) from error

    def _start(self, data: bytes) -> None:
        status, its_status = os.pipe()
        its_data, writing = os.pipe()
        try:
            tracker: Any = resource_tracker.getfd()
            server.request([its_status, its_data, tracker, *self._fds])
        except BaseException:
            os.close(status)
            os.close(writing)
            raise
        finally:
            os.close(its_data)
            os.close(its_status)
        try:
            self.pid = server.pid(status)
            # The child considers its parent dead when every copy of this descriptor is closed.
            kept = os.dup(writing)
        except BaseException:
            os.close(status)
            os.close(writing)
            raise
        self.sentinel, self._end = status, _descriptor_of(self.pid)
        self._parts = tuple(fd for fd in (kept, status, self._end) if fd >= 0)
        self.finalizer = util.Finalize(self, _close, self._parts)
        forks.tell(self)
        with open(writing, "wb") as file:
            file.write(data)

    def disown(self) -> None:
        """See `forks.tell`."""
        forks.let_go(*self._parts)

    def poll(self, flag: int = os.WNOHANG) -> int | None:
        """As in `multiprocessing`: the exit code once the process has ended; waits for it unless `flag` is WNOHANG."""
        return self.wait(0.0 if flag == os.WNOHANG else None)

    def wait(self, timeout: float | None = None) -> int | None:
        """The exit code, or None if the process has not ended within `timeout` seconds."""
        ends = None if timeout is None else time.monotonic() + timeout
        if self.returncode is None and self._is_told(timeout):
            try:
                self.returncode = signed_number(self.sentinel)
            except (OSError, EOFError):  # the server is gone, but the process may still run
                left = None if ends is None else max(0.0, ends - time.monotonic())
                if self._end < 0 or wait([self._end], left):
                    self.returncode = UNKNOWN_EXIT
        return self.returncode

    def _is_told(self, timeout: float | None) -> bool:
        """Waits for the server's report of the end.

        A stopped server sends none, so this also watches the process itself.
        """
        ready = wait([self.sentinel] if self._end < 0 else [self.sentinel, self._end], timeout)
        if not ready or self.sentinel in ready:
            return bool(ready)
        self._seen_ended = self._seen_ended or time.monotonic()
        left = self._seen_ended + TELL_SECONDS - time.monotonic()
        if wait([self.sentinel], max(0.0, left if timeout is None else min(left, timeout))):
            return True
        if time.monotonic() >= self._seen_ended + TELL_SECONDS:
            self.returncode = UNKNOWN_EXIT
        return False


def _close(*descriptors: int) -> None:
    for each in descriptors:
        os.close(each)


def _descriptor_of(pid: int) -> int:
    """A descriptor that is readable once the process has ended; -1 if unsupported, or if it has already ended."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return -1


class _Process(context.ForkServerProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        return _Popen(process_obj)


class PipeQueue:
    """A queue from one process to another, with those methods of `multiprocessing`'s queue that Dask's nannies use.

    The latter has named semaphores, which need a writable /dev/shm, and stay there when all processes of a driver are
    killed together.
    """

    def __init__(self) -> None:
        self._reader, self._writer = Pipe(duplex=False)
        self._open()

    def _open(self) -> None:
        self._closed = False
        self._reading = forks.lock(threading.Lock())
        self._writing = forks.lock(threading.Lock())
        forks.descriptor(self._reader)
        forks.descriptor(self._writer)

    def __getstate__(self) -> tuple[Connection, Connection]:
        context.assert_spawning(self)
        return self._reader, self._writer

    def __setstate__(self, ends: tuple[Connection, Connection]) -> None:
        self._reader, self._writer = ends
        self._open()

    def put(self, item: Any) -> None:
        """Adds an item; small ones never wait.

        Raises:
          ValueError: if this end was closed.
        """
        with self._writing:
            if self._closed:
                raise ValueError("the queue is closed")
            self._writer.send(item)

    def get(self) -> Any:
        """Waits for the next item, or until the other process ends."""
        with self._reading:
            return self._reader.recv()

    def get_nowait(self) -> Any:
        """The next item, without waiting.

        Raises:
          queue.Empty: if there is none.
        """
        with self._reading:
            if self._closed or not self._reader.poll(0):
                raise queue.Empty
            return self._reader.recv()

    def close(self) -> None:
        """Ends writing at this end; the other process can still read what was written. Idempotent."""
        with self._writing:
            self._closed = True

    def join_thread(self) -> None:
        """Does nothing, because `put` has already written."""


class _Context(context.ForkServerContext):
    Process = _Process

    def Queue(self, maxsize: int = 0) -> Any:
        """See `PipeQueue`."""
        return PipeQueue()


context._concrete_contexts[METHOD] = _Context()  # type: ignore[attr-defined]


@contextlib.contextmanager
def forking() -> Iterator[None]:
    """Within this context, Dask's nannies fork instead of spawning. Several may do so at once, on one event loop.

    Dask reads the method from its configuration each time; other clusters in this process keep theirs.
    """
    global _before, _forking
    import dask

    with _lock:
        if AVAILABLE and not _forking:
            _before = dask.config.get(_DASK_METHOD)
            dask.config.set({_DASK_METHOD: METHOD})
        _forking += 1
    try:
        yield
    finally:
        with _lock:
            _forking -= 1
            if AVAILABLE and not _forking:
                dask.config.set({_DASK_METHOD: _before})
