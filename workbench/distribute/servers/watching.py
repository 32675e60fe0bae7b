"""Parameter servers of this process, for views, which learn of each strategy that starts some and query their state."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from workbench import forks
from workbench.distribute.servers.overview import (
    FunctionQueue,
    HeldVariable,
    ServersStatus,
    ServerStatus,
    WorkerFunctions,
)
from workbench.runtime.services.service import Connection, ServiceAddress

if TYPE_CHECKING:
    from workbench.runtime.cluster import Cluster
    from workbench.runtime.services.frames import Fields
    from workbench.runtime.services.hosted import HostedService

Functions = tuple[tuple[WorkerFunctions, ...], FunctionQueue]
listeners: Final[list[Callable[[Watched], object]]] = []
"""Each is called with the servers of every strategy that starts some in this process; it must return at once."""
_alive: Final[weakref.WeakSet[Watched]] = weakref.WeakSet()
_PATIENCE_SECONDS: Final = 1.0
_LEAST_SECONDS: Final = 0.05
_MOST_VARIABLES: Final = 32


class Watched:
    """Servers and workers of one strategy, for views. Any thread, even while others wait in `join`.

    It has its own connections, so it does not wait for variables in transit, and does not restore a lost server.

    Attributes:
      cluster: The cluster with the servers.
      functions: In the notebook: the state of a coordinator's workers and queue; None without a coordinator.
      ended: Whether the servers were stopped.
      began: When they were started, by `time.monotonic`.
    """

    def __init__(self, cluster: Cluster, servers: Sequence[HostedService]) -> None:
        self.cluster = cluster
        self.functions: Callable[[], Functions] | None = None
        self.ended = False
        self.began = time.monotonic()
        self._servers = servers
        self._lines: dict[int, tuple[ServiceAddress, Connection]] = {}
        self._told: dict[int, Fields] = {}
        self._last: ServersStatus | None = None
        self._lock = forks.lock(threading.Lock())

    def now(self) -> ServersStatus:
        """The current state, within about a second; for a server that does not answer, its last known state."""
        with self._lock:
            if not self.ended:
                self._last = self._seen("live", self._ask())
            assert self._last is not None  # the state that `close` leaves
            return self._last

    def journals(self) -> tuple[tuple[str, int], ...]:
        """Folder and bytes of each server's journal, from its last report; "" and 0 before the first."""
        told = (self._told.get(number, {}) for number in range(len(self._servers)))
        return tuple((each.get("journal_folder", ""), each.get("journal_bytes", 0)) for each in told)

    def close(self) -> None:
        """Called before the servers are stopped; keeps their last state."""
        with self._lock:
            if self.ended:
                return
            if self._last is not None:  # queries once more, to show their final state
                self._ask()
            self._last = self._seen("stopped", set())
            self.ended = True
            self.functions = None
            for _, connection in self._lines.values():
                connection.close()
            self._lines.clear()

    def _seen(self, status: str, answering: set[int]) -> ServersStatus:
        servers = tuple(
            _server(server, self._told.get(number, {}), _state(server, status, number in answering))
            for number, server in enumerate(self._servers)
        )
        workers, queue = ((), None) if self.functions is None else self.functions()
        return ServersStatus.of(servers, workers, queue, status)

    def _ask(self) -> set[int]:
        """Queries all servers at once; returns the numbers of those that answer."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        asked = []
        for number, server in enumerate(self._servers):
            try:
                self._line(number, server, deadline).send({"method": "describe", "most": _MOST_VARIABLES})
                asked.append(number)
            except OSError:
                self._drop(number)
        answering = set()
        for number in asked:
            try:
                reply, _ = self._lines[number][1].receive(_left(deadline))
            except OSError:
                self._drop(number)
            else:
                self._told[number] = reply
                answering.add(number)
        return answering

    def _line(self, number: int, server: HostedService, deadline: float) -> Connection:
        if server.gone:
            raise ConnectionError(server.gone)
        known = self._lines.get(number)
        if known is not None and known[0] == server.address:
            return known[1]
        self._drop(number)
        address = server.address
        connection = Connection(address, server.tls(), _left(deadline))
        self._lines[number] = address, connection
        return connection

    def _drop(self, number: int) -> None:
        if (line := self._lines.pop(number, None)) is not None:
            line[1].close()


def watched_on(cluster: Cluster) -> list[Watched]:
    """The servers of a cluster that have not ended, the oldest first."""
    found = [watched for watched in tuple(_alive) if watched.cluster is cluster and not watched.ended]
    return sorted(found, key=lambda watched: watched.began)


def tell(watched: Watched) -> None:
    """Announces servers that have started."""
    _alive.add(watched)
    for listener in tuple(listeners):
        listener(watched)


def _left(deadline: float) -> float:
    return max(_LEAST_SECONDS, deadline - time.monotonic())


def _state(server: HostedService, status: str, answers: bool) -> str:
    if status == "stopped":
        return "stopped"
    if server.gone:
        return "lost"
    return "live" if answers else "stalled"


def _server(server: HostedService, told: Fields, state: str) -> ServerStatus:
    variables: list[Any] = told.get("variables", [])
    counts = told.get("counts", {})
    newest, typical = told.get("staleness", (None, None))
    return ServerStatus(
        name=server.name,
        host=server.device.host,
        address=f"{server.address.host}:{server.address.port}",
        state=state,
        detail=server.gone,
        restarts=server.restarts,
        variables=tuple(_variable(*each) for each in variables),
        hidden_variables=told.get("hidden", 0),
        size_bytes=told.get("nbytes", 0),
        updates=counts.get("updates", 0),
        updates_per_second=round(told.get("updates_per_second", 0.0), 1),
        repeated=counts.get("repeated", 0),
        left_out=counts.get("stale", 0),
        newest_staleness=newest,
        typical_staleness=typical,
    )


def _variable(
    key: str, dtype: str, shape: list[int], nbytes: int, slot_bytes: int, version: int
) -> HeldVariable:
    return HeldVariable(key.rpartition("@")[0], dtype, tuple(shape), nbytes, slot_bytes, version)
