"""A Unix socket in an owner-only folder. Removing both never touches foreign files."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import stat
import tempfile
import time
from pathlib import Path
from typing import Final

from workbench import forks

_SOCKET: Final = "s"
_UNFINISHED: Final = "s.n"
_NAME: Final = re.compile(r"workbench-[0-9a-f]{16}")
_UNFINISHED_SECONDS: Final = 60.0
_PROBE_SECONDS: Final = 1.0


def _parent() -> str:
    """The parent folder of sockets: a short path on a local disk. TMPDIR may be neither."""
    return "/tmp" if os.access("/tmp", os.W_OK | os.X_OK) else tempfile.gettempdir()


class SocketFolder:
    """A listening Unix socket in a folder of mode 0700. Both belong to this process; `close` removes them.

    Attributes:
      path: The socket's path.
      socket: The listening socket.
    """

    def __init__(self, backlog: int, *, parent: Path | None = None) -> None:
        """Starts to listen.

        Args:
          backlog: Connections that may wait to be accepted.
          parent: Parent of the folder; by default one with a short path.
        """
        self._folder = os.path.join(parent or _parent(), f"workbench-{secrets.token_hex(8)}")
        self.path = os.path.join(self._folder, _SOCKET)
        os.mkdir(self._folder, 0o700)
        self.socket = forks.descriptor(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        self._process = os.getpid()
        unfinished = os.path.join(self._folder, _UNFINISHED)
        try:
            os.chmod(self._folder, 0o700)  # regardless of the umask
            # Gets its final name only once it listens: until then, `sweep` would take it for a killed process's.
            self.socket.bind(unfinished)
            os.chmod(unfinished, 0o600)  # not needed, as the folder protects it already
            self.socket.listen(backlog)
            os.rename(unfinished, self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)
            self.close()
            raise

    def close(self) -> None:
        """Stops listening and removes socket and folder, unless they are another process's. Idempotent."""
        self.socket.close()
        if os.getpid() != self._process:
            return
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        with contextlib.suppress(OSError):  # already gone, or it contains foreign files, which stay
            os.rmdir(self._folder)


def sweep(parent: str | Path | None = None) -> None:
    """Removes the socket folders that killed processes of this user have left, in which nothing listens.

    A folder is removed only if its name, owner and mode are as expected and it contains nothing but a socket that
    refuses connections. Everything else stays.
    """
    with contextlib.suppress(OSError), os.scandir(parent or _parent()) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                with contextlib.suppress(OSError):  # another process removes it, too
                    _remove_abandoned(Path(entry.path))


def _remove_abandoned(folder: Path) -> None:
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) != 0o700:
        return
    inside = os.listdir(folder)
    if inside == [_SOCKET]:
        if not _refuses(folder / _SOCKET):
            return
    elif inside not in ([], [_UNFINISHED]) or time.time() - about.st_mtime < _UNFINISHED_SECONDS:
        return  # a process may just be making one
    for name in inside:
        path = folder / name
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return
        path.unlink()
    folder.rmdir()


def _refuses(path: Path) -> bool:
    """Whether `path` is a socket that nothing listens on. Connecting to another kind of file is refused, too."""
    if not stat.S_ISSOCK(path.lstat().st_mode):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_SECONDS)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
    return False
