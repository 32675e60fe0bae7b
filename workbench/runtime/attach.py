"""Makes a `Cluster`: starts an embedded one, or attaches to existing Dask workers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dask
from distributed import Client
from distributed.security import Security

from workbench.errors import InvalidArgumentError, UnavailableError
from workbench.runtime.cluster import Cluster
from workbench.runtime.deploy import embedded, worker_pool
from workbench.runtime.deploy.bind_check import warn_of_exposure
from workbench.runtime.deploy.plugin import WorkbenchPlugin
from workbench.runtime.deploy.scheduler_probe import reachable_scheduler
from workbench.runtime.deploy.tasks import Task
from workbench.runtime.joining.existing import tasks_of_workers
from workbench.runtime.joining.roster import Formed
from workbench.runtime.joining.secret import Secret
from workbench.runtime.layout import Layout
from workbench.runtime.process.tpu import keep_notebook_off

_FORMING_SECONDS = 60.0
"""How long a resolver's tasks may take to join."""
_RETRY_SECONDS = 0.2


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
      UnavailableError: if a worker ends while it starts, although Dask counts it as started.
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
        with dask.config.set(embedded.SHORT_LOGS):  # also for the scheduler's end of this connection
            client = Client(local, set_as_default=False)
        owned.insert(0, client)
        hosts = dict.fromkeys(label for label, _ in layout.values())
        cluster = Cluster(
            client,
            owned=owned,
            embedded_in=local,
            plugin=WorkbenchPlugin(layout, device_kind=device_kind, embedded=processes),
            # Hosts other than the first are reached like remote ones, so that every run exercises this path.
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
    """Claims the workers of another cluster; the arguments are those of `connect`, checked."""
    owned: list[Any] = []
    workers_of = ""
    expected: tuple[Task, ...] = ()
    find_secret: Callable[[], Secret | None] = Secret.existing
    if isinstance(address, Formed):
        expected, address = address.tasks, address.address
        timeout_seconds = _FORMING_SECONDS if timeout_seconds is None else timeout_seconds
        find_secret = Secret.found_or_made  # creates it, as the notebook may start before the tasks
    begun = time.monotonic()
    if isinstance(address, Client):
        client = address
    elif isinstance(address, str) and address.startswith(worker_pool.SCHEME):
        workers_of = address.removeprefix(worker_pool.SCHEME)
        pool = worker_pool.connected(workers_of)
        client = pool.client
        owned = [client]
        as_usual = devices_per_worker == 1 and device_kind in ("", pool.kind)
        if as_usual:
            devices_per_worker, device_kind = pool.devices, pool.kind
        if device_kind == "TPU":
            keep_notebook_off()
    else:
        client = opened_client(address, timeout_seconds, find_secret=find_secret)
        owned = [client]
    try:
        if expected:
            _wait_for(expected, client, begun + (timeout_seconds or 0.0))
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
        warn_of_exposure([scheduler, *(device.worker for device in cluster.devices)])
    except BaseException:  # raised where warnings are errors
        cluster.close()
        raise
    return cluster


def opened_client(
    address: Any,
    timeout_seconds: float | None = None,
    *,
    find_secret: Callable[[], Secret | None] = Secret.existing,
) -> Client:
    """Opens a client of the scheduler at an address, or of a Dask cluster object; the caller closes it.

    Args:
      address: Such as "tls://10.0.0.5:2222".
      timeout_seconds: See `connect`.
      find_secret: Finds the secret for "tls://" addresses if Dask's configuration has no certificates.

    Raises:
      InvalidArgumentError: if it is not an address.
      UnavailableError: if no scheduler answers there.
    """
    security = _security(address, find_secret)
    where = reachable_scheduler(address, timeout_seconds, security) if isinstance(address, str) else address
    try:
        return Client(where, set_as_default=False, timeout=10, security=security)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"{address!r} is not an address of a Dask scheduler ({error}); it reads like 'tcp://127.0.0.1:8786', or "
            f"give a distributed.Client, a Dask cluster object, or nothing for an embedded cluster, as in "
            f"wb.connect(replicas=2)"
        ) from error
    except OSError as error:
        raise UnavailableError(
            f"no Dask scheduler answers at {address!r}: {error}; start one with `dask scheduler`, or leave the "
            f"address out for an embedded cluster"
        ) from error


@contextlib.contextmanager
def asking_client(cluster: Any) -> Iterator[Client]:
    """Yields `cluster` if it is a client, otherwise a temporary client; see `opened_client`."""
    if isinstance(cluster, Client):
        yield cluster
        return
    with contextlib.closing(opened_client(cluster)) as client:
        yield client


def _security(address: Any, find_secret: Callable[[], Secret | None]) -> Security | None:
    """The TLS settings: Dask's configuration, otherwise the secret of `workbench join` if there is one."""
    if not isinstance(address, str) or not address.startswith("tls://"):
        return None
    configured = Security()
    if configured.get_connection_args("client").get("ssl_context") is not None:
        return configured
    secret = find_secret()
    return None if secret is None else secret.security()


def _wait_for(tasks: Sequence[Task], client: Client, deadline: float) -> None:
    """Returns once these tasks have joined.

    Raises:
      UnavailableError: if tasks do not join in time; it names them.
    """
    while True:
        there = {
            Task(job, index) for job, tasks_there in tasks_of_workers(client).items() for index in tasks_there
        }
        missing = [task for task in tasks if task not in there]
        if not missing:
            return
        if time.monotonic() > deadline:
            scheduler: Any = client.scheduler
            raise UnavailableError(
                f"{', '.join(map(str, missing))} of {len(tasks)} tasks {'has' if len(missing) == 1 else 'have'} not "
                f"joined the cluster at {scheduler.address}: start `workbench join` there, give timeout_seconds to "
                f"wait longer, or take those that are there: wb.connect({scheduler.address!r})"
            )
        time.sleep(_RETRY_SECONDS)
