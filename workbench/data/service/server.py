"""A server of the data service: a thread per connection, which answers one request after the other."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Protocol

from workbench import forks
from workbench.data.service.address import Tls, check_bind
from workbench.data.service.wire import Connection, Fields, accepted
from workbench.errors import DataCorruption, UnavailableError
from workbench.runtime.services.frames import error_fields

_STOP_SECONDS = 10.0


class Session:
    """What a server knows about one connection.

    Attributes:
      who: The worker or consumer at the other end, "" if not known yet.
      job: The job that it reads, "" if none.
      index: Its number among the consumers that read the job in rounds; -1 if it does not.
    """

    __slots__ = ("index", "job", "who")

    def __init__(self) -> None:
        self.who = ""
        self.job = ""
        self.index = -1


class Answers(Protocol):
    """Answers requests; any thread may call it."""

    def answer(self, method: str, fields: Fields, payload: bytes, session: Session) -> tuple[Fields, bytes]:
        """The reply to one request.

        Args:
          method: What to do.
          fields: Its arguments.
          payload: Additional bytes.
          session: The connection.
        """

    def ended(self, session: Session) -> None:
        """Called when a connection has ended."""


class Server:
    """Listens until it is stopped.

    Attributes:
      port: The port that it listens on.
    """

    def __init__(self, host: str, port: int, token: str, tls: Tls | None, answers: Answers) -> None:
        """Starts listening.

        Args:
          host: The address to listen on.
          port: The port, 0 for a free one.
          token: The secret that clients must show.
          tls: Certificate and key, None on loopback.
          answers: The object that answers requests.

        Raises:
          UnsafeBind: if other machines can reach `host` and there is no TLS.
          UnavailableError: if the port is taken.
        """
        check_bind(host, tls)
        self._context = None if tls is None else tls.server()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = forks.descriptor(socket.create_server((host, port), family=family, backlog=128))
        except OSError as error:
            raise UnavailableError(f"cannot listen on {host}:{port}: {error}; choose another port") from error
        self.port: int = self._socket.getsockname()[1]
        self._token = token
        self._answers = answers
        self._lock = forks.lock(threading.Lock())
        self._open: dict[Connection, threading.Thread] = {}
        self._threads: set[threading.Thread] = set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="wb-data-listen", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while not self._stopped.is_set():
            try:
                sock, _ = self._socket.accept()
            except OSError:
                if self._stopped.wait(0.05):  # running out of descriptors is no reason to end
                    return
                continue
            thread = threading.Thread(target=self._serve, args=(sock,), name="wb-data-serve", daemon=True)
            with self._lock:
                self._threads.add(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        session = Session()
        try:
            connection = accepted(sock, self._token, self._context)
        except Exception:  # a stranger's bytes may raise anything
            sock.close()
            self._forget()
            return
        with self._lock:
            self._open[connection] = threading.current_thread()
        try:
            while not self._stopped.is_set():
                fields, payload = connection.receive(None)  # woken by `stop`, or by the end of the peer
                connection.send(*self._answered(fields, payload, session))
        except DataCorruption as error:
            with contextlib.suppress(OSError):
                connection.send({"error": error_fields(error)})
        except (OSError, ValueError):
            pass  # the peer is gone, or uses another protocol
        finally:
            with self._lock:
                self._open.pop(connection, None)
            with contextlib.suppress(OSError):
                connection.close()
            self._answers.ended(session)
            self._forget()

    def _answered(self, fields: Fields, payload: bytes, session: Session) -> tuple[Fields, bytes]:
        try:
            return self._answers.answer(str(fields.get("method")), fields, payload, session)
        except OSError as error:
            if not hasattr(error, "fields"):  # not an error class of workbench
                return {"error": {"kind": "UnknownError", "message": f"{type(error).__name__}: {error}"}}, b""
            return {"error": error_fields(error)}, b""
        except Exception as error:
            return {"error": error_fields(error)}, b""

    def _forget(self) -> None:
        with self._lock:
            self._threads.discard(threading.current_thread())

    def stop(self) -> None:
        """Stops listening and ends every connection. Idempotent."""
        self._stopped.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(_STOP_SECONDS)
        self._socket.close()
        with self._lock:
            threads = [thread for thread in self._threads if thread is not threading.current_thread()]
            for connection in self._open:
                connection.wake()
        for thread in threads:
            thread.join(_STOP_SECONDS)

    def join(self, timeout_seconds: float) -> bool:
        """Waits for the server to stop; returns whether it did within this time."""
        return self._stopped.wait(timeout_seconds)


def unknown(method: str) -> UnavailableError:
    """The error for a request that this server does not know."""
    return UnavailableError(f"this server of the data service has no method {method!r}")
