"""What views draw: the definition of every message to them.

`MODELS` says which view draws which of these classes. `extension/src/models.ts` is generated from here
(`python extension/models.py`), so that Python and TypeScript agree. All values are JSON-able: None where a number
has no meaning, never NaN; tuples are lists there. Times are seconds or µs as their names say, bandwidths GB/s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from workbench.data.cost.flow import InputFlow
from workbench.data.service.overview import ServiceStatus
from workbench.data.sharding.progress import InputProgress
from workbench.distribute.servers.overview import ServersStatus
from workbench.telemetry.feed.sweeps import Sweep
from workbench.telemetry.snapshot import Snapshot
from workbench.ui.models.inspected import Elements, FirstBad, InspectedValue
from workbench.ui.render.plain_values import plain as plain  # how a model travels


@dataclass(frozen=True, slots=True)
class ReplicaNode:
    """A replica on its device.

    Attributes:
      group: Label of its strategy.
      replica: Its number there.
      busy: It runs something.
      doing: What, in words.
    """

    group: str
    replica: int
    busy: bool
    doing: str


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
    """

    label: str
    replicas: int
    status: str
    transport: str
    generation: int
    step: int


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
      recent_percent: Earlier figures of `use_percent`, oldest first.
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
    """Use of all devices of a cluster."""

    run: str
    status: str
    devices: tuple[DeviceUse, ...]


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a dump, of which one is shown.

    Attributes:
      steps: Their numbers, in order; -1 for what was outside of steps.
      shown: Position of the one that is shown.
    """

    steps: tuple[int, ...]
    shown: int


@dataclass(frozen=True, slots=True)
class Values:
    """What `wb.inspect` found, and the elements of one of the values if somebody has asked for them.

    Attributes:
      values: One per leaf.
      elements: A heat map, or None.
      looked_at: When that was found out, seconds since 1970: ages are of that moment.
      first: What went wrong first among them, None if all are finite.
      steps: The steps to choose from in a dump; else None.
    """

    values: tuple[InspectedValue, ...]
    elements: Elements | None
    looked_at: float
    first: FirstBad | None
    steps: Steps | None = None


@dataclass(frozen=True, slots=True)
class ArrayPart:
    """The part of an array on one device.

    Attributes:
      replica: Its replica.
      host, device: Where.
      start, stop: Per axis, as in a slice.
      size_bytes: The size of the part.
    """

    replica: int
    host: str
    device: str
    start: tuple[int, ...]
    stop: tuple[int, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ArraySharding:
    """Who holds which part of an array.

    Attributes:
      name: What the array is called, or "".
      kind: Its class.
      shape: The shape of the whole.
      dtype: Name of its dtype.
      parts: In replica order.
      size_bytes: The size of the whole, once.
      imbalance_percent: How much more than the average the fullest device holds.
      sentence: How it is split, in words.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: str
    parts: tuple[ArrayPart, ...]
    size_bytes: int
    imbalance_percent: float
    sentence: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a replica reads in one step.

    Attributes:
      step: Number of the step.
      rows: How many rows.
      ranges: Positions of source elements as (first, last), both included; empty where they cannot be followed.
      text: The elements in words.
    """

    step: int
    rows: int
    ranges: tuple[tuple[int, int], ...]
    text: str


@dataclass(frozen=True, slots=True)
class Reader:
    """A replica that reads.

    Attributes:
      replica: Its number.
      host: Number of its host.
      rows: In all steps that were looked at.
      empty_steps: Steps in which it gets nothing.
      readings: The first steps.
    """

    replica: int
    host: int
    rows: int
    empty_steps: int
    readings: tuple[Reading, ...]


@dataclass(frozen=True, slots=True)
class DatasetSharding:
    """Who reads what of a dataset; see `data.sharding.model.Sharding`, of which this is the part that fits a message.

    Attributes:
      summary: One line.
      policy: The policy that was asked for and what became of it, such as "AUTO→DATA".
      reason: Why.
      algorithm: How batches are divided.
      hosts, replicas_per_host: Of the cluster.
      batch_size: Rows of a global batch, as the dataset describes it; -1 if that cannot be told.
      elements: Different source elements that reached a replica.
      duplicates: How often one reached a replica again.
      dropped: Source elements that reached none, or None if that is unknown.
      steps: How many steps were looked at.
      remainder: Rows per replica of the last step, if it is smaller.
      readers: At most 32 replicas: those with empty steps are kept first.
      hidden_readers: How many more there are.
      counts: Rows of every replica, also of the hidden ones.
      positions: Length of the axis of elements.
      marks: Positions at which a new file begins, with its name.
      limit: What was not looked at, or "".
      progress: How far replicas are, or None where nobody goes through it.
    """

    summary: str
    policy: str
    reason: str
    algorithm: str
    hosts: int
    replicas_per_host: int
    batch_size: int
    elements: int
    duplicates: int
    dropped: int | None
    steps: int
    remainder: tuple[int, ...]
    readers: tuple[Reader, ...]
    hidden_readers: int
    counts: tuple[int, ...]
    positions: int
    marks: tuple[tuple[int, str], ...]
    limit: str
    progress: InputProgress | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said of a run first; see `telemetry.verdicts`.

    Attributes:
      severity: "error", "warning", "good" or "watching".
      code: What was found, in a short word.
      sentence: At most 80 characters.
      evidence: One line with numbers.
      link: The view that explains it, or "".
      replica: Replica concerned, or -1.
      step: Step concerned, or -1.
    """

    severity: str
    code: str
    sentence: str
    evidence: str
    link: str
    replica: int
    step: int


@dataclass(frozen=True, slots=True)
class Overview:
    """A run at a glance: the strategy whose replicas met last.

    Attributes:
      run_id, group: Which group of the snapshot; "" where no replicas have met yet.
      replicas: How many there are.
      live: How many of them are not lost.
      hosts: On how many hosts they are.
      step: The newest step, -1 before the first.
      more_groups: Other strategies of the run.
      verdict: What is to be said first.
      steps_per_second: Over the newest steps, without pauses between them; None where it cannot be told.
      waited_percent: How much of a step replicas wait for the last one, over the newest steps, or None.
      not_finite_steps: Into how many steps something went that is not finite.
    """

    run_id: str
    group: str
    replicas: int
    live: int
    hosts: int
    step: int
    more_groups: int
    verdict: Verdict
    steps_per_second: float | None
    waited_percent: float | None
    not_finite_steps: int


@dataclass(frozen=True, slots=True)
class Collectives:
    """Timing of collectives, and everything else that the feed knows.

    Attributes:
      status: "live", "stopped", or "replay" for a recorded run.
      silent: Addresses of workers that did not answer.
      snapshot: The feed.
      sweeps: Bandwidth over size.
      overview: The run at a glance.
    """

    status: str
    silent: tuple[str, ...]
    snapshot: Snapshot
    sweeps: tuple[Sweep, ...]
    overview: Overview


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A recorded run.

    Attributes:
      path: The file.
      name: What to call it.
      written: Time of day when it ended, ISO 8601, or "".
      size_bytes: The size of the file.
      records: Records in it.
      duration_seconds: From the first record to the last.
      replicas: How many took part.
      alerts: Alerts in it.
      problem: Why it cannot be opened, or "".
    """

    path: str
    name: str
    written: str
    size_bytes: int
    records: int
    duration_seconds: float
    replicas: int
    alerts: int
    problem: str


@dataclass(frozen=True, slots=True)
class Spread:
    """How long the collectives of one kind took in a run, from the arrival of the last replica.

    Attributes:
      samples: How many there were.
      p25_us, p50_us, p75_us: Quartiles of the transfer time.
      busbw: At the median, GB/s; None where it has no meaning.
    """

    samples: int
    p25_us: float
    p50_us: float
    p75_us: float
    busbw: float | None


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One kind of collective in two runs; None where a run has none of it.

    Attributes:
      key: Identifies it.
      op, redop, dtype, n: What was compared.
      size_bytes: The size of the latest one; those between the same powers of two are taken together.
      first, second: In each of the runs.
      ratio: Second median over first; below 1 the second is faster.
      difference_seconds: What the difference of the medians makes over the second run's collectives, or None.
      verdict: "slower", "faster", "alike", "too few" or "only in one".
    """

    key: str
    op: str
    redop: str
    dtype: str
    n: int
    size_bytes: int
    first: Spread | None
    second: Spread | None
    ratio: float | None
    difference_seconds: float | None
    verdict: str


@dataclass(frozen=True, slots=True)
class Runs:
    """Recorded runs, and two of them compared.

    Attributes:
      folder: Where they were found.
      runs: Newest first.
      compared: Names of the two that are compared, or none.
      rows: The comparison.
    """

    folder: str
    runs: tuple[RunEntry, ...]
    compared: tuple[str, ...]
    rows: tuple[ComparedRow, ...]


@dataclass(frozen=True, slots=True)
class Replay:
    """A recorded run, with all that its views draw.

    Attributes:
      run: The run, with the name that the list of runs gives it.
      first_step, last_step: Of the run; -1 without records.
      shown_from, shown_to: The first and the last step that are shown.
      collectives: The collectives of these steps.
      topology, devices: As at the last look while it was recorded; None if nobody could look.
      values, array_sharding, dataset_sharding, input, data_service, servers: What was looked at last while it was
        recorded, if anything.
      notes: What could not be kept, or cannot be shown.
    """

    run: RunEntry
    first_step: int
    last_step: int
    shown_from: int
    shown_to: int
    collectives: Collectives
    topology: Topology | None
    devices: Devices | None
    values: Values | None
    array_sharding: ArraySharding | None
    dataset_sharding: DatasetSharding | None
    input: InputFlow | None
    data_service: ServiceStatus | None
    servers: ServersStatus | None
    notes: tuple[str, ...]


MODELS: Final[dict[str, type]] = {
    "topology": Topology,
    "values": Values,
    "array_sharding": ArraySharding,
    "dataset_sharding": DatasetSharding,
    "input": InputFlow,
    "data_service": ServiceStatus,
    "servers": ServersStatus,
    "overview": Collectives,
    "collectives": Collectives,
    "collective_table": Collectives,
    "lanes": Collectives,
    "sweep": Collectives,
    "heat_map": Collectives,
    "stuck": Collectives,
    "log": Collectives,
    "devices": Devices,
    "runs": Runs,
    "replay": Replay,
}
"""View -> what it draws."""
