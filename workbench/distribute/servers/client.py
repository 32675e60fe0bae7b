"""ServerClient: a process's access to the parameter servers of a strategy."""

from __future__ import annotations

import secrets
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from workbench import faults, forks
from workbench.communicators.core.tcp import Tls
from workbench.distribute.servers.streams import Stream, current_stream
from workbench.errors import FailedPreconditionError, UnavailableError
from workbench.runtime.services.frames import Array, Fields, raised_by
from workbench.runtime.services.service import Connection, ServiceAddress

Arrays: TypeAlias = Sequence[Array] | Callable[[], Sequence[Array]]
"""A request's arrays, or a function that makes them for each sending."""
Request: TypeAlias = tuple[int, Fields, Arrays]
"""Number of a server, and the request."""
Reply: TypeAlias = tuple[Fields, list[Array]]
_MOST_TOGETHER: Final = 64
"""How many small updates to send before reading their replies."""
_clients: weakref.WeakValueDictionary[str, ServerClient] = weakref.WeakValueDictionary()


class ServerLost(UnavailableError):
    """A parameter server does not answer in a scheduled function, which runs again once the server is back.

    Attributes:
      server: Its number.
    """

    def __init__(self, message: str = "", *, server: int = -1) -> None:
        super().__init__(message)
        self.server = server


@dataclass(slots=True, weakref_slot=True)
class _Line:
    """This process's connection to one server. The lock keeps requests one at a time, in the order of their numbers."""

    address: ServiceAddress
    connection: Connection | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class ServerClient:
    """Sends requests to the parameter servers of one strategy. Any thread.

    Attributes:
      addresses: The address of each server.
    """

    def __init__(
        self,
        strategy: str,
        addresses: Sequence[ServiceAddress],
        tls: Tls | None,
        restore: Callable[[int, ServiceAddress], ServiceAddress] | None = None,
    ) -> None:
        """Connects at the first request.

        Args:
          strategy: Id of the strategy.
          addresses: One per server.
          tls: TLS settings for servers on other hosts.
          restore: In the notebook: (server, its former address) -> its new address.
        """
        self._lines = [_Line(address, lock=forks.lock(threading.Lock())) for address in addresses]
        self._tls = tls
        self._restore = restore
        self._own = Stream(secrets.token_hex(8))
        self._closed = False
        _clients[strategy] = self

    @property
    def addresses(self) -> list[ServiceAddress]:
        """The address of each server."""
        return [line.address for line in self._lines]

    @property
    def stream(self) -> Stream:
        """The stream of the calling thread's updates."""
        return current_stream() or self._own

    def last_read(self, key: str) -> Fields:
        """The version of a variable that the running scheduled function has read, for the server's statistics."""
        stream = current_stream()
        read = None if stream is None else stream.versions.get(key)
        return {} if read is None else {"read": read}

    def follow(self, addresses: Sequence[ServiceAddress]) -> None:
        """In workers: takes the servers' addresses from the notebook."""
        if self._restore is None:
            for server, address in enumerate(addresses):
                self.move(server, address)

    def move(self, server: int, address: ServiceAddress) -> None:
        """Sets the new address of a server."""
        line = self._lines[server]
        if line.address != address:
            with line.lock:
                line.address = address
                _drop(line)

    def read(self, server: int, fields: Fields, arrays: Sequence[Array] = ()) -> list[Array]:
        """Reads values of a variable.

        Args:
          server: Number of the server.
          fields: The request.
          arrays: Arrays that the request needs, such as indices of rows.

        Raises:
          ServerLost: if the server is gone, in a scheduled function.
          UnavailableError: if it does not come back, elsewhere.
        """
        return self.read_all([(server, fields, arrays)])[0]

    def write(self, server: int, fields: Fields, arrays: Sequence[Array] = ()) -> Fields:
        """Applies a change on a server, once, even if the request must be repeated; see `read`.

        Args:
          server: Number of the server.
          fields: The request.
          arrays: Arrays that the request needs, such as the value to add.
        """
        return self.write_all([(server, fields, arrays)])[0]

    def read_all(self, requests: Sequence[Request]) -> list[list[Array]]:
        """Reads values of several variables, from all their servers at once; see `read`."""
        replies = self._ask(requests, None)
        versions = self.stream.versions
        for (_, fields, _), (reply, _) in zip(requests, replies, strict=True):
            versions[fields["key"]] = reply["version"]
        return [values for _, values in replies]

    def write_all(self, requests: Sequence[Request]) -> list[Fields]:
        """Applies changes on several servers at once; see `write`.

        If one server refuses, others may have made their changes.
        """
        return [reply for reply, _ in self._ask(requests, self.stream)]

    def ask_all(self, requests: Sequence[Request]) -> list[Reply]:
        """Sends other requests to several servers at once; see `read`."""
        return self._ask(requests, None)

    def ask(self, server: int, fields: Fields) -> Fields:
        """Sends another request; see `read`."""
        return self._ask([(server, fields, ())], None)[0][0]

    def _ask(self, requests: Sequence[Request], stream: Stream | None) -> list[Reply]:
        """Sends requests to different servers at once; each gets one at a time, or several updates in a row."""
        most = 1 if stream is None else _MOST_TOGETHER
        replies: dict[int, Reply] = {}
        left = list(enumerate(requests))
        while left:
            counts: dict[int, int] = {}
            wave: list[tuple[int, Request]] = []
            later: list[tuple[int, Request]] = []
            for each in left:
                server = each[1][0]
                counts[server] = count = counts.get(server, 0) + 1
                (wave if count <= most else later).append(each)
            left = later
            held: list[threading.Lock] = []
            try:
                for server in sorted(counts):  # in a fixed order, so that two threads cannot deadlock
                    lock = self._lines[server].lock
                    lock.acquire()
                    held.append(lock)
                numbered = []
                for _, request in wave:
                    if stream is not None:
                        server, fields, arrays = request
                        request = server, {**fields, **stream.next_origin(server)}, arrays
                    numbered.append(request)
                found = self._wave(numbered)
            finally:
                for lock in held:
                    lock.release()
            for (number, _), reply in zip(wave, found, strict=True):
                if "error" in reply[0]:
                    raise raised_by(reply[0]["error"])
                replies[number] = reply
        return [replies[number] for number in range(len(requests))]

    def _wave(self, requests: Sequence[Request]) -> list[Reply]:
        """Sends requests to servers whose lines the caller has locked; each server answers in order."""
        replies: dict[int, Reply] = {}
        lost: dict[int, OSError] = {}
        try:
            for server, fields, arrays in requests:
                if server not in lost:
                    try:
                        self._send(server, fields, arrays)
                    except OSError as error:
                        lost[server] = error
            for number, (server, _, _) in enumerate(requests):
                if server not in lost:
                    try:
                        replies[number] = self._receive(server)
                    except OSError as error:
                        lost[server] = error
            for number, request in enumerate(requests):
                if number not in replies:
                    replies[number] = self._again(*request, lost.pop(request[0], None))
        except BaseException:
            for server, _, _ in requests:  # a reply may still arrive
                _drop(self._lines[server])
            raise
        return [replies[number] for number in range(len(requests))]

    def _again(self, server: int, fields: Fields, arrays: Arrays, error: OSError | None) -> Reply:
        """Repeats a request to a server that did not answer, once the server is restored.

        Args:
          server: The server's number.
          fields: The request.
          arrays: The request's arrays.
          error: Why it did not answer; None if an earlier request failed and the server has already been restored.
        """
        line = self._lines[server]
        while True:
            if error is not None:
                _drop(line)
                if self._restore is None or current_stream() is not None:
                    raise ServerLost(f"{line.address} does not answer: {error}", server=server) from error
                line.address = self._restore(server, line.address)
            try:
                self._send(server, fields, arrays)
                return self._receive(server)
            except OSError as another:
                error = another

    def _send(self, server: int, fields: Fields, arrays: Arrays) -> None:
        if self._closed:
            raise FailedPreconditionError("the parameter servers were stopped: their strategy was closed")
        line = self._lines[server]
        if line.connection is None:
            line.connection = Connection(line.address, self._tls)
            line.connection.watch_peer()
        line.connection.send(fields, arrays() if callable(arrays) else arrays)
        faults.fault("servers.sent")

    def _receive(self, server: int) -> Reply:
        connection = self._lines[server].connection
        assert connection is not None  # bytes were already sent on it
        return connection.receive()

    def close(self) -> None:
        """Ends all connections."""
        self._closed = True
        for line in self._lines:
            if line.connection is not None:
                line.connection.wake()
            if line.lock.acquire(timeout=10.0):
                try:
                    _drop(line)
                finally:
                    line.lock.release()


def _drop(line: _Line) -> None:
    connection, line.connection = line.connection, None
    if connection is not None:
        connection.close()


def client_of(strategy: str) -> ServerClient:
    """This process's client of a strategy's servers.

    Raises:
      FailedPreconditionError: if it has none.
    """
    client = _clients.get(strategy)
    if client is None:
        raise FailedPreconditionError(
            "variables on parameter servers can be used in the notebook and in functions that "
            "ClusterCoordinator.schedule runs; here is neither, or the strategy was closed"
        )
    return client


def known_client(strategy: str) -> ServerClient | None:
    """This process's client of a strategy's servers, if it has one."""
    return _clients.get(strategy)
