"""Service: answers requests with a thread per connection, as long as the driver holds its lease."""

from __future__ import annotations

import contextlib
import secrets
import select
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from workbench import forks
from workbench.communicators.core.tcp import TcpListener, Tls, connect
from workbench.errors import UnavailableError
from workbench.runtime.comm.links import Wakeup
from workbench.runtime.deploy.plugin import IN_PROCESS, network_of
from workbench.runtime.services.frames import Array, Fields, error_fields, receive, send

_HELLO_SECONDS: Final = 5.0
_LEASE_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 10.0
_PEER_SECONDS: Final = 10
_SEND_SECONDS: Final = 600.0
Reply = tuple[Fields, Sequence[Array]]


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """The address of a service, and the token for access.

    Attributes:
      host: IP address or name.
      port: TCP port.
      name: Name of the service, such as "ps:0".
      token: The secret that a client must show.
    """

    host: str
    port: int
    name: str
    token: str

    def __repr__(self) -> str:
        return f"{self.name} at {self.host}:{self.port}"


class Superseded(Exception):
    """Another process has replaced this service, which does not answer any more."""


class Answers(Protocol):
    """Answers requests; called by a thread per connection."""

    def answer(self, fields: Fields, arrays: list[Array]) -> Reply:
        """The reply to one request; raises `Superseded` if the service must end."""

    def close(self) -> None:
        """Called when no more requests follow."""


class Service:
    """Listens until it is stopped or the driver's lease ends, with its process, its connection, or on request.

    Attributes:
      address: The address for clients.
    """

    def __init__(self, name: str, answers: Answers) -> None:
        """Starts to listen on the address at which other workers reach this one."""
        host, tls = own_network()
        self._listener = TcpListener(host, tls)
        self._answers = answers
        self._lock = forks.lock(threading.Lock())
        self._open: set[socket.socket] = set()
        self._leased_by = time.monotonic() + _LEASE_SECONDS
        self._leases = 0
        self._last_lease: socket.socket | None = None
        self._had_lease = False
        self._wakeup = Wakeup()
        self._stopped = False
        where, port = self._listener.address
        self.address = ServiceAddress(where, port, name, secrets.token_hex(16))
        self._thread = threading.Thread(target=self._listen, name=f"wb-{name}", daemon=True)
        self._threads: set[threading.Thread] = set()
        self._thread.start()

    def _listen(self) -> None:
        poll = select.poll()
        poll.register(self._listener.fd, select.POLLIN)
        poll.register(self._wakeup.fileno(), select.POLLIN)
        while not self._stopped:
            left = None if self._had_lease else max(0.0, self._leased_by - time.monotonic())
            if left == 0.0:
                break  # the driver that requested this service ended before it started
            poll.poll(None if left is None else left * 1000)
            if self._stopped:
                break
            with contextlib.suppress(OSError, UnavailableError, ValueError):  # a stranger may send anything
                deadline = time.monotonic() + _HELLO_SECONDS
                sock = self._listener.accept_next(self.address.name, self.address.token, deadline)
                self._begin(sock)
        self._end()

    def _begin(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # detects a peer whose machine is gone
        sock.settimeout(None)  # an idle client is not an error, and `_end` shuts the socket down
        thread = threading.Thread(
            target=self._serve, args=(sock,), name=f"wb-{self.address.name}-client", daemon=True
        )
        with self._lock:
            self._open.add(forks.descriptor(sock))
            self._threads.add(thread)
        thread.start()

    def _serve(self, sock: socket.socket) -> None:
        leased = False
        try:
            while not self._stopped:
                fields, arrays = receive(sock)
                if fields.get("method") == "lease":
                    leased = self._had_lease = True
                    with self._lock:
                        self._leases += 1
                    send(sock, {})
                    continue
                try:
                    reply: Reply = self._answers.answer(fields, arrays)
                except Superseded:
                    self._stopped = True
                    self._wakeup.set()
                    break
                except Exception as error:
                    reply = {"error": error_fields(error)}, ()
                send(sock, *reply)
        except OSError:
            pass  # the peer is gone, or uses another protocol
        finally:
            with self._lock:
                self._leases -= leased
                over = leased and not self._leases
                self._threads.discard(threading.current_thread())
                self._open.discard(sock)
                if over:
                    self._last_lease = sock
                else:
                    sock.close()
            if over:  # the driver waits for the service's end, which this connection's end shows
                self._stopped = True
                self._wakeup.set()

    def _end(self) -> None:
        self._stopped = True
        self._listener.close()
        with self._lock:
            threads = [thread for thread in self._threads if thread is not threading.current_thread()]
            for sock in self._open:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(_STOP_SECONDS)
        try:
            self._answers.close()
        finally:
            if self._last_lease is not None:
                self._last_lease.close()


class Connection:
    """A client's connection to a service: one request at a time. Any thread may close it."""

    def __init__(self, address: ServiceAddress, tls: Tls | None, timeout_seconds: float = 10.0) -> None:
        """Connects.

        Raises:
          OSError: if nothing answers there in time.
          UnavailableError: if the service refuses.
        """
        deadline = time.monotonic() + timeout_seconds
        try:
            sock = connect((address.host, address.port), address.name, address.token, tls, deadline)
        except UnavailableError as error:
            raise ConnectionError(str(error)) from error
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(None)
        self._sock = forks.descriptor(sock)

    def watch_peer(self) -> None:
        """Makes the connection break when the service's machine is unreachable for ten seconds.

        The kernels probe each other, so a service that is busy or stopped counts as reachable.
        """
        for option, value in (
            (socket.TCP_USER_TIMEOUT, 1000 * _PEER_SECONDS),
            (socket.TCP_KEEPIDLE, _PEER_SECONDS // 2),
            (socket.TCP_KEEPINTVL, 1),
            (socket.TCP_KEEPCNT, _PEER_SECONDS // 2),
        ):
            self._sock.setsockopt(socket.IPPROTO_TCP, option, value)
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def send(self, fields: Fields, arrays: Sequence[Array] = ()) -> None:
        """Sends a request."""
        send(self._sock, fields, arrays)

    def receive(self, timeout_seconds: float | None = _SEND_SECONDS) -> tuple[Fields, list[Array]]:
        """The next reply; with None, waits until the service ends."""
        if timeout_seconds != self._sock.gettimeout():
            self._sock.settimeout(timeout_seconds)
        return receive(self._sock)

    def wait(self, timeout_seconds: float) -> bool:
        """Whether a reply begins to arrive within this time."""
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        poll = select.poll()  # select.select does not support descriptors beyond 1,023
        poll.register(self._sock, select.POLLIN)
        return bool(poll.poll(timeout_seconds * 1000))

    def ask(self, fields: Fields, arrays: Sequence[Array] = ()) -> tuple[Fields, list[Array]]:
        """Sends a request and returns its reply."""
        send(self._sock, fields, arrays)
        return self.receive()

    def finish(self, timeout_seconds: float) -> None:
        """Announces the end, waits until the service has closed its side, then closes this one."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)
            self._sock.settimeout(timeout_seconds)
            while self._sock.recv(4096):
                pass
        self._sock.close()

    def wake(self) -> None:
        """Ends the connection while another thread waits for it."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Closes it; the service then sees the client as gone."""
        self.wake()
        self._sock.close()


def own_network() -> tuple[str, Tls | None]:
    """The host at which other processes of the cluster reach this worker, and its TLS settings, None on loopback."""
    side = next(iter(tuple(IN_PROCESS.values())), None)
    return ("127.0.0.1", None) if side is None else network_of(side.dask_worker)


def start_service(name: str, answers: Answers) -> ServiceAddress:
    """Starts a service in this worker's process; it lives until its lease ends."""
    return Service(name, answers).address
