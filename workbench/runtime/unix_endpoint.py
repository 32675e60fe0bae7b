"""A Unix socket in an owner-only directory on which a worker waits for its driver."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from workbench.errors import UnavailableError
from workbench.runtime.links import Link, UnixLink

_PREFIX = "wb-"
_PARENT = "/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir()
_HELLO = struct.Struct("<H")
_HANDSHAKE_SECONDS = 5.0


class UnixEndpoint:
    """Accepts connections of this user's processes that know the token.

    Attributes:
      path: The socket's path.
    """

    def __init__(self, accept: Callable[[Link, str, str], None]) -> None:
        """Starts listening; `accept(link, token, purpose)` gets every connection of the same user."""
        _sweep()
        self._accept = accept
        # mkdtemp makes the directory with mode 0700; the path stays far below the 108 bytes that sockets
        # allow.
        self._directory = tempfile.mkdtemp(prefix=_PREFIX, dir=_PARENT)
        self.path = os.path.join(self._directory, "s")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Under its name only once it listens: before, it would look like that of a killed worker (`_sweep`).
        self._socket.bind(self.path + ".new")
        self._socket.listen(8)
        os.rename(self.path + ".new", self.path)
        self._thread = threading.Thread(target=self._serve, name="workbench-endpoint", daemon=True)
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
                sock.settimeout(_HANDSHAKE_SECONDS)
                hello = _read_hello(sock)
                sock.settimeout(None)
                self._accept(UnixLink(sock), str(hello["token"]), str(hello["purpose"]))
            except Exception:  # a stranger's bytes may raise anything, and must not end this thread
                sock.close()

    def close(self) -> None:
        """Stops listening and removes the directory. Idempotent."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        shutil.rmtree(self._directory, ignore_errors=True)


def _sweep() -> None:
    """Removes the directories of this user's workers that were killed: nobody listens there any more."""
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


def connect(path: str, token: str, purpose: str) -> UnixLink:
    """The driver's end of a link to the worker that listens at `path`.

    Raises:
      UnavailableError: if nobody listens there, or it is another user's process.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(_HANDSHAKE_SECONDS)
        sock.connect(path)
        if peer_uid(sock) != os.getuid():
            raise PermissionError("the socket belongs to another user")
        body = json.dumps({"token": token, "purpose": purpose}).encode()
        sock.sendall(_HELLO.pack(len(body)) + body)
        sock.settimeout(None)
    except OSError as error:
        sock.close()
        raise UnavailableError(f"cannot open the {purpose} link to the worker at {path}: {error}") from error
    return UnixLink(sock)


def peer_uid(sock: socket.socket) -> int:
    """User id of the process at the other end."""
    if hasattr(socket, "SO_PEERCRED"):
        _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(uid)
    return os.getuid()  # no credentials on this system: the owner-only directory is the protection


def _read_hello(sock: socket.socket) -> dict[str, object]:
    """The first frame of a connection: JSON, so that nothing is unpickled before the token is checked."""
    (size,) = _HELLO.unpack(_read_exactly(sock, _HELLO.size))
    hello = json.loads(_read_exactly(sock, size))
    if not isinstance(hello, dict):
        raise ValueError("not a workbench handshake")
    return hello


def _read_exactly(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = sock.recv(count - len(data))
        if not part:
            raise OSError("connection closed during the handshake")
        data += part
    return data
