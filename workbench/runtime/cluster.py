"""`connect`: the embedded cluster, or any Dask cluster, as a set of devices."""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from distributed import Client

from workbench.devices import Device
from workbench.errors import InvalidArgumentError, UnavailableError, WorkbenchError
from workbench.runtime import embedded, held_workers
from workbench.runtime.cells import with_cell_names
from workbench.runtime.connecting import Connector
from workbench.runtime.gang import Gang
from workbench.runtime.gpus import chosen as chosen_gpus
from workbench.runtime.gpus import default as default_gpus
from workbench.runtime.gpus import worker_environment as gpu_environment
from workbench.runtime.group import Group
from workbench.runtime.health import LocalHealth
from workbench.runtime.placement_text import one_line, placement
from workbench.runtime.plugin import TELEMETRY_TOPIC, WorkbenchPlugin
from workbench.runtime.reaching import reachable_scheduler
from workbench.runtime.tpu import keep_notebook_off, worker_environment
from workbench.runtime.watch import WatchThread
from workbench.runtime.wire import TELEMETRY
from workbench.telemetry.events import Event
from workbench.telemetry.feed import Feed

opened: list[Callable[[Cluster], object]] = []
"""Called with each cluster that `connect` has made; what shows clusters adds itself here."""
_current: Cluster | None = None
_lock = threading.RLock()


class Cluster:
    """Workers of a Dask cluster that this process drives.

    Attributes:
      name: A short id, the run's name in telemetry and errors.
      client: Dask's client.
      devices: All devices, host by host.
      feed: Telemetry of everything that runs on it.
      telemetry_listeners: Called with each batch that the feed takes in.
      event_listeners: Called with each event that the driver itself adds to the feed; they must return at once.
      embedded: It was started by `connect` and ends with it.
      workers_of: Id of the announced workers that it uses, or "".
      closing: Called when it begins to close, while everything is still there.
    """

    def __init__(
        self,
        client: Client,
        *,
        owned: list[Any],
        embedded_in: Any = None,
        plugin: WorkbenchPlugin,
        remote: set[str],
        stall_seconds: float,
        workers_of: str = "",
    ) -> None:
        self.name = secrets.token_hex(2)
        self.client = client
        self.embedded = embedded_in is not None
        self.feed = Feed(name_sites=with_cell_names)
        self.telemetry_listeners: list[Callable[[bytes], object]] = []
        self.event_listeners: list[Callable[[Event], object]] = []
        self.workers_of = workers_of
        self.closing: list[Callable[[], object]] = []
        self._owned = owned
        self._connector = Connector(
            client,
            holder=_holder_name(),
            shape={"devices": plugin.devices, "kind": plugin.device_kind},
            remote_hosts=remote.__contains__,
        )
        client.register_plugin(plugin)
        described = self._connector.describe()
        if not described:
            raise UnavailableError(
                "the Dask cluster has no workers; start some, or scale it up, then connect again"
            )
        self._connector.claim(described)
        described = self._connector.describe()  # as the claim has shaped them
        order = sorted(
            described.values(), key=lambda worker: (_natural(worker["host"]), _natural(worker["name"]))
        )
        hosts = list(dict.fromkeys(worker["host"] for worker in order))
        workers = [self._connector.open(worker, hosts.index(worker["host"])) for worker in order]
        self.hosts = tuple(hosts)
        by_reference = all(worker.steps.by_reference for worker in workers)
        health = LocalHealth(
            worker_exit=_unknown_exit if embedded_in is None else embedded.worker_exit,
            replacement=self._connector.replacement,
            dismiss=self._connector.dismiss,
            stall_seconds=stall_seconds,
        )
        self.gang = Gang(workers, run_id=self.name, by_reference=by_reference, health=health)
        self.gang.cluster = self
        self.gang.notify = self._on_event
        self._watch = WatchThread(self.gang)
        self._watch.start()
        client.subscribe_topic(TELEMETRY_TOPIC, self._on_telemetry)

    @property
    def devices(self) -> tuple[Device, ...]:
        """All devices, host by host; a device's index counts on its host."""
        devices: list[Device] = []
        counts: dict[str, int] = {}
        for worker in self.gang.workers.values():
            for _ in range(worker.device_count):
                index = counts.get(worker.host, 0)
                counts[worker.host] = index + 1
                devices.append(Device(worker.device_kind, index, worker.host, worker.address, worker.task))
        return tuple(devices)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self.gang.closed

    def group(self, devices: Sequence[Device], *, label: str) -> Group:
        """Connects replicas on these devices with each other.

        Args:
          devices: From `devices`, one per replica, in rank order.
          label: What the user calls it, for errors and telemetry.
        """
        self.gang.check_open()
        if len(kinds := {device.kind for device in devices}) > 1:
            raise InvalidArgumentError(
                f"the replicas of a strategy need devices of one kind, got {' and '.join(sorted(kinds))}; choose those "
                f"of one kind by name, such as ['GPU:0', 'GPU:1']"
            )
        return Group(self.gang, devices, label=label)

    def flush_telemetry(self, deadline_seconds: float = 2.0) -> tuple[str, ...]:
        """Brings the feed up to date with what the replicas have recorded so far, also while a step hangs.

        Returns:
          The addresses of workers that did not answer in time.
        """
        end = time.monotonic() + deadline_seconds
        silent = []
        for question in [self.gang.urgent.ask(worker, TELEMETRY) for worker in self.gang.living()]:
            try:
                batches = question.answer(max(0.0, end - time.monotonic()))
            except WorkbenchError:
                silent.append(question.worker.address)
            else:
                for batch in batches:
                    self._take_telemetry(batch)
        return tuple(silent)

    def close(self) -> None:
        """Ends the embedded cluster, or lets the workers of another one go. Idempotent."""
        global _current
        with _lock:
            if _current is self:
                _current = None
        if self.gang.closed:
            return
        for callback in self.closing:
            callback()
        with contextlib.suppress(Exception):
            self.client.unsubscribe_topic(TELEMETRY_TOPIC)
        addresses = [worker.address for worker in self.gang.workers.values() if not worker.lost]
        self.gang.close()
        self._watch.close()
        if not self.embedded:
            with contextlib.suppress(Exception):  # a scheduler that is gone has nothing to release
                self._connector.release(addresses)
        for owned in self._owned:
            owned.close()

    @property
    def status(self) -> str:
        """One word: "live", "lost" (a worker is gone, and comes back before the next step) or "stopped"."""
        if self.gang.closed:
            return "stopped"
        return "lost" if any(worker.lost for worker in self.gang.workers.values()) else "live"

    def __repr__(self) -> str:
        where = placement(self.devices, "device")
        return one_line("Cluster", where, "embedded" if self.embedded else "", self.status)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _on_telemetry(self, event: tuple[Any, bytes]) -> None:
        self._take_telemetry(event[1])

    def _on_event(self, event: Event) -> None:
        self.feed.add_event(event)
        for listener in tuple(self.event_listeners):
            listener(event)

    def _take_telemetry(self, batch: bytes) -> None:
        """Batches come twice, by the topic and by `flush_telemetry`; whoever takes them leaves out the second."""
        self.feed.ingest(batch)
        for listener in tuple(self.telemetry_listeners):
            listener(batch)


def connect(
    address: str | Client | Any | None = None,
    *,
    replicas: int | None = None,
    hosts: int | None = None,
    replicas_per_host: int | None = None,
    replicas_per_worker: int = 1,
    processes: bool = True,
    tpu: int | None = None,
    gpus: int | None = None,
    gpu_replicas: int | None = None,
    stall_seconds: float = 10.0,
    memory_limit: str | int | None = None,
    environment: dict[str, str] | None = None,
    timeout_seconds: float | None = None,
) -> Cluster:
    """Connects to devices; strategies made from now on use them.

    Without an address a cluster is started on this machine: loopback only, TLS, random ports; it ends with
    this process or with `close`. An earlier embedded cluster is closed first.

    Without any numbers it has one replica per NVIDIA GPU if there are some, else one per core.

    Args:
      address: Nothing, the address of a Dask scheduler, a `distributed.Client`, a Dask cluster object, or
        "workbench://ID" for workers that JupyterLab's panel has started.
      replicas: Number of CPU replicas of the embedded cluster; default one per core.
      hosts: Lay the embedded cluster out as so many hosts, to run multi-host code on one machine.
      replicas_per_host: Replicas on each of them.
      replicas_per_worker: Replicas (threads) in one worker process.
      processes: False runs all replicas as threads of this process: functions share its objects; for
        debugging.
      tpu: TPU cores of each host, for `TPUStrategy`: those of this machine, or emulated ones on the CPU where it has
        none; with `hosts`, one worker process for each. With an address, those of each worker there.
      gpus: So many NVIDIA GPUs of this machine, one replica and worker process on each; 0 leaves them alone. Workers of
        an address are on GPUs if CUDA_VISIBLE_DEVICES is set for them, as dask-cuda does; 0 uses their CPUs.
      gpu_replicas: So many replicas on the first GPU, as threads of one worker process, to learn and to test with: they
        share its time and memory, so nothing gets faster.
      stall_seconds: Silence after which a worker's replicas are given up as stalled.
      memory_limit: Memory limit of an embedded worker process, as Dask reads it.
      environment: Environment variables of embedded worker processes.
      timeout_seconds: How long to wait for a scheduler at the address to come up and answer. By default a connection
        that is refused is an error at once, and an answer is waited for ten seconds.

    Raises:
      InvalidArgumentError: if the numbers do not fit together.
      UnavailableError: if nothing answers at the address.
      ClusterBusy: if another driver holds the workers.
    """
    global _current
    layout_given = any(value is not None for value in (replicas, hosts, replicas_per_host))
    if address is not None and layout_given:
        raise InvalidArgumentError(
            "replicas, hosts and replicas_per_host describe an embedded cluster; a cluster given by address has the "
            "workers it has: leave them out, or scale the cluster"
        )
    if tpu is not None:
        _check_tpu(tpu, replicas, replicas_per_host, replicas_per_worker, processes)
        keep_notebook_off()
    if gpus or gpu_replicas is not None:
        _check_gpus(address, layout_given or tpu is not None, replicas_per_worker)
    with _lock:
        if _current is not None and address is None:
            _current.close()
        if tpu is not None and address is None:
            layout = _layout(None, hosts, tpu, tpu, processes)
            environment = worker_environment(tpu) | (environment or {})
            cluster = _embedded(layout, processes, stall_seconds, memory_limit, environment, "TPU")
        elif address is None and (
            on := _gpus(gpus, gpu_replicas, layout_given or replicas_per_worker > 1, processes)
        ):
            layout = {str(index): ("a", gpu_replicas or 1) for index in range(len(on))}
            environment = gpu_environment() | (environment or {})
            cluster = _embedded(
                layout, processes, stall_seconds, memory_limit, environment, "GPU", on_gpus=on
            )
        elif address is None:
            layout = _layout(replicas, hosts, replicas_per_host, replicas_per_worker, processes)
            cluster = _embedded(layout, processes, stall_seconds, memory_limit, environment)
        else:
            kind = "TPU" if tpu else "CPU" if gpus == 0 else ""
            cluster = _attach(address, tpu or replicas_per_worker, stall_seconds, kind, timeout_seconds)
        _current = cluster
    for tell in opened:
        tell(cluster)
    return cluster


def current_cluster() -> Cluster | None:
    """The cluster that strategies use, or None before the first `connect`."""
    return _current


def auto_connect(min_devices: int | None = None, *, kind: str = "CPU") -> Cluster:
    """The current cluster, or a new embedded one with `min_devices` devices (default: all GPUs, else one per core).

    Args:
      min_devices: How many are needed, None for any number.
      kind: Of what kind.
    """
    with _lock:
        if _current is not None and not _current.closed:
            return _current
        return connect(gpus=min_devices) if kind == "GPU" else connect(replicas=min_devices)


def _check_gpus(address: Any, otherwise: bool, per_worker: int) -> None:
    if address is not None:
        raise InvalidArgumentError(
            "gpus and gpu_replicas describe an embedded cluster; workers of a cluster given by address are on GPUs if "
            "CUDA_VISIBLE_DEVICES is set for them: start them with dask-cuda, or one per GPU with that variable"
        )
    if otherwise or per_worker != 1:
        raise InvalidArgumentError(
            "gpus=n gives n GPUs one replica each, gpu_replicas=n one GPU n replicas; leave out replicas, hosts, "
            "replicas_per_host, replicas_per_worker and tpu"
        )


def _gpus(gpus: int | None, gpu_replicas: int | None, otherwise: bool, processes: bool) -> tuple[str, ...]:
    """The GPUs of the embedded cluster, none for CPU devices."""
    if gpus or gpu_replicas is not None:
        if not processes and gpu_replicas is None:
            raise InvalidArgumentError(
                "with processes=False all replicas are in this process; use gpu_replicas to put them on its GPU"
            )
        return chosen_gpus(gpus or None, gpu_replicas)
    return () if gpus == 0 or otherwise or not processes else default_gpus()


def _check_tpu(
    tpu: int, replicas: int | None, per_host: int | None, per_worker: int, processes: bool
) -> None:
    if not isinstance(tpu, int) or isinstance(tpu, bool) or tpu < 1:
        raise InvalidArgumentError(
            f"tpu must be an integer of at least 1, the TPU cores of a host; got {tpu!r}"
        )
    if replicas is not None or per_host is not None or per_worker != 1 or not processes:
        raise InvalidArgumentError(
            "tpu=n gives each host n devices in a process of its own; leave out replicas, replicas_per_host, "
            "replicas_per_worker and processes, and use hosts for more of them"
        )


def _layout(
    replicas: int | None, hosts: int | None, per_host: int | None, per_worker: int, processes: bool
) -> dict[str, tuple[str, int]]:
    """Worker name -> (host label, devices)."""
    for name, value in (
        ("replicas", replicas),
        ("hosts", hosts),
        ("replicas_per_host", per_host),
        ("replicas_per_worker", per_worker),
    ):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise InvalidArgumentError(f"{name} must be an integer of at least 1, got {value!r}")
    host_count = hosts or 1
    if replicas is not None and per_host is not None and replicas != host_count * per_host:
        raise InvalidArgumentError(
            f"replicas={replicas} is not hosts × replicas_per_host = {host_count} × {per_host}; leave one of them out"
        )
    if replicas is not None and replicas % host_count:
        raise InvalidArgumentError(
            f"{replicas} replicas cannot be laid out evenly on {host_count} hosts; use a multiple of {host_count}"
        )
    on_host = per_host or (replicas // host_count if replicas is not None else max(1, _cores() // host_count))
    in_worker = on_host if not processes else per_worker
    if on_host % in_worker:
        raise InvalidArgumentError(
            f"{on_host} replicas per host cannot be divided over workers of {in_worker}; use a divisor of {on_host}"
        )
    layout: dict[str, tuple[str, int]] = {}
    for host in range(host_count):
        label = chr(ord("a") + host) if host_count <= 26 else f"host{host}"
        for _ in range(on_host // in_worker):
            layout[str(len(layout))] = (label, in_worker)
    return layout


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _embedded(
    layout: dict[str, tuple[str, int]],
    processes: bool,
    stall_seconds: float,
    memory_limit: str | int | None,
    environment: dict[str, str] | None,
    device_kind: str = "CPU",
    *,
    on_gpus: Sequence[str] = (),
) -> Cluster:
    local = embedded.start(
        workers=len(layout),
        processes=processes,
        listen="127.0.0.1",
        memory_limit=memory_limit,
        environment=environment,
        gpus=on_gpus,
    )
    client = Client(local, set_as_default=False)
    try:
        hosts = dict.fromkeys(label for label, _ in layout.values())
        return Cluster(
            client,
            owned=[client, local],
            embedded_in=local,
            plugin=WorkbenchPlugin(layout, device_kind=device_kind, embedded=processes),
            # Hosts other than the first are reached as remote ones are, so that this path is one that always
            # runs.
            remote=set(list(hosts)[1:]),
            stall_seconds=stall_seconds,
        )
    except BaseException:
        client.close()
        local.close()
        raise


def _attach(
    address: Any,
    devices_per_worker: int,
    stall_seconds: float,
    device_kind: str,
    timeout_seconds: float | None,
) -> Cluster:
    owned: list[Any] = []
    workers_of = ""
    if isinstance(address, Client):
        client = address
    elif isinstance(address, str) and address.startswith(held_workers.SCHEME):
        workers_of = address.removeprefix(held_workers.SCHEME)
        client = held_workers.client(workers_of)
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
        return Cluster(
            client,
            owned=owned,
            plugin=WorkbenchPlugin({}, devices=devices_per_worker, device_kind=device_kind),
            remote=set(),
            stall_seconds=stall_seconds,
            workers_of=workers_of,
        )
    except BaseException:
        for thing in owned:
            thing.close()
        raise


def _holder_name() -> str:
    return os.environ.get("JPY_SESSION_NAME") or os.path.basename(sys.argv[0] or "") or "a Python session"


def _natural(text: str) -> Iterable[Any]:
    """Sort key under which worker 10 comes after worker 9."""
    import re

    return [
        (0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", text) if part
    ]


def _unknown_exit(pid: int, timeout_seconds: float) -> embedded.WorkerExit | None:
    return None


@atexit.register
def _close_at_exit() -> None:
    if _current is not None:
        with contextlib.suppress(Exception):
            _current.close()
