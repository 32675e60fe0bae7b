"""The findings of `wb.diagnose` about workers, replicas and groups, before they are judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from workbench.distribute.servers.overview import ServersStatus
from workbench.telemetry.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """One worker.

    Attributes:
      name: Dask's name for it.
      address: Its Dask address.
      host: Label of its host.
      pid: The id of its process.
      lost: Why it was lost, or "".
      answered: Whether it answered in time; if not, the reports on its replicas come from its last heartbeat.
      process_state: State letter of its process on this machine ("R", "S", "T", "D", …), or "".
      heartbeat_age_seconds: Time since its last heartbeat.
      stacks: Python stacks of all its threads, or "".
      beside: Its additional processes, such as the one that reads its input; see `BesideStatus`.
      reached: How its links reach the driver, such as "Unix socket", with the reason if that is unexpected.
    """

    name: str
    address: str
    host: str
    pid: int
    lost: str
    answered: bool
    process_state: str
    heartbeat_age_seconds: float
    stacks: str
    reached: str = ""
    beside: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    """One replica.

    Attributes:
      replica: Its rank.
      worker: Name of its worker.
      busy: Whether it runs something.
      step: Its current or last step, -1 before the first.
      seq: Number of its latest collective in that step, -1 before the first.
      op: The collective or pause that it is in; "" if none.
      phase: "running", "waiting", "moving" or "paused".
      site: The call site, or "".
      place: Its current line of user code, or ""; for a silent worker, also for how long, and why.
      flight: Its last collectives, oldest first, at most 2,000.
    """

    replica: int
    worker: str
    busy: bool
    step: int
    seq: int
    op: str
    phase: str
    site: str
    place: str
    flight: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class GroupReport:
    """The replicas of one strategy.

    Attributes:
      label: The user's name for it.
      status: "live", "stale", "lost" or "stopped".
      generation: How often it was connected.
      step: The latest step that was sent, -1 before the first.
      committed_step: The latest step that succeeded everywhere.
      in_flight: Steps in flight.
      replicas: One per replica.
      missing: Replicas that currently do not take part because their workers are lost, by their numbers among all.
      failed: How the last step ended, such as "step 60 failed: replica 1 was lost"; "" if it succeeded.
    """

    label: str
    status: str
    generation: int
    step: int
    committed_step: int
    in_flight: int
    replicas: tuple[ReplicaReport, ...]
    missing: tuple[int, ...] = ()
    failed: str = ""


@dataclass(frozen=True, slots=True)
class ServersReport:
    """The parameter servers of one strategy, and the functions on its workers.

    Attributes:
      status: Their status.
      journals: Folder and size in bytes of each server's journal.
    """

    status: ServersStatus
    journals: tuple[tuple[str, int], ...]


class Findings(Protocol):
    """All findings.

    Attributes:
      run: Name of the run.
      status: The status of the cluster.
      workers: All workers.
      groups: One per strategy.
      said: Statements about the collectives, the most important first.
      servers: One per strategy with parameter servers.
    """

    run: str
    status: str
    workers: tuple[WorkerReport, ...]
    groups: tuple[GroupReport, ...]
    said: tuple[Verdict, ...]
    servers: tuple[ServersReport, ...]
