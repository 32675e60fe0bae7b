"""Journal: the changes of one server in a file, each written before it is answered.

The kernel keeps what a killed process has written, so a server that replaces it on the same machine reads every
answered change. A partly written change was not answered, and is ignored. Nothing is synced to disk: a journal
outlives its process, but not its machine.

A server may be given up although it lives, because its network is interrupted and later works again. So its successor
replaces the journal by another file, atomically, while it holds the lock under which every change is written. The
former server then notices that its file has no name and that another file has it, and stops answering. If the file is
only missing, for example because a cleaner of old files removed it, the server continues; if it is then killed, its
successor starts without the variables.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import math
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from workbench import forks
from workbench.distribute.servers.disk_space import reserve
from workbench.errors import StorageFull
from workbench.runtime.services.frames import HEAD, Array, Fields, pack, put, unpack
from workbench.runtime.services.service import Superseded

_FILE: Final = "changes"
_NEW: Final = "changes.new"
_LEAST_BYTES: Final = 64 * 1024 * 1024
_AHEAD_BYTES: Final = 8 * 1024 * 1024
_LEAST_AHEAD_BYTES: Final = 1024 * 1024
_PREFIX: Final = "workbench-server-"
_ABANDONED_SECONDS: Final = 3600.0
Change = tuple[Fields, list[Array]]


class Journal:
    """Appends changes to a file in a folder that only its owner can enter.

    Attributes:
      folder: Its folder; deleted by `remove`.
      nbytes: Size of the file.
    """

    def __init__(self, folder: Path) -> None:
        """Opens the journal in `folder`, or creates one."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder
        self._descriptor = _opened(folder)
        self.nbytes = os.fstat(self._descriptor).st_size
        self._compacted_bytes = 0
        self._reserved: float = 0
        self._swapping = forks.lock(threading.Lock())

    @property
    def superseded(self) -> bool:
        """Whether another process has taken over; a journal that was only removed still belongs to this process."""
        with self._swapping:  # other threads call this while one rewrites the file
            return _nameless(self._descriptor) and (self.folder / _FILE).exists()

    def take_over(
        self, replay: Callable[[Fields, list[Array]], None], contents: Callable[[], list[Change]]
    ) -> None:
        """Takes the journal over; the process that wrote it before cannot continue.

        Args:
          replay: Called with each recorded change.
          contents: Called after that; returns changes for a new journal.
        """
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        while _nameless(self._descriptor):  # replaced while this waited for the lock
            os.close(self._descriptor)
            self._descriptor = _opened(self.folder)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        for change in self.changes():
            replay(*change)
        self.begin_anew(contents())

    def changes(self) -> Iterator[Change]:
        """The recorded changes. Cuts off an incomplete last change of a killed process."""
        good = 0
        with open(self.folder / _FILE, "rb") as file:
            while len(head := file.read(HEAD.size)) == HEAD.size:
                header_bytes, payload_bytes = HEAD.unpack(head)
                header, payload = file.read(header_bytes), memoryview(bytearray(file.read(payload_bytes)))
                if len(header) < header_bytes or len(payload) < payload_bytes:
                    break
                good = file.tell()
                yield unpack(header, payload)
        os.ftruncate(self._descriptor, good)
        self.nbytes = good

    def append(self, change: Change) -> None:
        """Writes a change.

        Raises:
          StorageFull: if no space is left; the journal is unchanged.
          Superseded: if another process has taken over.
        """
        before = self.nbytes
        try:
            with _Locked(self):
                if self._reserved - before < _LEAST_AHEAD_BYTES:
                    self._reserved = _reserved(self._descriptor, before, _AHEAD_BYTES)
                self.nbytes += _write(self._descriptor, change)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, before)
                self._reserved = 0
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            about = os.fstatvfs(self._descriptor)
            free = about.f_bavail * about.f_frsize
            raise StorageFull(
                f"the journal of a parameter server, {self.folder / _FILE}, has {before:,} bytes and cannot grow: "
                f"{free:,} bytes are free; make room, or give ParameterServerStrategy(journal_folder=...) another "
                f"place. The update was not applied"
            ) from error

    def outgrown(self, held_bytes: Callable[[], int]) -> bool:
        """Whether it is much larger than its content; calls `held_bytes` only once it is twice its initial size."""
        return self.nbytes > max(_LEAST_BYTES, 2 * self._compacted_bytes) and self.nbytes > 4 * held_bytes()

    def begin_anew(self, changes: Iterable[Change]) -> None:
        """Replaces the recorded changes by `changes`, atomically; raises as `append`."""
        path, changes = self.folder / _NEW, list(changes)
        ahead = _AHEAD_BYTES + sum(array.nbytes for _, arrays in changes for array in arrays)
        with _Locked(self):
            self.folder.mkdir(mode=0o700, exist_ok=True)  # it may have been removed
            descriptor = os.open(
                path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600
            )
            try:
                reserved = _reserved(descriptor, 0, ahead)
                nbytes = sum(_write(descriptor, change) for change in changes)
                with self._swapping:
                    os.replace(path, self.folder / _FILE)
                    former, self._descriptor = self._descriptor, descriptor
            except BaseException:
                os.close(descriptor)
                path.unlink(missing_ok=True)
                raise
        os.close(former)
        self.nbytes = self._compacted_bytes = nbytes
        self._reserved = reserved

    def remove(self) -> None:
        """Closes the journal and removes it, unless another process has taken over."""
        with contextlib.suppress(Superseded), _Locked(self):
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._descriptor)


class _Locked:
    """A context that prevents other processes from writing the journal or taking it over.

    Raises:
      Superseded: if another process has taken over.
    """

    __slots__ = ("_descriptor", "_journal")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._descriptor = journal._descriptor  # kept, because the journal may be rewritten inside

    def __enter__(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            if self._journal.superseded:
                raise Superseded(f"another process has taken over {self._journal.folder}")
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)


def _nameless(descriptor: int) -> bool:
    return os.fstat(descriptor).st_nlink == 0


def _opened(folder: Path) -> int:
    return os.open(folder / _FILE, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def folder_for(parent: str, token: str) -> Path:
    """The folder of one server's journal."""
    return Path(parent) / f"{_PREFIX}{token}"


def sweep(parent: str) -> None:
    """Removes this user's journals of servers that were killed, with all other processes, over an hour ago."""
    for folder in Path(parent).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another process may remove it, too
            about = (folder / _FILE).stat()
            old = about.st_uid == os.getuid() and time.time() - about.st_mtime > _ABANDONED_SECONDS
            if old and not _has_owner(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _has_owner(folder: Path) -> bool:
    try:
        os.kill(int((folder / "process").read_text()), 0)
    except (FileNotFoundError, ProcessLookupError, ValueError):  # or it was killed while writing its pid
        return False
    return True


def _reserved(descriptor: int, offset: int, nbytes: int) -> float:
    """The offset up to which the file has blocks; infinity if that is unsupported, so that it is not retried."""
    return offset + nbytes if reserve(descriptor, offset, nbytes) else math.inf


def _write(descriptor: int, change: Change) -> int:
    return put(pack(*change), partial(os.writev, descriptor))
