"""The models of sharding: who holds which part of an array, who reads what of a dataset."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.data.sharding.progress import InputProgress
from workbench.telemetry.added import ADDED


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
      hidden: How many more ranges there are than `text` names.
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
      rows: In all steps that were looked at.
      empty_steps: Steps in which it gets nothing.
      readings: The first steps, or those around the one that replicas are at.
      rows_before: Rows in the steps before them.
      label: What its row is called: "replica 3", "480 more", "all replicas".
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
    """All elements that a replica reads in a step, where a person has asked for them.

    Attributes:
      step: Number of the step.
      replica: Number of the replica.
      rows: How many rows.
      runs: The elements in the order in which they are read, those that follow one another as first–last.
      hidden: How many more runs there are than fit a message.
    """

    step: int
    replica: int
    rows: int
    runs: tuple[str, ...]
    hidden: int


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
      together: The hidden replicas in one, if there are any; then all replicas.
      read_by: Which replicas read each file of `marks`, such as "0–3".
      figures: Elements, duplicates, what was dropped and the like, in words.
      sentence: What is wrong, or "".
      advice: What that costs and what helps, or "".
      remainder_text: How the last steps differ from the others, or "".
      remedy: The name of what helps, "data_policy" or ""; views have the code that does it.
      listed: The elements that were asked for last, or None.
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
