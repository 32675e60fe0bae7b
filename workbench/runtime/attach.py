"""Makes a `Cluster`: starts an embedded one, or attaches to Dask's workers elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask
from distributed import Client

from workbench.errors import InvalidArgumentError, UnavailableError
from workbench.runtime.cluster import Cluster
from workbench.runtime.deploy import embedded, worker_pool
from workbench.runtime.deploy.bind_check import warn_of_exposure
from workbench.runtime.deploy.plugin import WorkbenchPlugin
from workbench.runtime.deploy.scheduler_probe import reachable_scheduler
from workbench.runtime.layout import Layout


def embedded_cluster(
    layout: Layout,
    *,
    processes: bool,
    stall_seconds: float,
    memory_limit: str | int | None,
    environment: dict[str, str],
    device_kind: str,
    on_gpus: Sequence[str],
    minimum_replicas: int | None,
) -> Cluster:
    """Starts workers on this machine; the arguments are those of `connect`, checked.

    Raises:
      UnavailableError: if a worker ends while it starts. Dask counts it as started all the same.
    """
    local = embedded.start(
        workers=len(layout),
        processes=processes,
        listen="127.0.0.1",
        memory_limit=memory_limit,
        environment=environment,
        gpus=on_gpus,
    )
    owned: list[Any] = [local]
    try:
        with dask.config.set(embedded.SHORT_LOGS):  # for the scheduler's end of this connection
            client = Client(local, set_as_default=False)
        owned.insert(0, client)
        hosts = dict.fromkeys(label for label, _ in layout.values())
        cluster = Cluster(
            client,
            owned=owned,
            embedded_in=local,
            plugin=WorkbenchPlugin(layout, device_kind=device_kind, embedded=processes),
            # Hosts other than the first are reached as remote ones are, so that this path is one that always
            # runs.
            remote=set(list(hosts)[1:]),
            stall_seconds=stall_seconds,
            minimum_replicas=minimum_replicas,
        )
    except BaseException:
        for thing in owned:
            thing.close()
        raise
    if missing := len(layout) - len(cluster.gang.workers):
        cluster.close()
        raise UnavailableError(
            f"{missing} of {len(layout)} workers {'was' if missing == 1 else 'were'} gone as soon as the cluster had "
            f"started: connect again; if that fails too, see what the workers print, and whether memory or processes "
            f"are limited here"
        )
    return cluster


def attached_cluster(
    address: Any,
    devices_per_worker: int,
    stall_seconds: float,
    device_kind: str,
    timeout_seconds: float | None,
    minimum_replicas: int | None,
) -> Cluster:
    """Claims the workers of another cluster; the arguments are those of `connect`, looked through."""
    owned: list[Any] = []
    workers_of = ""
    if isinstance(address, Client):
        client = address
    elif isinstance(address, str) and address.startswith(worker_pool.SCHEME):
        workers_of = address.removeprefix(worker_pool.SCHEME)
        client = worker_pool.client(workers_of)
        owned = [client]
    else:
        where = reachable_scheduler(address, timeout_seconds) if isinstance(address, str) else address
        try:
            client = Client(where, set_as_default=False, timeout=10)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"{address!r} is no address of a Dask scheduler ({error}); it reads like 'tcp://127.0.0.1:8786', or "
                f"give a distributed.Client, a Dask cluster object, or nothing for an embedded cluster"
            ) from error
        except OSError as error:
            raise UnavailableError(
                f"no Dask scheduler answers at {address!r}: {error}; start one with `dask scheduler`, or leave the "
                f"address out for an embedded cluster"
            ) from error
        owned = [client]
    try:
        cluster = Cluster(
            client,
            owned=owned,
            plugin=WorkbenchPlugin({}, devices=devices_per_worker, device_kind=device_kind),
            remote=set(),
            stall_seconds=stall_seconds,
            workers_of=workers_of,
            minimum_replicas=minimum_replicas,
        )
    except BaseException:
        for thing in owned:
            thing.close()
        raise
    try:
        scheduler = str(client.scheduler_info()["address"])
        warn_of_exposure([scheduler, *(device.worker for device in cluster.devices)], stacklevel=3)
    except BaseException:  # where warnings are errors
        cluster.close()
        raise
    return cluster
