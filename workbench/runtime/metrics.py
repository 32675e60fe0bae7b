"""The use of workers according to Dask's scheduler, from their last heartbeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from workbench.runtime.process.gpu_use import METRIC, GpuUse

if TYPE_CHECKING:
    from workbench.runtime.cluster import Cluster

_DEADLINE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class WorkerMetrics:
    """Use of one worker process.

    Attributes:
      cpu_percent: Percent of one core.
      memory_bytes: Resident memory.
      memory_limit_bytes: Its memory limit, or None.
      gpus: The use of the GPU of each device; several devices may share one. For a worker without GPU devices, what
        Dask reports about the first GPU, if anything.
    """

    cpu_percent: float
    memory_bytes: int
    memory_limit_bytes: int | None
    gpus: tuple[GpuUse, ...] = ()


def worker_metrics(cluster: Cluster) -> dict[str, WorkerMetrics]:
    """Use of each worker by address; empty if the cluster is closed or the scheduler does not answer in time."""
    if cluster.closed:
        return {}
    client = cluster.client
    scheduler = client.scheduler
    if scheduler is None:
        return {}
    try:
        known = client.sync(scheduler.identity, n_workers=-1, callback_timeout=_DEADLINE_SECONDS)
    except Exception:  # a view of devices should not report the scheduler's problems
        return {}
    return {address: _metrics(worker) for address, worker in known["workers"].items()}


def _metrics(worker: dict[str, Any]) -> WorkerMetrics:
    metrics = worker["metrics"]
    return WorkerMetrics(
        cpu_percent=float(metrics.get("cpu", 0.0)),
        memory_bytes=int(metrics.get("memory", 0)),
        memory_limit_bytes=worker.get("memory_limit") or None,
        gpus=tuple(GpuUse(**use) for use in metrics.get(METRIC, ())) or _dasks_own(worker),
    )


def _dasks_own(worker: dict[str, Any]) -> tuple[GpuUse, ...]:
    now, once = worker["metrics"].get("gpu"), worker.get("extra", {}).get("gpu", {})
    if not now:
        return ()
    name, limit = once.get("name") or "GPU", once.get("memory-total")
    return (GpuUse(0, name, now.get("utilization"), now.get("memory-used"), limit, "NVML"),)
