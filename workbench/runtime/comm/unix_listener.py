"""A Unix socket in an owner-only directory, which admits only processes of the same user."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable

from workbench.communicators.core.socket_folder import SocketFolder, sweep


class UnixListener:
    """Hands over every connection from processes of the same user.

    Attributes:
      path: The socket's path.
    """

    def __init__(self, accept: Callable[[socket.socket], None], *, thread_name: str) -> None:
        """Starts listening. `accept(sock)` takes over the connection, which is closed if it raises."""
        sweep()
        self._accept = accept
        self._folder = SocketFolder(8)
        self._socket = self._folder.socket
        self.path = self._folder.path
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
            except Exception:  # a stranger's bytes may raise any error, which must not end this thread
                sock.close()

    def close(self) -> None:
        """Stops listening and removes the directory. Idempotent."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._folder.close()


def peer_uid(sock: socket.socket) -> int:
    """User id of the process at the other end."""
    if hasattr(socket, "SO_PEERCRED"):
        _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(uid)
    return os.getuid()  # this system has no peer credentials; the owner-only directory protects the socket
