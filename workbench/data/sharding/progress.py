"""How far the replicas are in a distributed dataset, and how long each has waited for its input."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.telemetry.added import ADDED
from workbench.telemetry.snapshot import SampledSteps


@dataclass(frozen=True, slots=True)
class InputWait:
    """How long replicas waited for elements that arrived together: before the first one, not for each.

    Attributes:
      first: Number of the first of these elements.
      count: How many elements arrived.
      passed_us: Time since the previous elements arrived, or the epoch began, without pauses between cells.
      waited_us: Per replica, how much of this time it only waited for them.
    """

    first: int
    count: int
    passed_us: int
    waited_us: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class InputProgress:
    """One epoch of a distributed dataset that is being read.

    Attributes:
      epoch: Its number.
      given: How many of its elements were delivered, including those before the position that it was resumed from.
      elapsed_seconds: Time from the beginning of the epoch, or from its resumption, to the last of them, without pauses
        between the cells of a notebook.
      steps: Per replica, the number of its current or last element, -1 before the first.
      waited_seconds: Per replica, how long it only waited for input.
      sampled: The step of the strategy that each of the newest elements is for, oldest first; the last of them has the
        number `given` - 1. For elements fetched ahead of the notebook's steps: the first step that may use them.
      waits: Waits for the newest elements, oldest first; fewer are kept if there are many replicas.
    """

    epoch: int
    given: int
    elapsed_seconds: float
    steps: tuple[int, ...]
    waited_seconds: tuple[float, ...]
    sampled: SampledSteps | None = field(default=None, metadata=ADDED)
    waits: tuple[InputWait, ...] = field(default=(), metadata=ADDED)

    def waited_share(self, replica: int) -> float:
        """The share of the time, 0 to 1, in which a replica waited."""
        return min(1.0, self.waited_seconds[replica] / self.elapsed_seconds) if self.elapsed_seconds else 0.0
