"""What a feed knows about a group besides its records: its input, its progress, and how full memories are."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, fields
from typing import Final

from workbench.telemetry.added import ADDED

_IN_USE: Final = 0.25
"""Steps that use less of a core than this mostly sleep, or wait for files and networks."""


@dataclass(frozen=True, slots=True)
class InputFacts:
    """How the replicas of a group got their newest input.

    Attributes:
      waited_shares: By replica, the share of its time, 0 to 1, that it waited for its batches.
      elements: The number of elements that were measured.
      element_us: How long one element takes, from fetch to fetch.
      rows: By replica, the rows of the newest element.
      empty_for: By replica, how many consecutive elements have been empty.
    """

    waited_shares: tuple[float, ...]
    elements: int
    element_us: float
    rows: tuple[int, ...]
    empty_for: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EpochFacts:
    """How far a loop over a distributed dataset is.

    Attributes:
      number: Number of the epoch, from 0.
      batches: How many of its batches the notebook has received.
      of: How many batches it has; -1 if unknown or infinite.
    """

    number: int
    batches: int
    of: int

    def text(self) -> str:
        """The progress as text.

        >>> EpochFacts(2, 40, 100).text(), EpochFacts(0, 7, -1).text()
        ('epoch 2, batch 40 of 100', 'epoch 0, batch 7')
        """
        of = f" of {self.of:,}" if self.of >= 0 else ""
        return f"epoch {self.number}, batch {self.batches:,}{of}"


@dataclass(frozen=True, slots=True)
class SentSteps:
    """When the notebook sent replicas their newest steps. Before that, they were idle, or ran the previous step.

    Attributes:
      steps: Numbers of the steps, in the order in which they were sent; one that was sent again occurs again.
      at_ns: When each step was sent; driver's clock.
      paused_ns: By step, how long the notebook had paused between cells while no step was running, summed over all
        earlier pauses; empty in older recorded runs.
    """

    steps: tuple[int, ...]
    at_ns: tuple[int, ...]
    paused_ns: tuple[int, ...] = field(default=(), metadata=ADDED)

    def newest(self, count: int) -> SentSteps:
        """The last `count` steps."""
        return SentSteps(*(getattr(self, each.name)[-count:] for each in fields(self)))

    def then(self, newer: SentSteps) -> SentSteps:
        """These steps and newer ones; the two may overlap.

        >>> SentSteps((0, 1), (10, 20), (0, 5)).then(SentSteps((1, 2), (20, 30), (5, 5)))
        SentSteps(steps=(0, 1, 2), at_ns=(10, 20, 30), paused_ns=(0, 5, 5))
        """
        before = bisect_left(self.at_ns, newer.at_ns[0])
        return SentSteps(
            *(getattr(self, each.name)[:before] + getattr(newer, each.name) for each in fields(self))
        )


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """The fullest memory among those of a group's replicas.

    Attributes:
      replica: The replica; the first one if several share the memory.
      used_bytes: The memory in use.
      limit_bytes: The available memory.
      grown_bytes: How much more is in use than at the first reading.
      steps: How many steps ago the first reading was.
    """

    replica: int
    used_bytes: int
    limit_bytes: int
    grown_bytes: int = 0
    steps: int = 0


@dataclass(frozen=True, slots=True)
class ResultCourse:
    """A number that steps return, such as a loss, over the newest steps.

    Attributes:
      name: Its key in their results, such as "loss"; "" if they return only the number.
      function: The function that returns it.
      steps: Numbers of the steps, ascending.
      mean: Its mean over the replicas, by step; None if it is not finite.
      replicas: Its values by replica and step, None if not finite; empty with more than 16 replicas.
      low, high: With more than 16 replicas, the 10th and 90th percentile by step; otherwise empty.
    """

    name: str
    function: str
    steps: tuple[int, ...]
    mean: tuple[float | None, ...]
    replicas: tuple[tuple[float | None, ...], ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """What a feed knows about a group besides its records.

    Attributes:
      cores: The total number of cores of its replicas; 0 if unknown.
      input: Their input; None if they do not read distributed datasets.
      memory: The fullest memory; None if not measured.
      result: A number that its steps return; None if they return none.
      cores_used: How many of its cores its newest steps used; None if not measured.
      epoch: How far the newest loop over a distributed dataset is; None before the first.
      sent: When its newest steps were sent; None before the first.
    """

    cores: int = 0
    input: InputFacts | None = None
    memory: MemoryFacts | None = None
    result: ResultCourse | None = None
    cores_used: float | None = field(default=None, metadata=ADDED)
    epoch: EpochFacts | None = field(default=None, metadata=ADDED)
    sent: SentSteps | None = field(default=None, metadata=ADDED)

    @property
    def contested_cores(self) -> int:
        """`cores`, if replicas may have to wait for them; 0 if steps hardly use any."""
        return 0 if self.cores_used is not None and self.cores_used < _IN_USE else self.cores
