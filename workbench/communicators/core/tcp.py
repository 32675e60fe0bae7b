"""Connects hosts over TCP in a ring: each connects to the next one and accepts the one before.

A connecting host must show the token of the host that it connects to. Off loopback, TLS is required.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import ssl
import time
from dataclasses import dataclass
from hmac import compare_digest

from workbench.errors import DeadlineExceededError, StaleGeneration, UnavailableError, UnsafeBind

_MAX_HELLO_BYTES = 1024
_BUFFER_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS contexts of one process.

    Attributes:
      server: For accepted connections; should require a certificate of the peer.
      client: For connections to others.
    """

    server: ssl.SSLContext
    client: ssl.SSLContext


class TcpListener:
    """Listens for the host before this one in the ring.

    Attributes:
      address: Name and port to connect to.
    """

    def __init__(self, bind_host: str, tls: Tls | None) -> None:
        """Listens on a free port.

        Raises:
          UnsafeBind: if `bind_host` is not loopback and there is no TLS.
        """
        if tls is None and not is_loopback(bind_host):
            raise UnsafeBind(
                f"refused to listen on {bind_host} without TLS: replicas on several hosts need a Dask cluster that was "
                f"started with TLS (distributed.Security), those of one host do not"
            )
        family = socket.AF_INET6 if ":" in bind_host else socket.AF_INET
        self._socket = socket.create_server((bind_host, 0), family=family, backlog=128)
        self._tls = tls
        self.address: tuple[str, int] = self._socket.getsockname()[:2]

    def accept(self, group: str, token: str, deadline: float) -> socket.socket:
        """The connection of the host before this one; rejects others.

        Args:
          group: Group and generation that the host must name.
          token: The secret that it must show.
          deadline: A `time.monotonic` time.
        """
        while True:
            try:
                return self.accept_next(group, token, deadline)
            except (UnavailableError, OSError):
                _left(deadline)  # a stranger, or a peer that has gone: continue until the deadline

    def accept_next(self, group: str, token: str, deadline: float) -> socket.socket:
        """The next connection.

        Args:
          group: Group and generation that the host must name.
          token: The secret that it must show.
          deadline: A `time.monotonic` time.

        Raises:
          UnavailableError: if it comes from a stranger or is for another group; it is then closed.
          OSError: if it breaks, or no peer connects in time.
        """
        self._socket.settimeout(_left(deadline))
        connection, _ = self._socket.accept()
        try:
            return self._introduced(connection, group, token, deadline)
        except BaseException:
            connection.close()
            raise

    def _introduced(
        self, connection: socket.socket, group: str, token: str, deadline: float
    ) -> socket.socket:
        # A stranger that sends nothing must not keep the real peer waiting for long.
        connection.settimeout(min(2.0, _left(deadline)))
        if self._tls is not None:
            connection = self._tls.server.wrap_socket(connection, server_side=True)
        hello = read_line(connection)
        if not compare_digest(str(hello.get("token")).encode(errors="surrogatepass"), token.encode()):
            connection.close()
            raise UnavailableError("a connection showed no valid token")
        verdict = "ok" if hello.get("group") == group else f"this is {group}"
        connection.sendall(json.dumps({"verdict": verdict}).encode() + b"\n")
        if verdict != "ok":
            connection.close()
            raise UnavailableError(f"a connection came for {hello.get('group')}, here is {group}")
        return connection

    @property
    def fd(self) -> int:
        """Becomes readable when a peer connects."""
        return self._socket.fileno()

    def close(self) -> None:
        """Stops listening."""
        self._socket.close()


def connect(
    address: tuple[str, int], group: str, token: str, tls: Tls | None, deadline: float
) -> socket.socket:
    """Connects to the next host of the ring.

    Args:
      address: Host and port.
      group: Group and generation to which this host belongs.
      token: The secret of the group.
      tls: Certificates; None connects without TLS.
      deadline: A `time.monotonic` time.

    Raises:
      StaleGeneration: if it belongs to another group or generation.
      UnavailableError: if it refuses the token.
    """
    connection = socket.create_connection(address, _left(deadline))
    try:
        if tls is not None:
            connection = tls.client.wrap_socket(connection, server_hostname=address[0])
        connection.settimeout(_left(deadline))
        connection.sendall(json.dumps({"group": group, "token": token}).encode() + b"\n")
        verdict = read_line(connection).get("verdict")
        if verdict != "ok":
            raise StaleGeneration(f"{address[0]}:{address[1]} answered {verdict!r} to {group}")
    except BaseException:
        connection.close()
        raise
    return connection


def ring_neighbours(
    listener: TcpListener,
    next_address: tuple[str, int],
    *,
    accept_first: bool,
    group: str,
    own_token: str,
    next_token: str,
    tls: Tls | None,
    deadline: float,
) -> tuple[socket.socket, socket.socket]:
    """Connects to the next host and accepts the connection of the one before.

    Args:
      listener: Where the host before connects.
      next_address: Where the next host listens.
      accept_first: True on exactly one host of the ring; otherwise all would wait for each other to accept.
      group: Group and generation, equal on all hosts.
      own_token: The secret that the host before must show.
      next_token: The secret that the next host expects.
      tls: TLS contexts, None on loopback.
      deadline: A `time.monotonic` time.

    Returns:
      The connection from the host before and the one to the next, both non-blocking.

    Raises:
      DeadlineExceededError: if one of the two did not come in time.
    """
    opened: list[socket.socket] = []
    try:
        for accepting in (accept_first, not accept_first):
            if accepting:
                opened.append(listener.accept(group, own_token, deadline))
            else:
                opened.append(connect(next_address, group, next_token, tls, deadline))
    except BaseException as error:
        for connection in opened:
            connection.close()
        if isinstance(error, (TimeoutError, ConnectionRefusedError)):
            raise DeadlineExceededError("a neighbouring host did not connect in time") from error
        raise
    for connection in opened:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
        connection.setblocking(False)
    preceding, following = opened if accept_first else reversed(opened)
    return preceding, following


def read_line(connection: socket.socket) -> dict[str, object]:
    """Reads one line with a JSON object, and no byte beyond it.

    Raises:
      UnavailableError: if something else arrives, or the connection ends.
    """
    line = b""
    while not line.endswith(b"\n"):
        data = connection.recv(1)  # byte by byte, because the ring's bytes follow the line
        if not data or len(line) > _MAX_HELLO_BYTES:
            raise UnavailableError("the other side ended the connection before it identified itself")
        line += data
    try:
        hello = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UnavailableError("the other side did not introduce itself") from error
    if not isinstance(hello, dict):
        raise UnavailableError("the other side did not introduce itself")
    return hello


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches `host`, a name or an IP address of either version."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
