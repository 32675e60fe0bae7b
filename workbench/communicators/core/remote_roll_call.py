"""Asks other hosts which replicas have reached a collective, and answers their questions.

The first process of each host keeps listening where the ring was connected, on a separate thread, because the replicas
that could answer may be the missing ones, still busy in the user's code.
"""

from __future__ import annotations

import json
import select
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from workbench.communicators.core.tcp import TcpListener, Tls, connect, read_line
from workbench.communicators.core.wake import Wake, wake
from workbench.errors import WorkbenchError

_PURPOSE = " roll call"  # distinguishes a question from a host that connects for the ring
_POLL_SECONDS = 60.0  # how often the thread checks its state; wake-ups end the wait at once
_STRANGER_SECONDS = 2.0
_JOIN_SECONDS = 5.0

Present = Callable[[int], set[int]]


@dataclass(frozen=True, slots=True)
class Host:
    """Another host.

    Attributes:
      ranks: Its replicas.
      address: Name and port of its first process.
      token: The secret that it expects.
    """

    ranks: Sequence[int]
    address: tuple[str, int]
    token: str = field(repr=False)


class OtherHosts:
    """The other hosts of a group, from one process's point of view."""

    def __init__(
        self,
        hosts: Sequence[Host],
        *,
        group: str,
        own_token: str,
        listener: TcpListener | None,
        tls: Tls | None,
    ) -> None:
        """Takes over the listener.

        Args:
          hosts: The others.
          group: Group and generation; equal on all hosts.
          own_token: The secret that others must show here.
          listener: Where others ask; None if this process does not speak for its host.
          tls: TLS contexts for the connections; required off loopback.
        """
        self._hosts = hosts
        self._group = group + _PURPOSE
        self._own_token = own_token
        self._listener = listener
        self._tls = tls
        self._wake: Wake | None = None
        self._closed = False
        self._answering: threading.Thread | None = None

    def answer_with(self, present: Present) -> None:
        """If this process speaks for its host, starts to answer with the result of `present(fingerprint)`."""
        if self._listener is not None:
            self._wake = Wake()
            self._answering = threading.Thread(
                target=self._serve,
                args=(self._listener, self._wake, present),
                name="workbench-roll-call",
                daemon=True,
            )
            self._answering.start()

    def present(self, fingerprint: int, deadline: float) -> tuple[set[int], set[int]]:
        """Asks all other hosts at once and waits until `deadline`, a `time.monotonic` time.

        Returns:
          The replicas that have reached the collective, and those on hosts that have not answered.
        """
        with ThreadPoolExecutor(len(self._hosts), "workbench-roll-call") as pool:
            answers = list(pool.map(lambda host: self._ask(host, fingerprint, deadline), self._hosts))
        here: set[int] = set()
        silent: set[int] = set()
        for host, answer in zip(self._hosts, answers, strict=True):
            if answer is None:
                silent.update(host.ranks)
            else:
                here.update(answer)
        return here, silent

    def close(self) -> None:
        """Ends the thread and stops listening."""
        self._closed = True
        if self._wake is not None and self._answering is not None:
            wake(self._wake.write_fd)
            self._answering.join(_JOIN_SECONDS)
            self._wake.close()
        if self._listener is not None:
            self._listener.close()

    def _ask(self, host: Host, fingerprint: int, deadline: float) -> set[int] | None:
        try:
            with connect(host.address, self._group, host.token, self._tls, deadline) as connection:
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                connection.sendall(json.dumps({"fingerprint": fingerprint}).encode() + b"\n")
                here = read_line(connection).get("here")
        except (OSError, WorkbenchError):
            return None  # the host is gone or stopped, or in another generation
        return set(here) & set(host.ranks) if isinstance(here, list) else None

    def _serve(self, listener: TcpListener, ended: Wake, present: Present) -> None:
        poll = select.poll()
        poll.register(listener.fd, select.POLLIN)
        poll.register(ended.read_fd, select.POLLIN)
        while not self._closed:
            if any(fd == listener.fd for fd, _ in poll.poll(_POLL_SECONDS * 1e3)):
                self._answer(listener, present)

    def _answer(self, listener: TcpListener, present: Present) -> None:
        try:
            # A stranger that sends nothing must not delay the answers to others for long.
            deadline = time.monotonic() + _STRANGER_SECONDS
            with listener.accept_next(self._group, self._own_token, deadline) as connection:
                connection.settimeout(_STRANGER_SECONDS)
                fingerprint = read_line(connection).get("fingerprint")
                if isinstance(fingerprint, int):
                    connection.sendall(json.dumps({"here": sorted(present(fingerprint))}).encode() + b"\n")
        except (OSError, WorkbenchError):
            pass  # the peer has gone, or was a stranger
