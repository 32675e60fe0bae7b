"""The state of a group and the progress of its steps: only transitions, without processes, links or clocks.

    connected          failed, lost, interrupted, outdated
    STALE ──────► READY ──────────────────────────────────► STALE
      ▲                                                       │
      │ settled                                               │ late
      └──────────────── GIVEN_UP ◄── gave_up ── OVERDUE ◄─────┘

`closed` leads from every phase to CLOSED, which is final.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Phase(Enum):
    """What must happen before the next step of a group can be sent."""

    READY = "ready"
    """Nothing."""
    STALE = "stale"
    """Something failed, or the set of replicas changes: undo, replace lost workers, connect again."""
    OVERDUE = "overdue"
    """As STALE, but replicas did not reach a collective in time and may still run. Waits give them a moment."""
    GIVEN_UP = "given up"
    """That moment is over: waits for steps end; only the next step waits until the replicas are idle."""
    CLOSED = "closed"
    """The replicas were released."""


class Change(Enum):
    """What happens to a group."""

    FAILED = "failed"
    """A replica raised."""
    LOST = "lost"
    """A worker is gone."""
    INTERRUPTED = "interrupted"
    """Ctrl-C was pressed."""
    OUTDATED = "outdated"
    """Missing replicas are back."""
    LATE = "late"
    """Replicas did not reach a collective in time."""
    GAVE_UP = "gave up"
    """Late replicas have not stopped within their moment."""
    SETTLED = "settled"
    """All replicas are idle."""
    CONNECTED = "connected"
    """All replicas are connected to each other."""
    CLOSED = "closed"
    """The group is not used any more."""


_SPOILS: Final = (Change.FAILED, Change.LOST, Change.INTERRUPTED, Change.OUTDATED)
TRANSITIONS: Final[dict[Phase, dict[Change, Phase]]] = {
    Phase.READY: {
        **dict.fromkeys(_SPOILS, Phase.STALE),
        Change.LATE: Phase.OVERDUE,
        Change.SETTLED: Phase.READY,
        Change.CLOSED: Phase.CLOSED,
    },
    Phase.STALE: {
        **dict.fromkeys(_SPOILS, Phase.STALE),
        Change.LATE: Phase.OVERDUE,
        Change.SETTLED: Phase.STALE,
        Change.CONNECTED: Phase.READY,
        Change.CLOSED: Phase.CLOSED,
    },
    Phase.OVERDUE: {
        **dict.fromkeys((*_SPOILS, Change.LATE), Phase.OVERDUE),
        Change.GAVE_UP: Phase.GIVEN_UP,
        Change.SETTLED: Phase.STALE,
        Change.CLOSED: Phase.CLOSED,
    },
    Phase.GIVEN_UP: {
        **dict.fromkeys((*_SPOILS, Change.LATE, Change.GAVE_UP), Phase.GIVEN_UP),
        Change.SETTLED: Phase.STALE,
        Change.CLOSED: Phase.CLOSED,
    },
    # Steps may still end, and workers be lost, after the group is closed.
    Phase.CLOSED: dict.fromkeys(set(Change) - {Change.CONNECTED}, Phase.CLOSED),
}
"""Phase -> change -> next phase. Other changes cannot happen."""


class GroupState:
    """The phase of a group, and its counters.

    Attributes:
      phase: What must happen before the next step.
      epoch: Number of attempts to connect it; workers refuse steps of older epochs.
      generation: How often it was reconnected.
      number: Number of the user's steps submitted so far.
      in_flight: Number of steps that were sent and have not ended.
      committed: Serial of the last step up to which all steps have succeeded everywhere.
      committed_step: The same in the user's numbering, -1 before the first.
    """

    __slots__ = ("committed", "committed_step", "epoch", "generation", "in_flight", "number", "phase")

    def __init__(self) -> None:
        self.phase = Phase.STALE
        self.epoch = 0
        self.generation = 0
        self.number = 0
        self.in_flight = 0
        self.committed = 0
        self.committed_step = -1

    def after(self, change: Change) -> None:
        """Records a change.

        Raises:
          KeyError: if it cannot happen in this phase.
        """
        self.phase = TRANSITIONS[self.phase][change]

    def begin_to_connect(self) -> None:
        """Begins an epoch; from now on, workers refuse steps that were sent before."""
        self.generation = self.epoch  # the first time is not a rebuild
        self.epoch += 1

    def sent(self) -> None:
        """Records that a step was sent."""
        self.in_flight += 1

    def ended(self) -> None:
        """Records that a step has ended, successfully or not."""
        self.in_flight -= 1

    def commit(self, serial: int, number: int) -> None:
        """Records that a step has succeeded on all replicas.

        Args:
          serial: Its number in the gang.
          number: Its number among the user's steps, or -1.
        """
        self.committed = serial
        if number >= 0:
            self.committed_step = number
