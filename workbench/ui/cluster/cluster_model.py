"""The models of a cluster: its topology, and the use of its devices."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from workbench.runtime.metrics import WorkerMetrics, worker_metrics
from workbench.runtime.placement_text import transport
from workbench.runtime.process.gpu_use import GpuUse
from workbench.runtime.user_code.notebook_cells import with_cell_names
from workbench.telemetry.formatting import size_text
from workbench.telemetry.limits import Limit
from workbench.telemetry.snapshot import SampledSteps
from workbench.telemetry.told import MemoryFacts
from workbench.ui.cluster.replica_news import ReplicaNews, replica_news
from workbench.ui.cluster.verdict import beside_text
from workbench.ui.models.cluster import (
    DeviceNode,
    Devices,
    DeviceUse,
    HostNode,
    ReplicaNode,
    StrategyNode,
    Topology,
    WorkerNode,
)

if TYPE_CHECKING:
    from workbench.runtime.cluster import Cluster
    from workbench.runtime.deploy.worker_link import WorkerLink
    from workbench.runtime.driver.group import Group

_STALE_SECONDS: Final = 3.0
_HISTORY: Final = 32
_LARGE: Final = 1 << 30  # bytes, more than any cache holds
_Key = tuple[str, int]
"""A kind of device, and its number on the worker."""
_Figures = tuple[str, float | None, int | None, int | None]
"""A device's name, percent in use, memory in use, and the size of that memory."""


def topology_model(cluster: Cluster) -> Topology:
    """Hosts, workers, devices and replicas at their last heartbeats; sends no request."""
    groups = list(cluster.gang.groups.values())
    news = replica_news(cluster.feed, cluster.gang.run_id)
    hosts: defaultdict[str, list[WorkerNode]] = defaultdict(list)
    for worker in list(cluster.gang.workers.values()):
        node = _worker(worker, groups, news, len(hosts[worker.host]))
        hosts[worker.host].append(_stopped(node) if cluster.closed else node)
    return Topology(
        run=cluster.name,
        status=cluster.status,
        hosts=tuple(HostNode(name, tuple(workers)) for name, workers in hosts.items()),
        strategies=tuple(_strategy(group, cluster.feed.limit(group.name)) for group in groups),
    )


def as_stopped(last: Topology) -> Topology:
    """The last state of a cluster that is now closed: nothing runs any more, and closing did not lose any worker."""

    def over(device: DeviceNode) -> DeviceNode:
        return replace(device, replicas=tuple(replace(each, busy=False) for each in device.replicas))

    hosts = tuple(
        replace(
            host,
            workers=tuple(
                replace(
                    worker,
                    status="lost" if worker.status == "lost" else "stopped",
                    devices=tuple(map(over, worker.devices)),
                )
                for worker in host.workers
            ),
        )
        for host in last.hosts
    )
    strategies = tuple(replace(strategy, status="stopped") for strategy in last.strategies)
    return replace(last, status="stopped", hosts=hosts, strategies=strategies)


def _strategy(group: Group, limit: Limit | None) -> StrategyNode:
    return StrategyNode(
        label=group.label,
        replicas=group.size,
        status=group.status,
        transport=transport(group.devices),
        generation=group.generation,
        step=group.number - 1,
        bandwidth=None if limit is None else limit.of(_LARGE),
    )


def _worker(
    worker: WorkerLink, groups: list[Group], news: Mapping[tuple[str, int], ReplicaNews], before: int
) -> WorkerNode:
    """A worker with its devices and replicas.

    Args:
      worker: The worker.
      groups: All groups of the cluster.
      news: News about replicas, by group name and generation.
      before: How many earlier workers are on the same host.
    """
    age = time.monotonic() - worker.last_beat
    kind, first = worker.device_kind, _first(worker, before)
    busy = busy_replicas(worker, groups)
    replicas: defaultdict[int, list[ReplicaNode]] = defaultdict(list)
    for group in groups:
        for rank, index in group.ranks_of(worker.name).items():
            doing = "lost" if worker.lost else busy.get((group.id, rank), "idle")
            is_busy = not worker.lost and (group.id, rank) in busy
            told = news.get((group.name, group.generation), ReplicaNews())
            replicas[index].append(
                ReplicaNode(group.label, rank, is_busy, doing, told.of(rank), told.busy_shares.get(rank))
            )
    devices = [
        DeviceNode(
            f"{kind.lower()}:{first + index}{_model_of(worker.gpus, index)}", kind, tuple(replicas[index])
        )
        for index in range(worker.device_count)
    ]
    memory_bytes = _resident_bytes(worker)
    return WorkerNode(
        name=str(worker.name),
        pid=worker.pid,
        status=worker_status(worker),
        detail=_detail(worker, memory_bytes),
        memory_bytes=memory_bytes,
        heartbeat_age_seconds=round(age, 1),
        devices=tuple(devices),
    )


def _model_of(gpus: tuple[GpuUse, ...], index: int) -> str:
    """Name and memory of a device's GPU, and whether it has other devices, too; "" if not known."""
    if index >= len(gpus) or not gpus[index].source:
        return ""
    gpu = gpus[index]
    shared = sum(each.ordinal == gpu.ordinal for each in gpus) > 1
    memory = "" if gpu.memory_limit_bytes is None else f", {size_text(gpu.memory_limit_bytes)}"
    return f" {gpu.name}{memory}{', shared' if shared else ''}"


def _detail(worker: WorkerLink, memory_bytes: int | None) -> str:
    """Why it is lost; otherwise, its additional processes, plus the usual text of a worker's card."""
    if worker.lost or not worker.beside:
        return str(worker.lost or "")
    memory = [] if memory_bytes is None else [size_text(memory_bytes)]
    return " · ".join([*map(beside_text, worker.beside), f"pid {worker.pid}", *memory])


def _stopped(worker: WorkerNode) -> WorkerNode:
    """A worker of a closed cluster, whose last state no longer applies."""
    devices = tuple(
        replace(
            device, replicas=tuple(replace(each, busy=False, doing="stopped") for each in device.replicas)
        )
        for device in worker.devices
    )
    return replace(worker, status="stopped", detail="", memory_bytes=None, devices=devices)


def worker_status(worker: WorkerLink) -> str:
    """One word: "live", "stale" (no heartbeat for seconds) or "lost"."""
    if worker.lost:
        return "lost"
    return "stale" if time.monotonic() - worker.last_beat > _STALE_SECONDS else "live"


def _first(worker: WorkerLink, before: int) -> int:
    """The index on its host of a worker's first device. All workers of a host have the same number of devices."""
    return before * worker.device_count


def busy_replicas(worker: WorkerLink, groups: Iterable[Group]) -> dict[tuple[int, int], str]:
    """Group and rank of each busy replica, and what it does according to its worker's last heartbeat.

    A heartbeat may be older than the end of its step, so the driver's knowledge of steps takes precedence.

    Args:
      worker: The worker of the replicas.
      groups: The groups to inspect.
    """
    found = {}
    known = {group.id: group for group in groups}
    for group, rank, busy, step, seq, op, phase, site in worker.statuses:
        sent = known[group].unreported(rank) if busy and group in known else []
        if sent and step not in sent and -1 not in sent:
            found[group, rank] = f"step {sent[0]}: running"
        elif sent:
            # Between steps, replicas run requests of workbench itself.
            when = f"step {step}" if step >= 0 else "between steps"
            where = f" at {with_cell_names(site)}" if site else ""
            found[group, rank] = f"{when}: {op} #{seq + 1}, {phase}{where}" if op else f"{when}: {phase}"
    return found


def _resident_bytes(worker: WorkerLink) -> int | None:
    import psutil

    if not worker.local or worker.lost:
        return None
    try:
        return int(psutil.Process(worker.pid).memory_info().rss)
    except psutil.Error:  # the process has just ended
        return None


def tell_memory(cluster: Cluster) -> dict[str, WorkerMetrics]:
    """Reports to the feed the fullest memory of each group's replicas; returns the use of the workers.

    It queries Dask's scheduler, which answers even while a step runs.
    """
    metrics = worker_metrics(cluster)
    for group in list(cluster.gang.groups.values()):
        found = []
        for rank in range(group.size):
            use, index = metrics.get(group.devices[rank].worker), group.devices[rank].index
            gpu = use.gpus[index] if use is not None and index < len(use.gpus) else GpuUse(index)
            if gpu.memory_bytes is not None and gpu.memory_limit_bytes:
                found.append(MemoryFacts(rank, gpu.memory_bytes, gpu.memory_limit_bytes))
            elif use is not None and use.memory_limit_bytes:
                found.append(MemoryFacts(rank, use.memory_bytes, use.memory_limit_bytes))
        fullest = max(found, key=lambda memory: memory.used_bytes / memory.limit_bytes, default=None)
        cluster.feed.set_memory(group.name, fullest, step=group.number - 1)
    return metrics


class DeviceHistory:
    """The use of a cluster's devices, now and earlier."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._recent: defaultdict[str, deque[float | None]] = defaultdict(lambda: deque(maxlen=_HISTORY))
        # For each worker, the names of the devices that have reported their use.
        self._known: defaultdict[str, dict[_Key, str]] = defaultdict(dict)
        self._numbers: dict[str, int] = {}  # by group, the number of its next step
        self._stepping = ""  # the group that was last seen running a step
        # The next step of that group, at each sample.
        self._steps: deque[tuple[str, int]] = deque(maxlen=_HISTORY)

    def model(self) -> Devices:
        """The use now; see `tell_memory`."""
        closed = self._cluster.closed
        metrics = tell_memory(self._cluster)
        self._look_at_steps()
        uses = []
        for worker in list(self._cluster.gang.workers.values()):
            uses += self._uses(worker, metrics.get(worker.address))
        for gone in self._recent.keys() - {use.key for use in uses}:
            # A device that returns starts over, because samples are counted from the newest.
            del self._recent[gone]
        if closed:
            uses = [replace(use, status="stopped", use_percent=None, memory_bytes=None) for use in uses]
        return Devices(self._cluster.name, self._cluster.status, tuple(uses), self._sampled())

    def _look_at_steps(self) -> None:
        """Records the progress of the strategy that ran a step last."""
        for group in list(self._cluster.gang.groups.values()):
            if group.number > self._numbers.get(group.name, 0):
                self._stepping = group.name
            self._numbers[group.name] = group.number
        self._steps.append((self._stepping, self._numbers.get(self._stepping, 0) - 1))

    def _sampled(self) -> SampledSteps | None:
        if not self._stepping:
            return None
        steps = (step if group == self._stepping else -1 for group, step in self._steps)
        return SampledSteps(self._cluster.gang.run_id, self._stepping, tuple(steps))

    def _uses(self, worker: WorkerLink, metrics: WorkerMetrics | None) -> list[DeviceUse]:
        """The use of all devices that the worker has ever reported; a device that it does not report now has a gap."""
        told: dict[_Key, _Figures] = {}
        if metrics is not None:
            told["CPU", 0] = (
                f"worker {worker.name}",
                metrics.cpu_percent,
                metrics.memory_bytes,
                metrics.memory_limit_bytes,
            )
            several = len({gpu.ordinal for gpu in metrics.gpus}) > 1
            for gpu in metrics.gpus:
                name = f"{gpu.name} {gpu.ordinal}" if several else gpu.name
                without = "" if gpu.source == "NVML" else ", without NVML"
                told["GPU", gpu.ordinal] = (
                    f"{name} of worker {worker.name}{without}",
                    gpu.percent,
                    gpu.memory_bytes,
                    gpu.memory_limit_bytes,
                )
        known = self._known[worker.name]
        known.update({key: figures[0] for key, figures in told.items()})
        if not known:
            known[worker.device_kind, 0] = f"worker {worker.name}"
        status = worker_status(worker)
        uses = []
        for key in sorted(known):
            name, percent, memory, limit = told.get(key, (known[key], None, None, None))
            text = f"{worker.name}|{key[0]}|{key[1]}"
            recent = self._recent[text]
            recent.append(percent)
            uses.append(
                DeviceUse(text, worker.host, name, key[0], status, percent, memory, limit, tuple(recent))
            )
        return uses
