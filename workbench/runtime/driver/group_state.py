"""In what state a group is, and how far its steps have come: transitions only, without processes, links or clocks.

    connected          failed, lost, interrupted, outdated
    STALE ──────► READY ──────────────────────────────────► STALE
      ▲                                                       │
      │ settled                                               │ late
      └──────────────── GIVEN_UP ◄── gave_up ── OVERDUE ◄─────┘

`closed` leads from everywhere to CLOSED, which nothing leaves.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Phase(Enum):
    """What the next step of a group has to do before it can be sent."""

    READY = "ready"
    """Nothing."""
    STALE = "stale"
    """Something failed, or other replicas are to take part: undo, replace what was lost, connect anew."""
    OVERDUE = "overdue"
    """The same; but replicas did not come to a collective in time, and may still run. Waits give them a moment."""
    GIVEN_UP = "given up"
    """They had that moment: steps are waited for no longer, only the next one waits until they are idle."""
    CLOSED = "closed"
    """The replicas were let go."""


class Change(Enum):
    """What happens to a group."""

    FAILED = "failed"
    """A replica raised."""
    LOST = "lost"
    """A worker is gone."""
    INTERRUPTED = "interrupted"
    """Ctrl-C."""
    OUTDATED = "outdated"
    """Missing replicas are back."""
    LATE = "late"
    """Replicas did not come to a collective in time."""
    GAVE_UP = "gave up"
    """Replicas that were late have not stopped in the moment that they had."""
    SETTLED = "settled"
    """All replicas are idle."""
    CONNECTED = "connected"
    """All replicas are connected with each other."""
    CLOSED = "closed"
    """Nobody uses it any more."""


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
"""Phase -> change -> the phase after it. What is not here cannot happen."""


class GroupState:
    """The phase of a group, and its counts.

    Attributes:
      phase: What the next step has to do first.
      epoch: How often it was connected, or tried to be; workers refuse steps of older epochs.
      generation: How often it was connected again after the first time.
      number: Steps of the user's submitted so far.
      in_flight: Steps that were sent and have not ended.
      committed: Serial of the last step that succeeded everywhere, and all before it.
      committed_step: The same as the user counts steps, -1 before the first.
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
        """Takes note of a change.

        Raises:
          KeyError: if it cannot happen in this phase.
        """
        self.phase = TRANSITIONS[self.phase][change]

    def begin_to_connect(self) -> None:
        """From now on workers refuse the steps that were sent before."""
        self.generation = self.epoch  # the first time is not a rebuild
        self.epoch += 1

    def sent(self) -> None:
        """A step was sent."""
        self.in_flight += 1

    def ended(self) -> None:
        """A step has ended, in whatever way."""
        self.in_flight -= 1

    def commit(self, serial: int, number: int) -> None:
        """A step has succeeded on all replicas.

        Args:
          serial: Its number in the gang.
          number: Its number among the user's steps, -1 if it is none.
        """
        self.committed = serial
        if number >= 0:
            self.committed_step = number
