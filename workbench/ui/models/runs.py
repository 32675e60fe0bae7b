"""The models of recorded runs: a list, a comparison of two, a replay of one."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.data.cost.flow import InputFlow
from workbench.data.service.overview import ServiceStatus
from workbench.distribute.servers.overview import ServersStatus
from workbench.ui.models.cluster import Devices, Topology
from workbench.ui.models.collectives import Collectives
from workbench.ui.models.inspected import Values
from workbench.ui.models.sharding import ArraySharding, DatasetSharding


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A recorded run.

    Attributes:
      path: The file.
      name: Its name.
      written: Time of day when its last record ended, ISO 8601, or ""; for a file that cannot be opened, when it last
        changed.
      size_bytes: The size of the file.
      records: Number of records in it.
      duration_seconds: Time from the first record to the last.
      replicas: Number of replicas.
      alerts: Number of alerts in it.
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
      samples: Number of collectives.
      p25_us, p50_us, p75_us: Quartiles of the transfer time.
      busbw: Bus bandwidth at the median, GB/s; None if it has no meaning.
    """

    samples: int
    p25_us: float
    p50_us: float
    p75_us: float
    busbw: float | None


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One kind of collective in two runs; None for a run without it.

    Attributes:
      key: Identifies it.
      op, redop, dtype, n: What was compared.
      size_bytes: The size of the latest one; sizes between the same powers of two are combined.
      first, second: The times in each run.
      ratio: Second median over first; below 1, the second run is faster.
      difference_seconds: The difference of the medians times the second run's number of collectives, or None.
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
      folder: Where the runs were found.
      runs: The runs, newest first.
      compared: Names of the two compared runs, or empty.
      rows: The comparison.
    """

    folder: str
    runs: tuple[RunEntry, ...]
    compared: tuple[str, ...]
    rows: tuple[ComparedRow, ...]


@dataclass(frozen=True, slots=True)
class Replay:
    """A recorded run, with everything that its views draw.

    Attributes:
      run: The run, with its name in the list of runs.
      first_step, last_step: The steps of the run; -1 without records.
      shown_from, shown_to: The first and the last step that are shown.
      collectives: The collectives of these steps.
      topology, devices: The last state during the recording; None if unknown.
      values, array_sharding, dataset_sharding, input, data_service, servers: What was last inspected during the
        recording, if anything.
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
