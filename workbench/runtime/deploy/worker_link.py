"""The driver's side of one worker: its links, the functions sent to it, its health."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from workbench.errors import ReplicaLost, ReplicaStalled, WorkbenchError
from workbench.runtime.comm.links import Link
from workbench.runtime.comm.messages import ReplicaStatus
from workbench.runtime.process.beside import BesideStatus
from workbench.runtime.process.gpu_use import GpuUse


class EndKind(Enum):
    """The ways in which a worker can end."""

    LOST = "lost"
    """Its process or connection ended."""
    LEFT = "left"
    """It announced that it would leave."""
    STALLED = "stalled"
    """It was given up because it was silent for too long."""
    ENDED = "ended"
    """The driver ended it."""


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """How a worker ended.

    Attributes:
      kind: The way in which it ended.
      what: A verb phrase, such as "was killed by SIGKILL".
      detail: Further facts; mostly "".
    """

    kind: EndKind
    what: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.detail}" if self.detail else self.what

    @property
    def error_type(self) -> type[WorkbenchError]:
        """The error for calls that need the worker."""
        return ReplicaStalled if self.kind is EndKind.STALLED else ReplicaLost


@dataclass(slots=True, eq=False)
class WorkerLink:
    """A claimed worker.

    Attributes:
      name: Dask's name for it, which a restarted worker keeps.
      address: Its Dask address, which changes when it is restarted.
      host: Label of its host.
      task: The host's number.
      pid: Its process.
      local: Whether the driver sees its process, as `pid`.
      device_count: Number of replicas that it can run.
      device_kind: The kind of its devices: "CPU", "GPU" or "TPU".
      reached: The transport of its links to the driver, and the reason if it is unusual.
      steps: The ordered link.
      signals: The link for urgent messages.
      shipped: Ids of functions and structures that it has.
      structures: Result structures, by the worker's numbers for them.
      statuses: Its last heartbeat, one row per replica.
      beside: The processes beside the worker, from this heartbeat.
      last_beat: When the last heartbeat arrived, by `time.monotonic`.
      standing: Where its replicas are if it has fallen silent (see `silence`), else "". For the watching thread.
      silenced: Whether its link for urgent messages has ended. For the watching thread.
      doomed: How it will end, if it was given up or announced that it would leave; else None.
      lost: How it ended, None while it runs.
      lost_at: When that was noticed, by `time.time`.
      machine: Its machine, as far as names identify it.
      gpus: The GPU of each device when it was claimed; empty for other devices.
    """

    name: str
    address: str
    host: str
    task: int
    pid: int
    local: bool
    device_count: int
    steps: Link
    signals: Link
    device_kind: str = "CPU"
    reached: str = ""
    shipped: set[int] = field(default_factory=set)
    structures: dict[int, Any] = field(default_factory=dict)
    statuses: list[ReplicaStatus] = field(default_factory=list)
    beside: list[BesideStatus] = field(default_factory=list)
    last_beat: float = field(default_factory=time.monotonic)
    standing: str = ""
    silenced: bool = False
    doomed: WorkerEnd | None = None
    lost: WorkerEnd | None = None
    lost_at: float = 0.0
    machine: str = ""
    gpus: tuple[GpuUse, ...] = ()

    def close(self) -> None:
        """Closes both links; the worker then drops everything that belongs to this driver."""
        self.steps.close()
        self.signals.close()
