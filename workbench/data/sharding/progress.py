"""How far the replicas are in a distributed dataset, and how long each has waited for its input."""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.telemetry.added import ADDED
from workbench.telemetry.snapshot import SampledSteps


@dataclass(frozen=True, slots=True)
class InputWait:
    """How long replicas waited for elements that came together: before the first of them, not one by one.

    Attributes:
      first: Number of the first of these elements.
      count: How many came.
      passed_us: Since elements came before, or the epoch began.
      waited_us: Per replica how much of that it had nothing to do but get these.
    """

    first: int
    count: int
    passed_us: int
    waited_us: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class InputProgress:
    """One epoch of a distributed dataset while it is gone through.

    Attributes:
      epoch: Its number.
      given: How many of its elements have been given, those before the position that it was resumed from included.
      elapsed_seconds: From the beginning of the epoch, or from where it was resumed, to the last of them.
      steps: Per replica the number of the element that it works with or worked with last, -1 before the first.
      waited_seconds: Per replica how long it had nothing to do but get its input.
      sampled: The step of the strategy that each of the newest elements is for, oldest first; the last of them has the
        number `given` - 1. Of elements that the notebook got ahead of its steps: the first that may work with them.
      waits: For which elements replicas waited how long, oldest first; of the newest ones, fewer where there are many
        replicas.
    """

    epoch: int
    given: int
    elapsed_seconds: float
    steps: tuple[int, ...]
    waited_seconds: tuple[float, ...]
    sampled: SampledSteps | None = field(default=None, metadata=ADDED)
    waits: tuple[InputWait, ...] = field(default=(), metadata=ADDED)

    def waited_share(self, replica: int) -> float:
        """The part of the time, 0 to 1, in which a replica waited."""
        return min(1.0, self.waited_seconds[replica] / self.elapsed_seconds) if self.elapsed_seconds else 0.0
