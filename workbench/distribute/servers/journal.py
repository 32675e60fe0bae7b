"""Journal: the changes of one server in a file, each written before it is answered.

What a killed process has written the kernel still has, so a server that takes its place on the same machine reads every
change that was answered; a change that was written in part was not answered, and is left out. Nothing is forced to
the disk: a journal outlives its process, and not its machine.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from workbench.errors import StorageFull
from workbench.runtime.services.frames import HEAD, Array, Fields, pack, unpack

_FILE: Final = "changes"
_NEW: Final = "changes.new"
_LEAST_BYTES: Final = 64 * 1024 * 1024
_PREFIX: Final = "workbench-server-"
_ABANDONED_SECONDS: Final = 3600.0
Change = tuple[Fields, list[Array]]


class Journal:
    """Appends changes to a file in a folder that only its owner can enter.

    Attributes:
      folder: Where it is; goes with `remove`.
      nbytes: Size of the file.
    """

    def __init__(self, folder: Path) -> None:
        """Opens the journal in `folder`, or begins one."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder
        self._descriptor = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.nbytes = os.fstat(self._descriptor).st_size
        self._compacted_bytes = 0

    def changes(self) -> Iterator[Change]:
        """What was written; an incomplete last change, of a process that was killed in it, is cut off."""
        good = 0
        with open(self.folder / _FILE, "rb") as file:
            while len(head := file.read(HEAD.size)) == HEAD.size:
                header_bytes, payload_bytes = HEAD.unpack(head)
                header, payload = file.read(header_bytes), bytearray(file.read(payload_bytes))
                if len(header) < header_bytes or len(payload) < payload_bytes:
                    break
                good = file.tell()
                yield unpack(header, payload)
        os.ftruncate(self._descriptor, good)
        self.nbytes = good

    def append(self, change: Change) -> None:
        """Writes a change.

        Raises:
          StorageFull: If there is no room; the journal is as before.
        """
        before = self.nbytes
        try:
            self.nbytes += _write(self._descriptor, change)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, before)
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            free = shutil.disk_usage(self.folder).free
            raise StorageFull(
                f"the journal of a parameter server, {self.folder / _FILE}, has {before:,} bytes and cannot grow: "
                f"{free:,} bytes are free; make room, or give ParameterServerStrategy(journal_folder=...) another "
                f"place. The update was not applied"
            ) from error

    def outgrown(self, held_bytes: int) -> bool:
        """Whether it is much larger than what it describes."""
        return self.nbytes > max(_LEAST_BYTES, 4 * held_bytes, 2 * self._compacted_bytes)

    def begin_anew(self, changes: Iterable[Change]) -> None:
        """Replaces what was written by `changes`, all at once."""
        path = self.folder / _NEW
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            nbytes = sum(_write(descriptor, change) for change in changes)
            os.replace(path, self.folder / _FILE)
        except BaseException:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise
        os.close(self._descriptor)
        self._descriptor, self.nbytes, self._compacted_bytes = descriptor, nbytes, nbytes

    def remove(self) -> None:
        """Closes the journal and removes it."""
        os.close(self._descriptor)
        shutil.rmtree(self.folder, ignore_errors=True)


def folder_for(parent: str, token: str) -> Path:
    """Where the journal of one server goes."""
    return Path(parent) / f"{_PREFIX}{token}"


def sweep(parent: str) -> None:
    """Removes journals of this user whose servers were killed with all else, more than an hour ago."""
    for folder in Path(parent).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another process removes it, too
            about = (folder / _FILE).stat()
            owner = int((folder / "process").read_text())
            if about.st_uid == os.getuid() and time.time() - about.st_mtime > _ABANDONED_SECONDS:
                try:
                    os.kill(owner, 0)
                except ProcessLookupError:
                    shutil.rmtree(folder, ignore_errors=True)


def _write(descriptor: int, change: Change) -> int:
    total = 0
    for piece in pack(*change):
        view = memoryview(piece)
        while view:
            written = os.write(descriptor, view)
            view = view[written:]
            total += written
    return total
