"""What Dask's scheduler knows of the use of workers, as of their last heartbeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from workbench.runtime.cluster import Cluster

_DEADLINE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class WorkerMetrics:
    """Use of one worker process.

    Attributes:
      cpu_percent: Percent of one core.
      memory_bytes: Resident memory.
      memory_limit_bytes: What it may use, or None for no limit.
      gpu_percent: Use of its GPU, or None where that is not known.
      gpu_memory_bytes: Used memory of its GPU, or None.
      gpu_memory_limit_bytes: Memory of its GPU, or None.
    """

    cpu_percent: float
    memory_bytes: int
    memory_limit_bytes: int | None
    gpu_percent: float | None = None
    gpu_memory_bytes: int | None = None
    gpu_memory_limit_bytes: int | None = None


def worker_metrics(cluster: Cluster) -> dict[str, WorkerMetrics]:
    """Use of each worker by address; empty where the cluster is closed or the scheduler does not answer in time."""
    if cluster.closed:
        return {}
    client = cluster.client
    scheduler = client.scheduler
    if scheduler is None:
        return {}
    try:
        known = client.sync(scheduler.identity, n_workers=-1, callback_timeout=_DEADLINE_SECONDS)
    except Exception:  # whatever is wrong with the scheduler, not the view of devices should say so
        return {}
    return {address: _metrics(worker) for address, worker in known["workers"].items()}


def _metrics(worker: dict[str, Any]) -> WorkerMetrics:
    metrics = worker["metrics"]
    gpu, extra = metrics.get("gpu", {}), worker.get("extra", {}).get("gpu", {})
    return WorkerMetrics(
        cpu_percent=float(metrics.get("cpu", 0.0)),
        memory_bytes=int(metrics.get("memory", 0)),
        memory_limit_bytes=worker.get("memory_limit") or None,
        gpu_percent=gpu.get("utilization"),
        gpu_memory_bytes=gpu.get("memory-used"),
        gpu_memory_limit_bytes=extra.get("memory-total"),
    )
