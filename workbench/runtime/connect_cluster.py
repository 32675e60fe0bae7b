"""`connect`, and the cluster that strategies use.

Only what `connect` needs before Dask is imported: the processes of an embedded cluster's workers import it meanwhile.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import threading
from typing import TYPE_CHECKING, Any, Literal

from workbench import cluster_listeners, forks
from workbench.errors import InvalidArgumentError
from workbench.runtime import cluster_in_use
from workbench.runtime.deploy.delayed_interrupt import delayed_interrupt
from workbench.runtime.driver.gang.driver_lock import refuse_on_replica
from workbench.runtime.joining.roster import Resolver, tasks_of
from workbench.runtime.layout import (
    EmbeddedDevices,
    check_gpus,
    check_limits,
    check_minimum,
    check_tpu,
    embedded_devices,
)
from workbench.runtime.process import fork_server
from workbench.runtime.process.tpu import keep_notebook_off

if TYPE_CHECKING:
    from distributed import Client

    from workbench.runtime.cluster import Cluster
    from workbench.runtime.restorer import Restorer

_current: Cluster | None = None
_asked: dict[str, Any] = {}  # for the current cluster, without what was left out
_lock = forks.lock(threading.RLock())


def connect(
    address: str | Client | Any | None = None,
    *,
    replicas: int | None = None,
    hosts: int | None = None,
    replicas_per_host: int | None = None,
    replicas_per_worker: int = 1,
    processes: bool = True,
    tpu: int | Literal["auto"] | None = None,
    gpus: int | None = None,
    gpu_replicas: int | None = None,
    stall_seconds: float = 10.0,
    memory_limit: str | int | None = None,
    environment: dict[str, str] | None = None,
    timeout_seconds: float | None = None,
    minimum_replicas: int | None = None,
    checkpoint: Restorer | None = None,
    replace: bool = False,
) -> Cluster:
    """Connects to devices; strategies made from now on use them.

    Without an address a cluster is started on this machine: loopback only, TLS, random ports; it ends with
    this process or with `close`.

    Called again with the same arguments, as when all cells of a notebook run once more, it returns the cluster that
    runs. With other arguments it closes that one first, but only if no strategy uses it, or with `replace=True`:
    variables are lost with their cluster. Attaching to an address leaves an earlier cluster open.

    Without any numbers it has one replica per NVIDIA GPU if there are some, else one per core.

    Args:
      address: Nothing, the address of a Dask scheduler, a `distributed.Client`, a Dask cluster object,
        "workbench://ID" for workers that JupyterLab's panel has started, or a resolver of
        `wb.distribute.cluster_resolver`, whose tasks are waited for until all have joined. For "tls://" addresses
        the certificates of Dask's configuration are used, else the secret of `workbench join`.
      replicas: Number of CPU replicas of the embedded cluster; default one per core, of as many cores and as much
        memory as a container lets this process use, with half a GiB for each worker process.
      hosts: Lay the embedded cluster out as so many hosts, to run multi-host code on one machine.
      replicas_per_host: Replicas on each of them.
      replicas_per_worker: Replicas (threads) in one worker process.
      processes: False runs all replicas as threads of this process: functions share its objects; for
        debugging.
      tpu: TPU cores of each host, for `TPUStrategy`: those of this machine, or emulated ones on the CPU where it has
        none; with `hosts`, one worker process for each. With an address, those of each worker there. "auto"
        takes as many as there are: chips, or where JAX_PLATFORMS is "cpu", as many as JAX_NUM_CPU_DEVICES says.
      gpus: So many NVIDIA GPUs of this machine, one replica and worker process on each; 0 leaves them alone. Workers of
        an address are on GPUs if CUDA_VISIBLE_DEVICES is set for them, as dask-cuda does; 0 uses their CPUs.
      gpu_replicas: So many replicas on the first GPU, as threads of one worker process, to learn and to test with: they
        share its time and memory, so nothing gets faster.
      stall_seconds: Silence after which a worker's replicas are given up as stalled.
      memory_limit: Memory limit of an embedded worker process, as Dask reads it.
      environment: Environment variables of embedded worker processes.
      timeout_seconds: How long to wait for a scheduler at the address to come up and answer, and for the tasks of a
        resolver to join. By default a connection that is refused is an error at once, and an answer is waited for ten
        seconds; for a resolver it is a minute.
      minimum_replicas: When a worker is lost and nobody takes its place, a strategy goes on with the replicas that are
        left, if these are so many, and takes the others back when their workers have returned. By default it waits for
        them: each step fails until they are there.
      checkpoint: A `wb.CheckpointManager` from whose newest checkpoint training goes on after all replicas of a
        strategy were lost at once; `cluster.checkpoint` can be set later, and `strategy.checkpoint` for one strategy.
        Where some replicas survive, they give the others their values, which are newer.
      replace: Close the cluster that runs, whatever strategies and variables are on it, and start a new one.

    Raises:
      InvalidArgumentError: if the numbers do not fit together.
      UnavailableError: if nothing answers at the address.
      ClusterBusy: if another driver holds the workers.
      RuntimeError: in a replica function.
      FailedPreconditionError: if an earlier cluster would have to be closed whose strategies are in use; the message
        names them and their variables.

    >>> cluster = wb.connect(replicas=2, processes=False)
    >>> wb.MirroredStrategy().num_replicas_in_sync
    2
    """
    asked = _without_defaults({name: value for name, value in locals().items() if name != "checkpoint"})
    if isinstance(address, Resolver):  # a notebook's cell makes a new one each time
        asked["address"] = address.dask_cluster()
    refuse_on_replica()
    layout_given = any(value is not None for value in (replicas, hosts, replicas_per_host))
    if address is not None and layout_given:
        raise InvalidArgumentError(
            "replicas, hosts and replicas_per_host describe an embedded cluster; a cluster given by address has the "
            "workers it has: leave them out, or scale the cluster"
        )
    if tpu is not None:
        check_tpu(tpu, replicas, replicas_per_host, replicas_per_worker, processes)
        keep_notebook_off()
    if gpus or gpu_replicas is not None:
        check_gpus(address, layout_given or tpu is not None, replicas_per_worker)
    check_limits(stall_seconds, timeout_seconds, memory_limit)
    check_minimum(minimum_replicas)
    with _lock:
        if not replace and asked == _asked and cluster_in_use.is_running(_current):
            assert _current is not None
            _current.checkpoint = checkpoint or _current.checkpoint
            return _current
        if address is not None:
            from workbench.runtime.attach import attached_cluster

            if replace and _current is not None:
                _current.close()
            kind = "TPU" if tpu else "CPU" if gpus == 0 else ""
            devices = replicas_per_worker if tpu is None else 0 if tpu == "auto" else tpu
            cluster = attached_cluster(
                address, devices, stall_seconds, kind, timeout_seconds, minimum_replicas
            )
            with delayed_interrupt():
                _take(cluster, asked)
        else:
            own = embedded_devices(
                replicas, hosts, replicas_per_host, replicas_per_worker, processes,
                tpu=tpu, gpus=gpus, gpu_replicas=gpu_replicas,
            )  # fmt: skip
            check_minimum(minimum_replicas, sum(count for _, count in own.layout.values()))
            if _current is not None and cluster_in_use.is_running(_current) and not replace:
                cluster_in_use.check_nothing_is_kept(_current, asked)
            cluster = _start(
                own,
                asked,
                processes=processes,
                stall_seconds=stall_seconds,
                memory_limit=memory_limit,
                environment=own.environment | (environment or {}),
                minimum_replicas=minimum_replicas,
            )
        cluster.checkpoint = checkpoint
    return cluster


def _take(cluster: Cluster, asked: dict[str, Any]) -> None:
    """Makes a cluster the current one, and tells who shows clusters."""
    global _current, _asked
    cluster.closing.append(functools.partial(_forget, cluster))
    _current, _asked = cluster, asked
    for tell in cluster_listeners.listeners:
        tell(cluster)


def _without_defaults(arguments: dict[str, Any]) -> dict[str, Any]:
    """Those of `connect` that say what to connect to, as far as they are not left out."""
    defaults: dict[str, Any] = connect.__kwdefaults__ or {}
    return {
        name: value
        for name, value in arguments.items()
        if name != "replace" and value is not defaults.get(name) and value != defaults.get(name)
    }


def _start(devices: EmbeddedDevices, asked: dict[str, Any], *, processes: bool, **options: Any) -> Cluster:
    """An embedded cluster, which takes the place of the current one; see `embedded_cluster`."""
    with contextlib.ExitStack() as undo:
        with delayed_interrupt():
            if _current is not None:  # only now: what was refused until here has closed nothing
                _current.close()
            if processes:
                fork_server.start()
            from workbench.runtime.attach import embedded_cluster  # imports Dask, while the server does

            cluster = embedded_cluster(
                devices.layout,
                processes=processes,
                device_kind=devices.kind,
                on_gpus=devices.gpus,
                **options,
            )
            undo.callback(cluster.close)  # if Ctrl-C was pressed meanwhile
            _take(cluster, asked)
        undo.pop_all()
    return cluster


def _forget(cluster: Cluster) -> None:
    global _current
    with _lock:
        if _current is cluster:
            _current = None


def current_cluster() -> Cluster | None:
    """The cluster that strategies use, or None before the first `connect`."""
    return _current


def auto_connect(min_devices: int | None = None, *, kind: str = "CPU", resolver: Any = None) -> Cluster:
    """The current cluster, or a new embedded one with `min_devices` devices (default: all GPUs, else one per core).

    Args:
      min_devices: How many are needed, None for any number.
      kind: The kind of device, "CPU", "GPU" or "TPU".
      resolver: If it has several tasks, a new cluster is the one that they have formed.
    """
    with _lock:
        if _current is not None and not _current.closed:
            return _current
        if isinstance(resolver, Resolver) and len(tasks_of(resolver.cluster_spec())) > 1:
            return connect(resolver)
        return connect(gpus=min_devices) if kind == "GPU" else connect(replicas=min_devices)


class _Current:
    """See `forks.tell`: a child has no cluster until it connects, and closes none at its end."""

    def disown(self) -> None:
        global _current
        _current = None


_in_children = _Current()
forks.tell(_in_children)


@atexit.register
def _close_at_exit() -> None:
    if _current is not None:
        with contextlib.suppress(Exception):
            _current.close()
