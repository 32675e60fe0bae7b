"""Locks that a process cannot leave behind: the system releases them however the process ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

try:
    import fcntl
except ImportError:  # Windows has none: two saves at once are not detected there, and leftovers stay
    fcntl = None  # type: ignore[assignment]


class FileLock:
    """Holds one file locked until `release`."""

    __slots__ = ("_descriptor",)

    def __init__(self, path: str, *, wait: bool) -> None:
        """Locks `path`, and creates it if it is missing.

        Raises:
          BlockingIOError: if it is already locked and `wait` is False.
        """
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        if fcntl is None:
            return
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BaseException:
            os.close(self._descriptor)
            raise

    def release(self) -> None:
        """Releases the lock; may be called again."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        if fcntl is not None:
            # Releases the lock even if a forked child has a copy of the descriptor.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


@contextlib.contextmanager
def locked(path: str) -> Iterator[None]:
    """Locks `path` inside a `with` block; waits for the current holder."""
    lock = FileLock(path, wait=True)
    try:
        yield
    finally:
        lock.release()
