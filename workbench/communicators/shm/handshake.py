"""Connects the processes of one host over Unix sockets, which then exchange file descriptors.

Every process listens in a directory that only its owner can enter. A connecting process must belong to the same user
and show the token of the process that it connects to. The connection stays open: its end shows that the peer is gone.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path

from workbench import forks
from workbench.communicators.core.socket_folder import SocketFolder
from workbench.errors import DeadlineExceededError, StaleGeneration, UnavailableError

_MAX_HELLO_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Peer:
    """Another process of the host.

    Attributes:
      process: Its name.
      socket: Open as long as the peer lives.
      memory_fd: Its shared file.
      wake_fd: Wakes it.
    """

    process: str
    socket: socket.socket
    memory_fd: int
    wake_fd: int

    def close(self) -> None:
        """Closes all descriptors."""
        self.socket.close()
        os.close(self.memory_fd)
        os.close(self.wake_fd)


class Listener:
    """Listens on a Unix socket in an owner-only directory; both are removed by `close`.

    Attributes:
      path: The path of the socket.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._folder = SocketFolder(128, parent=directory)
        self._socket = self._folder.socket
        self.path = self._folder.path

    def accept(self, deadline: float) -> socket.socket:
        """The next connection from the same user; `deadline` is a `time.monotonic` time."""
        while True:
            self._socket.settimeout(_left(deadline))
            connection, _ = self._socket.accept()
            if _same_user(connection):
                return connection
            connection.close()

    def close(self) -> None:
        """Stops listening and removes the directory."""
        self._folder.close()


@dataclass(frozen=True, slots=True)
class Hello:
    """How a process introduces itself.

    Attributes:
      process: Its name.
      group: Group and generation; both sides must agree.
      token: The token of its own `Address`, which peers must show.
    """

    process: str
    group: str
    token: str


def meet(
    me: Hello,
    listener: Listener,
    addresses: Sequence[tuple[str, str, str]],
    fds: Sequence[int],
    deadline: float,
) -> list[Peer]:
    """Connects all processes of a host with each other.

    Args:
      me: This process.
      listener: Where the others connect to this one.
      addresses: Process, path and token of every process of the host, this one included, in the same order everywhere.
      fds: This process's memory and wake descriptors.
      deadline: A `time.monotonic` time.

    Returns:
      The other processes, in the order of `addresses`.

    Raises:
      DeadlineExceededError: if processes did not connect in time; it names them.
    """
    names = [process for process, _, _ in addresses]
    position = names.index(me.process)
    peers: dict[str, Peer] = {}
    try:
        # Each process connects to those before it, then waits for those after it; the first one only waits.
        for process, path, token in addresses[:position]:
            connection = _connect(path, deadline)
            _send(connection, {"process": me.process, "group": me.group, "token": token}, fds)
            peers[process] = _receive(connection, me, deadline)
        while len(peers) < len(addresses) - 1:
            connection = listener.accept(deadline)
            try:
                peer = _receive(connection, me, deadline, names[position + 1 :])
            except UnavailableError:
                continue  # a stranger, which gets no answer; keep waiting
            peers[peer.process] = peer  # so that it is closed with the others if answering fails
            _send(connection, {"process": me.process, "group": me.group, "token": ""}, fds)
    except BaseException as error:
        for peer in peers.values():
            peer.close()
        if isinstance(error, TimeoutError):
            missing = [name for name in names if name != me.process and name not in peers]
            raise DeadlineExceededError(f"process {', '.join(missing)} did not connect in time") from error
        raise
    return [peers[name] for name in names if name != me.process]


def _connect(path: str, deadline: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(_left(deadline))
        connection.connect(path)
        if not _same_user(connection):
            raise UnavailableError(f"another user listens on {path}")
    except BaseException:
        connection.close()
        raise
    return connection


def _send(connection: socket.socket, hello: dict[str, str], fds: Sequence[int]) -> None:
    try:
        socket.send_fds(connection, [json.dumps(hello).encode() + b"\n"], list(fds))
    except BaseException:
        connection.close()
        raise


def _receive(
    connection: socket.socket, me: Hello, deadline: float, accepted: Sequence[str] | None = None
) -> Peer:
    """Reads a hello. If `accepted` is given, it must show our token and come from one of those processes."""
    fds: list[int] = []
    try:
        text = b""
        while not text.endswith(b"\n"):
            connection.settimeout(_left(deadline))
            data, new, _, _ = socket.recv_fds(connection, _MAX_HELLO_BYTES, 2)
            fds += new
            text += data
            if not data or len(text) > _MAX_HELLO_BYTES:
                raise UnavailableError("a peer ended the connection before it identified itself")
        hello = _parsed(text)
        if accepted is not None and not (
            compare_digest(hello["token"].encode(), me.token.encode()) and hello["process"] in accepted
        ):
            raise UnavailableError("a connection showed no valid token")
        if hello["group"] != me.group:
            raise StaleGeneration(
                f"process {hello['process']} connects for {hello['group']}, here is {me.group}"
            )
        if len(fds) != 2:
            raise UnavailableError(f"process {hello['process']} sent {len(fds)} descriptors instead of 2")
        for fd in fds:
            os.set_inheritable(fd, False)
        connection.setblocking(False)
        forks.descriptor(connection)  # its end shows that a process is gone, even if that process has forked
        return Peer(hello["process"], connection, *fds)
    except BaseException:
        connection.close()
        for fd in fds:
            os.close(fd)
        raise


def _parsed(text: bytes) -> dict[str, str]:
    try:
        hello = json.loads(text)
        return {name: str(hello[name]) for name in ("process", "group", "token")}
    except (ValueError, KeyError, TypeError) as error:
        raise UnavailableError("a connection did not introduce itself") from error


def _same_user(connection: socket.socket) -> bool:
    if not hasattr(socket, "SO_PEERCRED"):
        return True  # the directory admits no other user
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return bool(user == os.getuid())


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
