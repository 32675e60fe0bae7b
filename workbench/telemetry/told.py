"""What a feed is told of a group beside its records: how it gets its input, how far, and how full memories are."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, fields
from typing import Final

from workbench.telemetry.added import ADDED

_IN_USE: Final = 0.25
"""Steps that use less of a core than this sleep, or wait for files and networks."""


@dataclass(frozen=True, slots=True)
class InputFacts:
    """How the replicas of a group got their newest input.

    Attributes:
      waited_shares: By replica, the part of its time, 0 to 1, that it waited for its batches.
      elements: How many elements that was measured over.
      element_us: How long one takes, from fetch to fetch.
      rows: By replica, the rows of the newest element.
      empty_for: How many elements in a row have been empty, by replica.
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
      number: Of the epoch, from 0.
      batches: How many batches of it the notebook has got.
      of: How many it has; -1 where nobody knows, or where it never ends.
    """

    number: int
    batches: int
    of: int

    def text(self) -> str:
        """As people read it.

        >>> EpochFacts(2, 40, 100).text(), EpochFacts(0, 7, -1).text()
        ('epoch 2, batch 40 of 100', 'epoch 0, batch 7')
        """
        of = f" of {self.of:,}" if self.of >= 0 else ""
        return f"epoch {self.number}, batch {self.batches:,}{of}"


@dataclass(frozen=True, slots=True)
class SentSteps:
    """When the notebook sent replicas their newest steps: before, they had nothing to do, or did the step before.

    Attributes:
      steps: Numbers of the steps, in the order in which they were sent; one that was sent again stands there again.
      at_ns: By step, when; driver's clock.
      paused_ns: By step, how long the notebook had paused between cells while no step was under way, summed over all
        pauses before it; empty in runs that were recorded earlier.
    """

    steps: tuple[int, ...]
    at_ns: tuple[int, ...]
    paused_ns: tuple[int, ...] = field(default=(), metadata=ADDED)

    def newest(self, count: int) -> SentSteps:
        """The last `count` of them."""
        return SentSteps(*(getattr(self, each.name)[-count:] for each in fields(self)))

    def then(self, newer: SentSteps) -> SentSteps:
        """These and newer ones, some of which may be among these.

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
      replica: The replica; the first where several share the memory.
      used_bytes: In use.
      limit_bytes: What there is.
      grown_bytes: How much more that is than when it was first looked at.
      steps: How many steps ago that was.
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
      name: Its key in what they return, such as "loss"; "" where they return nothing else.
      function: The function that returns it.
      steps: Numbers of the steps, ascending.
      mean: Its mean over the replicas, by step; None where it is not finite.
      replicas: By replica and step, None where it is not finite; empty with more than 16 replicas.
      low, high: With more, by step what a tenth of the replicas are below, and above; else empty.
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
    """What a feed was told of a group.

    Attributes:
      cores: How many cores its replicas have together; 0 if that is not known.
      input: How they get their input; None where they get none of distributed datasets.
      memory: The fullest memory; None if nobody has looked.
      result: A number that its steps return; None if they return none.
      cores_used: How many of its cores its newest steps have used; None if nobody has looked.
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
        """`cores`, which replicas may have to wait for; 0 where the steps use next to none, so that they cannot."""
        return 0 if self.cores_used is not None and self.cores_used < _IN_USE else self.cores
