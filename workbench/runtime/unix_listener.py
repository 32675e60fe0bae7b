"""A Unix socket in an owner-only directory, at which only processes of the same user are let in."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

_PREFIX = "wb-"
_PARENT = "/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir()


class UnixListener:
    """Hands over every connection of this user's processes.

    Attributes:
      path: The socket's path.
    """

    def __init__(self, accept: Callable[[socket.socket], None], *, thread_name: str) -> None:
        """Starts listening; `accept(sock)` owns the connection, or raises, upon which it is closed."""
        _sweep()
        self._accept = accept
        # mkdtemp makes the directory with mode 0700; the path stays far below the 108 bytes that sockets
        # allow.
        self._directory = tempfile.mkdtemp(prefix=_PREFIX, dir=_PARENT)
        self.path = os.path.join(self._directory, "s")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Under its name only once it listens: before, it would look like that of a killed process (`_sweep`).
        self._socket.bind(self.path + ".new")
        os.chmod(self.path + ".new", 0o600)  # the directory protects it already; nobody has to know that
        self._socket.listen(8)
        os.rename(self.path + ".new", self.path)
        self._thread = threading.Thread(target=self._serve, name=thread_name, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._socket.accept()
            except OSError:
                return
            try:
                if peer_uid(sock) != os.getuid():
                    raise PermissionError("connection of another user")
                self._accept(sock)
            except Exception:  # a stranger's bytes may raise anything, and must not end this thread
                sock.close()

    def close(self) -> None:
        """Stops listening and removes the directory. Idempotent."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        shutil.rmtree(self._directory, ignore_errors=True)


def peer_uid(sock: socket.socket) -> int:
    """User id of the process at the other end."""
    if hasattr(socket, "SO_PEERCRED"):
        _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(uid)
    return os.getuid()  # no credentials on this system: the owner-only directory is the protection


def _sweep() -> None:
    """Removes the directories of this user's processes that were killed: nobody listens there any more."""
    for directory in Path(_PARENT).glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):
            if directory.lstat().st_uid != os.getuid() or not directory.is_dir():
                continue
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.settimeout(1.0)
                try:
                    probe.connect(str(directory / "s"))
                except ConnectionRefusedError:
                    shutil.rmtree(directory, ignore_errors=True)
