"""Requests to a server that may be temporarily unreachable. They are repeated, so it may receive one twice."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from workbench import forks
from workbench.data.service.address import Address, Tls
from workbench.data.service.wire import HELLO_SECONDS, REPLY_SECONDS, Connection, Fields, connect
from workbench.errors import CancelledError, DataCorruption, UnavailableError
from workbench.runtime.services.frames import raised_by

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 1.0


class Channel:
    """Requests to one server, one at a time.

    Attributes:
      address: The server.
    """

    def __init__(self, address: Address, tls: Tls | None, what: str, timeout_seconds: float) -> None:
        """Connects with the first request.

        Args:
          address: The server.
          tls: How to check its certificate, None without TLS.
          what: Its name in errors.
          timeout_seconds: How long to retry an unreachable server.
        """
        self.address = address
        self._tls = tls
        self._what = what
        self._timeout_seconds = timeout_seconds
        self._lock = forks.lock(threading.Lock())
        self._closed = threading.Event()
        self._connection: Connection | None = None

    def call(
        self, method: str, fields: Fields, payload: bytes = b"", *, wait_seconds: float = 0.0
    ) -> tuple[Fields, bytes]:
        """Sends a request, and returns the reply.

        Args:
          method: The server's method.
          fields: The arguments.
          payload: Additional bytes.
          wait_seconds: How long the server may wait before it answers.

        Raises:
          UnavailableError: if the server is unreachable for too long.
          FailedPreconditionError: if it rejects the token.
          CancelledError: if the channel was closed.
          DataCorruption: if the request or the reply was damaged in transit.
          WorkbenchError: what the server raised.
        """
        deadline = time.monotonic() + self._timeout_seconds
        pause = _FIRST_PAUSE_SECONDS
        with self._lock, self._dropped_unless_done():
            while not self._closed.is_set():
                try:
                    reply, data = self._once({"method": method, **fields}, payload, deadline, wait_seconds)
                except OSError as error:
                    self._drop()
                    if time.monotonic() >= deadline and not self._closed.is_set():
                        raise UnavailableError(
                            f"the {self._what} at {self.address} has not answered for {self._timeout_seconds:g} "
                            f"seconds: {error}; check that it runs and can be reached from here"
                        ) from error
                    self._closed.wait(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                    continue
                if "error" in reply:
                    raise raised_by(reply["error"])
                return reply, data
            raise CancelledError(f"the connection to the {self._what} at {self.address} was closed here")

    def _once(
        self, fields: Fields, payload: bytes, deadline: float, wait_seconds: float
    ) -> tuple[Fields, bytes]:
        if self._connection is None:
            connection = connect(self.address, self._tls, self._what, max(0.5, deadline - time.monotonic()))
            self._connection = connection
            if self._closed.is_set():  # closed in the meantime by a thread that had no connection to wake
                raise ConnectionError("closed")
        self._connection.send(fields, payload)
        try:
            return self._connection.receive(wait_seconds + REPLY_SECONDS)
        except DataCorruption:
            self._drop()
            raise

    @contextlib.contextmanager
    def _dropped_unless_done(self) -> Iterator[None]:
        """Drops the connection if a reply to an interrupted request may still arrive, or the channel is closed."""
        try:
            yield
        except BaseException as error:
            if not hasattr(error, "fields"):  # a server's error is a complete reply
                self._drop()
            raise
        finally:
            if self._closed.is_set():
                self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.close()

    def close(self) -> None:
        """Cancels a request in progress with `CancelledError`. Idempotent, any thread."""
        self._closed.set()
        connection = self._connection
        if connection is not None:
            connection.wake()
        # Ends the request in progress. A request that has just finished has not released the lock yet.
        if self._lock.acquire(timeout=HELLO_SECONDS):
            try:
                self._drop()
            finally:
                self._lock.release()
