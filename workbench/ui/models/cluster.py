"""The models of a cluster: what runs where, and how much of it is in use."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.telemetry.added import ADDED
from workbench.telemetry.snapshot import SampledSteps


@dataclass(frozen=True, slots=True)
class ReplicaNode:
    """A replica on its device.

    Attributes:
      group: Label of its strategy.
      replica: Its number in the strategy.
      busy: Whether it runs something.
      doing: What it does, in words.
      news: News about it in the newest steps: "late", "not finite" or "".
      busy_share: The share of its newest steps, 0 to 1, in which it did not wait for others; None if unknown.
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
      pid: The id of its process.
      status: "live", "stale", "lost", or "stopped" if the cluster was closed.
      detail: Why it is lost; with an input process, what the two processes do; or "".
      memory_bytes: Memory in use, or None if unknown.
      heartbeat_age_seconds: Time since its last heartbeat.
      devices: The devices that it owns.
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
      label: The user's name for it.
      replicas: Number of replicas.
      status: "live", "stale", "lost" or "stopped".
      transport: How its replicas exchange data, or "".
      generation: How often it was connected.
      step: Its latest step, -1 before the first.
      bandwidth: Measured bandwidth limit of its slowest links, in GB/s of busbw; None if not measured.
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
      name: Its name, such as "worker 0" or "gpu:1".
      kind: "CPU", "GPU" or "TPU".
      status: The status of its worker.
      use_percent: Percent of one core for a CPU worker, so 200 is two cores; otherwise of the device. None if unknown.
      memory_bytes: Memory in use, or None.
      memory_limit_bytes: Available memory, or None.
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
      status: The status, in one word.
      devices: The devices, in the order of their workers.
      sampled: Where the samples lie among the steps of the strategy that ran last, newest sample of all devices last;
        None before the first step.
    """

    run: str
    status: str
    devices: tuple[DeviceUse, ...]
    sampled: SampledSteps | None = field(default=None, metadata=ADDED)
