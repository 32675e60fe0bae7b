"""The models of recorded runs: the list, two of them compared, one replayed."""

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
      name: What to call it.
      written: Time of day when its last record ended, ISO 8601, or ""; of a file that cannot be opened, when it changed
        last.
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
