"""A data service inside a Dask cluster: `start`."""

from __future__ import annotations

from typing import Any, Protocol

from workbench.arguments import count
from workbench.communicators.core.tcp import is_loopback
from workbench.data.service.dispatcher import DispatcherConfig, DispatchServer
from workbench.data.service.overview import ServiceStatus, status
from workbench.data.service.watching import Watched
from workbench.data.service.worker import WorkerConfig, WorkerServer
from workbench.errors import ClusterClosed, UnsafeBind
from workbench.runtime.connect_cluster import auto_connect
from workbench.runtime.deploy.roles import Roles


class _Cluster(Protocol):
    """What a service needs from `runtime.Cluster`."""

    client: Any
    closing: list[Any]
    closed: bool


class Service:
    """A data service in a Dask cluster: the dispatcher runs in this process, the workers in those of Dask's workers.

    It ends with `stop`, a `with` block, or the cluster, which keeps it alive until then.
    """

    def __init__(self, cluster: _Cluster, workers: int) -> None:
        """See `start`."""
        self._dispatcher = DispatchServer(DispatcherConfig())
        try:
            self._roles = Roles(cluster.client, workers, _WorkerRole(self._dispatcher.target))
        except BaseException:
            self._dispatcher.stop()
            raise
        self._watched = self._dispatcher.watched
        self._stopped = False
        cluster.closing.append(self.stop)

    @property
    def address(self) -> str:
        """The address for `distribute`, `protocol://token@host:port`. Anyone who has it can connect.

        Raises:
          ClusterClosed: if the service has ended.
        """
        self._check_running()
        return self._dispatcher.target

    target = address

    def status(self) -> ServiceStatus:
        """The present jobs and workers.

        Raises:
          ClusterClosed: if the service has ended.
        """
        return status(self.address)

    @property
    def watched(self) -> Watched:
        """The service for views, even after its end."""
        return self._watched

    def stop(self) -> None:
        """Ends dispatcher and workers; the cluster continues. Idempotent."""
        if not self._stopped:
            self._stopped = True
            self._roles.stop()
            self._dispatcher.stop()

    def _check_running(self) -> None:
        if self._stopped:
            raise ClusterClosed(
                "this data service was stopped; start another one: wb.data.service.start(cluster)"
            )

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return "<data service, stopped>" if self._stopped else str(self.status())

    def _repr_html_(self) -> str:
        return "<p>data service, stopped</p>" if self._stopped else self.status()._repr_html_()


class _WorkerRole:
    """Starts a data worker in a process of Dask."""

    def __init__(self, target: str) -> None:
        self._target = target

    def __call__(self) -> WorkerServer:
        return WorkerServer(WorkerConfig(self._target))


def start(cluster: _Cluster | None = None, *, workers: int | None = None) -> Service:
    """Starts a data service in a Dask cluster on this machine.

    Data workers are threads in the processes of Dask's workers, distributed among them in turn; a process that Dask
    restarts gets its data workers again. They share these processes with replicas, if there are any; for a service that
    takes no time from replicas, use separate processes, `workbench data-worker`.

    Args:
      cluster: A cluster from `wb.connect`; by default the current one.
      workers: Number of data workers; by default one per Dask worker.

    Raises:
      UnsafeBind: if workers of the cluster are on other machines; in that case, start the service with its commands and
        TLS.
      InvalidArgumentError: for less than one worker.
    """
    found: Any = auto_connect() if cluster is None else cluster
    if found.closed:
        raise ClusterClosed("the cluster is closed; connect again: wb.connect()")
    if workers is not None:
        workers = count(workers, "workers", otherwise=", or None for one per Dask worker")
    elsewhere = sorted({host for host in Roles.hosts(found.client) if host and not is_loopback(host)})
    if elsewhere:
        raise UnsafeBind(
            f"workers of this cluster are on other machines ({', '.join(elsewhere)}), which this service cannot reach "
            "without TLS. Start it by its commands, with a certificate for each machine. On one of them: `workbench "
            "data-dispatcher --host NAME --authority FILE --certificate FILE --key FILE --address-file ADDRESS`; then, "
            "with a copy of the file ADDRESS, on each that makes elements: `workbench data-worker ADDRESS --host NAME "
            "--authority FILE --certificate FILE --key FILE`. Read with wb.data.service.distribute(mode, "
            "open('ADDRESS').read().strip(), tls=wb.data.service.Tls(authority=FILE))"
        )
    return Service(found, len(Roles.hosts(found.client)) if workers is None else workers)
