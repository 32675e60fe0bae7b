"""A Unix socket in an owner-only directory, where a worker waits for its driver."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Callable

from workbench.errors import UnavailableError
from workbench.runtime.comm.links import Link, UnixLink
from workbench.runtime.comm.unix_listener import UnixListener, peer_uid

_HELLO = struct.Struct("<H")
_HANDSHAKE_SECONDS = 5.0


class UnixEndpoint:
    """Accepts connections from processes of the same user that know the token.

    Attributes:
      path: The socket's path.
    """

    def __init__(
        self,
        accept: Callable[[Link, str, str], None],
        visit: Callable[[socket.socket, str, str], bool] = lambda sock, token, purpose: False,
    ) -> None:
        """Starts listening.

        Args:
          accept: Called as `accept(link, token, purpose)` with every connection from the same user.
          visit: Called as `visit(sock, token, purpose)` first; returns True if that has finished with the connection.
        """
        self._accept = accept
        self._visit = visit
        self._listener = UnixListener(self._greet, thread_name="workbench-endpoint")
        self.path = self._listener.path

    def _greet(self, sock: socket.socket) -> None:
        sock.settimeout(_HANDSHAKE_SECONDS)
        hello = _read_hello(sock)
        token, purpose = str(hello["token"]), str(hello["purpose"])
        if self._visit(sock, token, purpose):
            sock.close()
            return
        sock.settimeout(None)
        self._accept(UnixLink(sock), token, purpose)

    def close(self) -> None:
        """Stops listening and removes the directory. Idempotent."""
        self._listener.close()


def connect(path: str, token: str, purpose: str) -> UnixLink:
    """Opens the driver's end of a link to the worker that listens at `path`.

    Args:
      path: The socket of the worker.
      token: The secret of the worker.
      purpose: What the link is for, such as "control".

    Raises:
      UnavailableError: if nothing listens there, or another user's process does.
    """
    sock = greeted(path, token, purpose)
    sock.settimeout(None)
    return UnixLink(sock)


def greeted(path: str, token: str, purpose: str) -> socket.socket:
    """Opens a connection to the worker that listens at `path`, and sends the token and the purpose.

    Args:
      path: The socket of the worker.
      token: The secret of the worker.
      purpose: What the connection is for, such as "control".

    Raises:
      UnavailableError: as `connect`.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(_HANDSHAKE_SECONDS)
        sock.connect(path)
        if peer_uid(sock) != os.getuid():
            raise PermissionError("the socket belongs to another user")
        body = json.dumps({"token": token, "purpose": purpose}).encode()
        sock.sendall(_HELLO.pack(len(body)) + body)
    except OSError as error:
        sock.close()
        raise UnavailableError(f"cannot open the {purpose} link to the worker at {path}: {error}") from error
    return sock


def _read_hello(sock: socket.socket) -> dict[str, object]:
    """Reads the first frame of a connection. It is JSON, so nothing is unpickled before the token is checked."""
    (size,) = _HELLO.unpack(read_exactly(sock, _HELLO.size))
    hello = json.loads(read_exactly(sock, size))
    if not isinstance(hello, dict):
        raise ValueError("not a workbench handshake")
    return hello


def read_exactly(sock: socket.socket, count: int) -> bytes:
    """Reads the next `count` bytes.

    Raises:
      OSError: if the connection ends early.
    """
    data = b""
    while len(data) < count:
        part = sock.recv(count - len(data))
        if not part:
            raise OSError("connection closed during the handshake")
        data += part
    return data
