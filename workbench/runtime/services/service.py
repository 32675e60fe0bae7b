"""Service: a thread per connection answers requests, for as long as the driver holds its lease."""

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
    """Where a service is, and what it takes to be let in.

    Attributes:
      host: IP address or name.
      port: TCP port.
      name: What it is called, such as "ps:0".
      token: What a client must show.
    """

    host: str
    port: int
    name: str
    token: str

    def __repr__(self) -> str:
        return f"{self.name} at {self.host}:{self.port}"


class Superseded(Exception):
    """Another process has taken the place of this service, which answers nobody from now on."""


class Answers(Protocol):
    """What answers requests; a thread per connection calls it."""

    def answer(self, fields: Fields, arrays: list[Array]) -> Reply:
        """The reply to one request; raises `Superseded` where the service must end."""

    def close(self) -> None:
        """Nobody asks any more."""


class Service:
    """Listens until it is stopped, or the driver's lease ends: with its process, its connection, or by its wish.

    Attributes:
      address: Where clients connect.
    """

    def __init__(self, name: str, answers: Answers) -> None:
        """Starts to listen where other workers reach this one."""
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
            with contextlib.suppress(OSError, UnavailableError, ValueError):  # a stranger may do anything
                deadline = time.monotonic() + _HELLO_SECONDS
                sock = self._listener.accept_next(self.address.name, self.address.token, deadline)
                self._begin(sock)
        self._end()

    def _begin(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # for a peer whose machine is gone
        sock.settimeout(None)  # an idle client is no error, and `_end` shuts the socket down
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
            if over:  # the driver waits for the end of this connection, which ends with the service
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
          OSError: if nobody answers there in time.
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
        """Has the connection break when the service's machine is out of reach for ten seconds.

        The kernels ask each other, so a service that computes, or is stopped, is not out of reach.
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
        """The next reply; None waits until the service ends."""
        if timeout_seconds != self._sock.gettimeout():
            self._sock.settimeout(timeout_seconds)
        return receive(self._sock)

    def wait(self, timeout_seconds: float) -> bool:
        """Whether a reply begins to come within this time."""
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        poll = select.poll()  # select.select does not support descriptors beyond 1,023
        poll.register(self._sock, select.POLLIN)
        return bool(poll.poll(timeout_seconds * 1000))

    def ask(self, fields: Fields, arrays: Sequence[Array] = ()) -> tuple[Fields, list[Array]]:
        """A request and its reply."""
        send(self._sock, fields, arrays)
        return self.receive()

    def finish(self, timeout_seconds: float) -> None:
        """Says goodbye, and waits until the service has closed its end; then closes this one."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)
            self._sock.settimeout(timeout_seconds)
            while self._sock.recv(4096):
                pass
        self._sock.close()

    def wake(self) -> None:
        """Ends the connection under a thread that waits for it."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Closes it; for the service, its client has gone."""
        self.wake()
        self._sock.close()


def own_network() -> tuple[str, Tls | None]:
    """Where and how other processes of the cluster reach this worker; and its TLS, None on loopback."""
    side = next(iter(tuple(IN_PROCESS.values())), None)
    return ("127.0.0.1", None) if side is None else network_of(side.dask_worker)


def start_service(name: str, answers: Answers) -> ServiceAddress:
    """Starts a service in this worker's process; it lives until its lease ends."""
    return Service(name, answers).address
