"""The models of sharding: which device holds which part of an array, which replica reads what of a dataset."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.data.sharding.progress import InputProgress
from workbench.telemetry.added import ADDED


@dataclass(frozen=True, slots=True)
class ArrayPart:
    """The part of an array on one device.

    Attributes:
      replica: Its replica.
      host, device: Where it is.
      start, stop: Bounds per axis, as in a slice.
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
    """Which device holds which part of an array.

    Attributes:
      name: The array's name, or "".
      kind: Its class.
      shape: The shape of the whole array.
      dtype: Name of its dtype.
      parts: The parts, in replica order.
      size_bytes: The size of the whole array, counted once.
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
      rows: Number of rows.
      ranges: Positions of source elements as (first, last), both included; empty if they cannot be tracked.
      text: The elements in words.
      hidden: How many ranges `text` omits.
    """

    step: int
    rows: int
    ranges: tuple[tuple[int, int], ...]
    text: str
    hidden: int = field(default=0, metadata=ADDED)


@dataclass(frozen=True, slots=True)
class Reader:
    """A replica that reads, or several together.

    Attributes:
      replica: Its number; -1 for several.
      host: Number of its host; -1 for several.
      rows: Rows in all inspected steps.
      empty_steps: Number of steps in which it gets nothing.
      readings: The first steps, or those around the one that replicas are at.
      rows_before: Rows in the steps before them.
      label: The label of its row: "replica 3", "480 more", "all replicas".
      nothing: Why it reads nothing at all, or "".
    """

    replica: int
    host: int
    rows: int
    empty_steps: int
    readings: tuple[Reading, ...]
    rows_before: int = field(default=0, metadata=ADDED)
    label: str = field(default="", metadata=ADDED)
    nothing: str = field(default="", metadata=ADDED)


@dataclass(frozen=True, slots=True)
class ListedElements:
    """All elements that a replica reads in a step, on request.

    Attributes:
      step: Number of the step.
      replica: Number of the replica.
      rows: Number of rows.
      runs: The elements in reading order, with consecutive ones as first–last.
      hidden: How many runs do not fit in the message.
    """

    step: int
    replica: int
    rows: int
    runs: tuple[str, ...]
    hidden: int


@dataclass(frozen=True, slots=True)
class DatasetSharding:
    """Which replica reads what of a dataset: the part of `data.sharding.model.Sharding` that fits in a message.

    Attributes:
      summary: One line.
      policy: The requested policy and its resolution, such as "AUTO→DATA".
      reason: Why this policy applies.
      algorithm: How batches are divided.
      hosts, replicas_per_host: Size of the cluster.
      batch_size: Rows of a global batch, as the dataset describes it; -1 if unknown.
      elements: Number of different source elements that reached a replica.
      duplicates: How often an element reached a replica again.
      dropped: Number of source elements that reached no replica, or None if unknown.
      steps: Number of inspected steps.
      remainder: Rows per replica of the last step, if it is smaller.
      readers: At most 32 replicas; those with empty steps take precedence.
      hidden_readers: Number of other replicas.
      counts: Rows of every replica, including the hidden ones.
      positions: Length of the axis of elements.
      marks: Positions at which a new file begins, with its name.
      limit: What was not inspected, or "".
      progress: How far replicas are, or None if no loop reads it.
      together: The hidden replicas combined, if there are any; then all replicas combined.
      read_by: Which replicas read each file of `marks`, such as "0–3".
      figures: Elements, duplicates, dropped elements and so on, in words.
      sentence: What is wrong, or "".
      advice: The cost and the remedy, or "".
      remainder_text: How the last steps differ from the others, or "".
      remedy: The name of the remedy, "data_policy" or ""; views show its code.
      listed: The elements that were last requested, or None.
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
    together: tuple[Reader, ...] = field(default=(), metadata=ADDED)
    read_by: tuple[str, ...] = field(default=(), metadata=ADDED)
    figures: str = field(default="", metadata=ADDED)
    sentence: str = field(default="", metadata=ADDED)
    advice: str = field(default="", metadata=ADDED)
    remainder_text: str = field(default="", metadata=ADDED)
    remedy: str = field(default="", metadata=ADDED)
    listed: ListedElements | None = field(default=None, metadata=ADDED)
