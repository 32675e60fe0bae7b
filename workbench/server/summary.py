"""What the left panel and the status bar say of a cluster."""

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
      label: What the user calls it.
      replicas: How many.
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
      threads: They are threads of one process, whose number stays.
      scaling: Workers are on their way, or leave.
      settled: How many replicas there were when the number changed last: what cancelling goes back to.
      minimum: How many there are while nobody uses them.
      maximum: How many there are while a notebook uses them; 0 where the number stays.
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
      text: What it consists of, in one line. How it is goes on changing after its process has told last: `status`.
      replicas: Devices on which replicas can run.
      replicas_live: Those whose worker is there.
      hosts: How many hosts, as laid out.
      busbw: Bus bandwidth of the newest timings, GB/s: the largest over kinds and groups; None before the first.
      alerts: Warnings and errors in the log.
      nan: Those among them that tell of NaN or infinity.
      severity, sentence: What is to be said of its runs first; see `telemetry.verdicts`.
      embedded: It ends with the process that drives it.
      strategies: Those that are open.
      pool: Of workers that wait for a notebook only.
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
    """Looks at a cluster; asks no worker, and waits for nothing.

    Args:
      cluster: The cluster.
      snapshot: The snapshot of its feed.
      verdict: What is to be said first.
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
