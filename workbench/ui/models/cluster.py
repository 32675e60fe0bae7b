"""The models of a cluster: who runs where, and how much of it is in use."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.telemetry.added import ADDED
from workbench.telemetry.snapshot import SampledSteps


@dataclass(frozen=True, slots=True)
class ReplicaNode:
    """A replica on its device.

    Attributes:
      group: Label of its strategy.
      replica: Its number there.
      busy: It runs something.
      doing: What, in words.
      news: What stands out about it in the newest steps: "late", "not finite" or "".
      busy_share: The part of its newest steps, 0 to 1, that it did not wait for others; None if that is not known.
    """

    group: str
    replica: int
    busy: bool
    doing: str
    news: str = field(default="", metadata=ADDED)
    busy_share: float | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A device of a worker; `name` such as "cpu:0", `kind` "CPU", "GPU" or "TPU"."""

    name: str
    kind: str
    replicas: tuple[ReplicaNode, ...]


@dataclass(frozen=True, slots=True)
class WorkerNode:
    """A worker process.

    Attributes:
      name: Dask's name for it.
      pid: Its process.
      status: "live", "stale", "lost", or "stopped" where the cluster was closed.
      detail: Why it is lost; of one with an input process what the two are and do; or "".
      memory_bytes: What it uses, or None if that is not known.
      heartbeat_age_seconds: Since its last heartbeat.
      devices: Those that it owns.
    """

    name: str
    pid: int
    status: str
    detail: str
    memory_bytes: int | None
    heartbeat_age_seconds: float
    devices: tuple[DeviceNode, ...]


@dataclass(frozen=True, slots=True)
class HostNode:
    """A host and its workers."""

    name: str
    workers: tuple[WorkerNode, ...]


@dataclass(frozen=True, slots=True)
class StrategyNode:
    """A strategy.

    Attributes:
      label: What the user calls it.
      replicas: How many.
      status: "live", "stale", "lost" or "stopped".
      transport: How its replicas exchange data, or "".
      generation: How often it was connected.
      step: Its latest step, -1 before the first.
      bandwidth: Measured limit of what its slowest links carry, in GB/s of busbw; None where nobody has measured.
    """

    label: str
    replicas: int
    status: str
    transport: str
    generation: int
    step: int
    bandwidth: float | None = field(default=None, metadata=ADDED)


@dataclass(frozen=True, slots=True)
class Topology:
    """A cluster: hosts, their workers, and what runs there."""

    run: str
    status: str
    hosts: tuple[HostNode, ...]
    strategies: tuple[StrategyNode, ...]


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """How much of a worker, or of a GPU, is in use.

    Attributes:
      key: Identifies it.
      host: Its host.
      name: Such as "worker 0" or "gpu:1".
      kind: "CPU", "GPU" or "TPU".
      status: The status of its worker.
      use_percent: Percent of one core for a CPU worker, so 200 is two cores; of the device otherwise. None: not known.
      memory_bytes: In use, or None.
      memory_limit_bytes: What there is, or None.
      recent_percent: The newest samples of `use_percent`, oldest first.
    """

    key: str
    host: str
    name: str
    kind: str
    status: str
    use_percent: float | None
    memory_bytes: int | None
    memory_limit_bytes: int | None
    recent_percent: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Devices:
    """Use of all devices of a cluster.

    Attributes:
      run: The name of the cluster.
      status: One word.
      devices: In the order of their workers.
      sampled: Where the samples lie among the steps of the strategy that ran last, newest sample of all devices last;
        None before the first step.
    """

    run: str
    status: str
    devices: tuple[DeviceUse, ...]
    sampled: SampledSteps | None = field(default=None, metadata=ADDED)
