"""The driver's side of one worker: its links, what it was sent, what is known of its health."""

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
    """In what way a worker came to its end."""

    LOST = "lost"
    """Its process or its connection ended."""
    LEFT = "left"
    """It announced that it would leave."""
    STALLED = "stalled"
    """It was given up because it was silent for too long."""
    ENDED = "ended"
    """The driver ended it."""


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """How a worker came to its end.

    Attributes:
      kind: In what way.
      what: A verb and what belongs to it, such as "was killed by SIGKILL".
      detail: What is known beyond that; "" for most.
    """

    kind: EndKind
    what: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.detail}" if self.detail else self.what

    @property
    def error_type(self) -> type[WorkbenchError]:
        """What those get who need the worker."""
        return ReplicaStalled if self.kind is EndKind.STALLED else ReplicaLost


@dataclass(slots=True, eq=False)
class WorkerLink:
    """A claimed worker.

    Attributes:
      name: Dask's name for it, which a restarted worker keeps.
      address: Its Dask address, which a restarted worker changes.
      host: Label of its host.
      task: Number of that host.
      pid: Its process.
      local: Its process is one that the driver sees, with `pid`.
      device_count: Replicas that it can run.
      device_kind: What they run on: "CPU", "GPU" or "TPU".
      reached: What its links to the driver go over, and why, where one would expect something else.
      steps: The ordered link.
      signals: The urgent link.
      shipped: Ids of functions and structures that it has.
      structures: Its number -> result structure.
      statuses: Last heartbeat, one row per replica.
      beside: The processes beside the worker that this heartbeat named.
      last_beat: When that came, by `time.monotonic`.
      standing: Where its replicas are, if it has fallen silent, see `silence`; else "". The watching thread's.
      silenced: Its urgent link has ended; the watching thread's.
      doomed: How it will end: it was given up, or said that it would leave. None for most.
      lost: How it ended, None while it is there.
      lost_at: When that was noticed, by `time.time`.
      machine: Which machine it is on, as far as names tell.
      gpus: The GPU of each device when it was claimed; none for other devices.
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
        """Closes both links; the worker drops everything of this driver."""
        self.steps.close()
        self.signals.close()
