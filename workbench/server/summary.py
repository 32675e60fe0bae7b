"""What the left panel and the status bar say about a cluster."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from workbench.runtime import Cluster
from workbench.telemetry.snapshot import Snapshot
from workbench.telemetry.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class StrategySummary:
    """A strategy.

    Attributes:
      label: The user's name for it.
      replicas: Number of replicas.
      status: "live", "stale", "lost" or "stopped".
      step: Its latest step, -1 before the first.
    """

    label: str
    replicas: int
    status: str
    step: int


@dataclass(frozen=True, slots=True)
class PoolSummary:
    """Workers that wait for a notebook.

    Attributes:
      kind: What replicas run on: "cpu", "gpu" or "tpu".
      threads: Whether they are threads of one process, whose number is fixed.
      scaling: Whether workers are starting or leaving.
      settled: How many replicas there were after the last change: what cancelling restores.
      minimum: How many there are while no notebook uses them.
      maximum: How many there are while a notebook uses them; 0 for a fixed number.
    """

    kind: str
    threads: bool
    scaling: bool
    settled: int
    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Summary:
    """A cluster in a few words.

    Attributes:
      status: "starting", "live", "lost" or "stopped".
      text: Its parts, in one line, without its condition: `status` may still change after the process's last message.
      replicas: Number of devices on which replicas can run.
      replicas_live: Number of those with a live worker.
      hosts: Number of hosts of the layout.
      busbw: Bus bandwidth of the newest timings, GB/s: the largest over kinds and groups; None before the first.
      alerts: Number of warnings and errors in the log.
      nan: Number of those about NaN or infinity.
      severity, sentence: The most important statement about its runs; see `telemetry.verdicts`.
      embedded: Whether it ends with the process that drives it.
      strategies: The open strategies.
      pool: Only for workers that wait for a notebook.
    """

    status: str
    text: str
    replicas: int
    replicas_live: int
    hosts: int
    busbw: float | None
    alerts: int
    nan: int
    severity: str
    sentence: str
    embedded: bool
    strategies: tuple[StrategySummary, ...]
    pool: PoolSummary | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)


def summarise(cluster: Cluster, snapshot: Snapshot, verdict: Verdict) -> Summary:
    """Summarises a cluster, without querying workers or waiting.

    Args:
      cluster: The cluster.
      snapshot: The snapshot of its feed.
      verdict: The most important statement.
    """
    workers = list(cluster.gang.workers.values())
    alerts = [event for event in snapshot.events if event.severity != "info"]
    return Summary(
        status=cluster.status,
        text=", ".join(cluster.where),
        replicas=sum(worker.device_count for worker in workers),
        replicas_live=sum(worker.device_count for worker in workers if not worker.lost),
        hosts=len(cluster.hosts),
        busbw=max((row.busbw for row in snapshot.table if row.busbw is not None), default=None),
        alerts=len(alerts),
        nan=sum(event.name in ("nan", "inf") for event in alerts),
        severity=verdict.severity,
        sentence=verdict.sentence,
        embedded=cluster.embedded,
        strategies=tuple(
            StrategySummary(group.label, group.size, group.status, group.number - 1)
            for group in list(cluster.gang.groups.values())
        ),
    )
