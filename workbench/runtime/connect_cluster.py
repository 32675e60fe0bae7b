"""`connect`, and the cluster that strategies use.

This file has only what `connect` needs before it imports Dask, which the embedded cluster's workers import meanwhile.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import threading
from typing import TYPE_CHECKING, Any, Literal

from workbench import cluster_listeners, forks
from workbench.arguments import count, flag
from workbench.errors import InvalidArgumentError, WrongType
from workbench.runtime import cluster_in_use
from workbench.runtime.deploy.delayed_interrupt import delayed_interrupt
from workbench.runtime.deploy.tasks import Task
from workbench.runtime.driver.gang.driver_lock import refuse_on_replica
from workbench.runtime.joining.agreement import Connected, require_agreement
from workbench.runtime.joining.roster import Formed, Resolver, spec_of, tasks_of
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
_asked: dict[str, Any] = {}  # for the current cluster: the given arguments
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
    """Connects to devices; strategies that you create afterwards use them.

    Without an address, it starts a cluster on this machine: on loopback only, with TLS, on random ports. The
    cluster ends with this process or with `close`.

    A second call with the same arguments, such as when you run all cells of a notebook again, returns the running
    cluster. With other arguments, it closes that cluster first, but only if no strategy uses it or with
    `replace=True`, because variables are lost with their cluster. Attaching to an address leaves an earlier cluster
    open.

    Without any numbers, the cluster has one replica per NVIDIA GPU if there are GPUs, otherwise one per core.

    Args:
      address: None, the address of a Dask scheduler, a `distributed.Client`, a Dask cluster object,
        "workbench://ID" for workers that JupyterLab's panel has started, or a resolver of
        `wb.distribute.cluster_resolver`; `connect` waits until all tasks of a resolver have joined. A "tls://" address
        uses the certificates of Dask's configuration, otherwise the secret of `workbench join`.
      replicas: Number of CPU replicas of the embedded cluster. The default is one per core that this process may use,
        or fewer if its memory does not allow half a GiB for each worker process.
      hosts: Number of hosts that the embedded cluster emulates, to run code for several hosts on one machine.
      replicas_per_host: Number of replicas on each of these hosts.
      replicas_per_worker: Number of replicas (threads) in one worker process.
      processes: False runs all replicas as threads of this process, for debugging: functions share its objects.
      tpu: Number of TPU cores of each host, for `TPUStrategy`. A machine without a TPU emulates them on the CPU. With
        `hosts`, each host has one worker process; with an address, the number applies to each worker there. "auto"
        takes all chips or, if JAX_PLATFORMS is "cpu", as many cores as JAX_NUM_CPU_DEVICES says.
      gpus: Number of NVIDIA GPUs of this machine to use, with one replica and worker process on each; 0 uses none.
        Workers of an address run on GPUs if CUDA_VISIBLE_DEVICES is set for them, as dask-cuda does; 0 uses their CPUs.
      gpu_replicas: Number of replicas on the first GPU, as threads of one worker process, for learning and tests: they
        share the GPU's time and memory, so nothing gets faster.
      stall_seconds: How long a worker may be silent before workbench gives up its replicas as stalled, in seconds.
      memory_limit: Memory limit of an embedded worker process, as Dask reads it: "2GiB" or a number of bytes.
      environment: Environment variables of embedded worker processes.
      timeout_seconds: How long to wait until a scheduler at the address answers, or until the tasks of a resolver have
        joined. By default, a refused connection raises at once, an answer may take ten seconds, and joining a minute.
      minimum_replicas: If a worker is lost and no other one replaces it, a strategy continues with the remaining
        replicas, provided that there are at least this many. It takes the others back when their workers return. By
        default, each step fails until they are back.
      checkpoint: A `wb.CheckpointManager`. If all replicas of a strategy are lost at once, training continues from its
        newest checkpoint. You can set `cluster.checkpoint` later, and `strategy.checkpoint` for one strategy. If some
        replicas survive, they give the others their values, which are newer.
      replace: Close the running cluster with all its strategies and variables, and start a new one.

    Raises:
      InvalidArgumentError: if the numbers contradict each other.
      UnavailableError: if nothing answers at the address.
      ClusterBusy: if another driver holds the workers.
      RuntimeError: in a replica function.
      FailedPreconditionError: if strategies still use the cluster that this call would close; the message names them
        and their variables.

    >>> cluster = wb.connect(replicas=2, processes=False)
    >>> wb.MirroredStrategy().num_replicas_in_sync
    2
    """
    asked = _without_defaults({name: value for name, value in locals().items() if name != "checkpoint"})
    refuse_on_replica()
    processes, replace = flag(processes, "connect: processes"), flag(replace, "connect: replace")
    gpus = None if gpus is None else count(gpus, "gpus", 0)
    replicas_per_worker = count(replicas_per_worker, "replicas_per_worker")
    if not isinstance(environment, dict | None):
        raise WrongType(
            f"environment must be a dictionary from name to text, got {type(environment).__name__} {environment!r:.60}"
        )
    if not (checkpoint is None or callable(getattr(checkpoint, "restore_lost", None))):
        raise WrongType(
            f"checkpoint must be a wb.CheckpointManager, got {type(checkpoint).__name__} {checkpoint!r:.60}"
        )
    if isinstance(address, Resolver):  # may query Kubernetes or Dask, so `_lock` must not be held
        address = Formed(tasks_of(spec_of(address)), address.dask_cluster())
    if isinstance(address, Formed):  # a notebook cell creates a new resolver each time
        asked["address"] = address.address
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
    minimum_replicas = check_minimum(minimum_replicas)
    with _lock:
        if not replace and _are_equal(asked, _asked) and cluster_in_use.is_running(_current):
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
    """Makes a cluster the current one, and informs the listeners that show clusters."""
    global _current, _asked
    cluster.closing.append(functools.partial(_forget, cluster))
    _current, _asked = cluster, asked
    # Dask is imported by now, and Python runs the last registered function first. So at the end of a script the
    # cluster closes, and its replicas leave before Dask ends the workers. Otherwise each would count as lost.
    atexit.unregister(_close_at_exit)
    atexit.register(_close_at_exit)
    for tell in cluster_listeners.listeners:
        tell(cluster)


def _without_defaults(arguments: dict[str, Any]) -> dict[str, Any]:
    """The given arguments of `connect` that determine what to connect to."""
    defaults: dict[str, Any] = connect.__kwdefaults__ or {}
    return {
        name: value
        for name, value in arguments.items()
        if name != "replace" and not _are_equal(value, defaults.get(name))
    }


def _are_equal(one: Any, other: Any) -> bool:
    """Whether two arguments are equal; arrays, which are refused later, never are."""
    try:
        return bool(one == other)
    except ValueError:
        return False


def _start(devices: EmbeddedDevices, asked: dict[str, Any], *, processes: bool, **options: Any) -> Cluster:
    """Starts an embedded cluster, which replaces the current one; see `embedded_cluster`."""
    with contextlib.ExitStack() as undo:
        with delayed_interrupt():
            if _current is not None:  # only here, so that a refused call closes nothing
                _current.close()
            if processes:
                fork_server.start()
            # Imports Dask while the fork server does the same.
            from workbench.runtime.attach import embedded_cluster

            cluster = embedded_cluster(
                devices.layout,
                processes=processes,
                device_kind=devices.kind,
                on_gpus=devices.gpus,
                **options,
            )
            undo.callback(cluster.close)  # raises if Ctrl-C was pressed in the meantime
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


def auto_connect(
    min_devices: int | None = None, *, kind: str = "CPU", resolver: Any = None, spec: Any = None
) -> Cluster:
    """The current cluster, or a new embedded one with `min_devices` devices (default: all GPUs, else one per core).

    Args:
      min_devices: How many are needed, None for any number.
      kind: The kind of device, "CPU", "GPU" or "TPU".
      resolver: If it has several tasks, a new cluster is the one that they have formed. It is queried without `_lock`,
        so that other threads may connect.
      spec: The result of `spec_of(resolver)`, if it is known.

    Raises:
      FailedPreconditionError: if the current cluster has other tasks than the resolver.
    """
    if resolver is not None and spec is None:
        spec = spec_of(resolver)
    tasks = () if spec is None else tasks_of(spec)
    with _lock:
        if (cluster := _agreeing(resolver, tasks, all_devices=min_devices is None)) is not None:
            return cluster
        if not isinstance(resolver, Resolver) or len(tasks) < 2:
            return connect(gpus=min_devices) if kind == "GPU" else connect(replicas=min_devices)
    formed = Formed(tasks, resolver.dask_cluster())
    with _lock:  # another thread may have connected in the meantime
        cluster = _agreeing(resolver, tasks, all_devices=min_devices is None)
        return connect(formed) if cluster is None else cluster


def agreeing_cluster(resolver: Any, spec: Any) -> Cluster | None:
    """The current cluster if it is open, after checking that it has the tasks of a strategy's resolver; else None.

    Args:
      resolver: The resolver, or None.
      spec: The result of `spec_of(resolver)`, or None.

    Raises:
      FailedPreconditionError: if it has other tasks.
    """
    return _agreeing(resolver, () if spec is None else tasks_of(spec), all_devices=True)


def _agreeing(resolver: Any, tasks: tuple[Task, ...], *, all_devices: bool) -> Cluster | None:
    cluster = _current
    if cluster is None or cluster.closed:
        return None
    if resolver is not None:
        gang = cluster.gang
        connected = Connected(
            names=tuple(gang.workers),
            hosts=len(cluster.hosts),
            devices=len(cluster.devices),
            here=cluster.embedded,
            incomplete=gang.minimum_replicas > 0,
        )
        require_agreement(resolver, tasks, connected, all_devices=all_devices)
    return cluster


class _Current:
    """See `forks.tell`: a forked child has no cluster until it connects, and closes none at exit."""

    def disown(self) -> None:
        global _current
        _current = None


_in_children = _Current()
forks.tell(_in_children)


def _close_at_exit() -> None:
    if _current is not None:
        with contextlib.suppress(Exception):
            _current.close()
