"""The owner-only folder in which running clusters announce themselves.

It has one JSON file per cluster, locked by the process that wrote it. The lock ends with the process, however that
ends, so an entry that can be locked is stale. Nothing in a file is executed, and no file that another user could have
written is read.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import socket
import stat
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Final

from workbench import forks
from workbench.errors import NotFoundError

try:
    import fcntl
except ImportError:  # Windows lacks such locks and sockets
    fcntl = None  # type: ignore[assignment]

SUPPORTED: Final = fcntl is not None and hasattr(socket, "AF_UNIX")
ID: Final = re.compile(r"[0-9a-f]{8}")
_MAX_BYTES: Final = 64 * 1024
_MAX_ENTRIES: Final = 256


@dataclass(frozen=True, slots=True)
class Entry:
    """A process that drives a cluster, or that holds workers for others to drive.

    Attributes:
      id: Identifies it; eight hexadecimal digits.
      kind: "driver" or "workers".
      name: Its readable name: the run's or the notebook's.
      pid: The process.
      machine: Host name of its machine.
      started: Time of day, seconds since 1970.
      socket: Path of the Unix socket where it answers.
      kernel: Id of the Jupyter kernel if the process is one, else "".
      workers_of: Id of the entry that holds the driver's workers, or "".
      scheduler: Address of the Dask scheduler that a driver uses, or "".
      connection: How to connect to workers: "address" and the PEM texts "ca", "certificate" and "key". Never leaves
        this user's processes.
    """

    id: str
    kind: str
    name: str
    pid: int
    machine: str
    started: float
    socket: str
    kernel: str = ""
    workers_of: str = ""
    scheduler: str = ""
    connection: dict[str, str] = field(default_factory=dict, repr=False)


def new_id() -> str:
    """An id that no other cluster has."""
    return secrets.token_hex(4)


def data_folder() -> Path:
    """The folder of workbench's data for a user, in `$XDG_DATA_HOME` or `~/.local/share`."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "workbench"


def runtime_folder() -> Path:
    """`$WORKBENCH_RUNTIME_DIR`, or a folder in the user's data folder.

    It is not XDG_RUNTIME_DIR, because a job and a Jupyter server often see different ones, or none.
    """
    chosen = os.environ.get("WORKBENCH_RUNTIME_DIR")
    return Path(chosen) if chosen else data_folder() / "runtime"


def default_folder() -> Path:
    """The folder of a user's entries."""
    return runtime_folder() / "clusters"


class Registry:
    """The entries of this user on this machine.

    Attributes:
      folder: Their folder, of mode 0700.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()

    def announce(self, entry: Entry) -> Announced:
        """Adds an entry, which exists until it is withdrawn or this process ends.

        Raises:
          OSError: if the folder cannot be created, or other users have access to it.
        """
        target = self.ensure_folder() / f"{entry.id}.json"
        # Locked before it gets its name, because a reader could otherwise take it for a stale one.
        hidden = target.with_suffix(f".{secrets.token_hex(4)}")
        descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            os.write(descriptor, json.dumps(asdict(entry)).encode())
            os.rename(hidden, target)
        except BaseException:
            os.close(descriptor)
            hidden.unlink(missing_ok=True)
            raise
        return Announced(target, descriptor)

    def entries(self) -> tuple[Entry, ...]:
        """The entries of live processes, newest first; removes the files of dead ones."""
        try:
            self._check_folder()
            names = sorted(os.listdir(self.folder))[:_MAX_ENTRIES]
        except OSError:
            return ()
        found = [self._read(name.removesuffix(".json")) for name in names if name.endswith(".json")]
        return tuple(sorted(filter(None, found), key=lambda entry: (-entry.started, entry.id)))

    def entry(self, id: str) -> Entry:
        """The entry with this id.

        Raises:
          NotFoundError: if there is none, or `id` is not an id.
        """
        found = self._read(id) if SUPPORTED else None
        if found is None:
            raise NotFoundError(f"no running cluster has the id {id[:40]!r}")
        return found

    def _read(self, id: str) -> Entry | None:
        if not ID.fullmatch(id):
            return None
        path = self.folder / f"{id}.json"
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o077:
                return None
            entry = _decode(os.read(descriptor, _MAX_BYTES), id)
            if entry is not None and entry.machine != socket.gethostname():
                return None  # in a shared home folder, only the entry's own machine can judge the process
            if _is_locked(descriptor):
                return entry
            if entry is not None:  # otherwise the file is not an entry
                path.unlink(missing_ok=True)
            return None
        finally:
            os.close(descriptor)

    def ensure_folder(self) -> Path:
        """Returns the folder; creates it if it is missing.

        Raises:
          OSError: if it cannot be made, or is not this user's alone.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            self.folder.mkdir(mode=0o700)
        self._check_folder()
        return self.folder

    def _check_folder(self) -> None:
        about = self.folder.lstat()
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o077:
            raise PermissionError(
                f"{self.folder} is not a directory that only you can use: remove it, or `chmod 700` it if it is yours"
            )


class Announced:
    """An entry of this process, kept until `withdraw`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        forks.tell(self)

    def disown(self) -> None:
        """See `forks.tell`: in a child, the lock would outlive the parent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def withdraw(self) -> None:
        """Removes the entry. Idempotent."""
        if self._descriptor >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = -1


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def _decode(data: bytes, id: str) -> Entry | None:
    try:
        values = json.loads(data)
        known = {part.name: values[part.name] for part in fields(Entry)}
    except (ValueError, KeyError, TypeError):
        return None
    kinds = {"pid": int, "started": (int, float), "connection": dict}
    fits = all(isinstance(value, kinds.get(name, str)) for name, value in known.items())  # type: ignore[arg-type]
    return Entry(**known) if fits and known["id"] == id else None
