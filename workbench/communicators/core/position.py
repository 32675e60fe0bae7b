"""A replica's current position and its last collectives, which heartbeats and diagnosis read from other threads."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from workbench.communicators.core.call import Asked, Call
from workbench.communicators.core.finiteness import FINITE, Finiteness

_REMEMBERED = 2000
OUTSIDE = Call("", "", "", "", "", "", 0, 0, "", "")
"""Stands for "in no collective"."""


class Status(NamedTuple):
    """Where a replica is.

    Attributes:
      step: The step it is in, -1 before the first.
      seq: Number of its latest collective in this step, from 0; -1 before the first.
      op: That collective, or what the replica waits in, such as "merge_call"; "" between collectives.
      phase: "running" (user code), "waiting" (for peers), "moving" (data), or "paused".
      site: Where the user called it, or "".
    """

    step: int
    seq: int
    op: str
    phase: str
    site: str


class Flight(NamedTuple):
    """One collective in the flight recorder; times are of `time.monotonic_ns`."""

    step: int
    seq: int
    op: str
    redop: str
    what: str
    site: str
    state: str
    enter_ns: int
    start_ns: int
    end_ns: int


class Position:
    """Mutable record of one replica, written by its thread and read by any. Only single fields are consistent.

    Attributes:
      rank: The replica.
      step: The step it is in, -1 before the first.
      seq: Number of its latest collective in this step, from 0; -1 before the first.
      call: The collective it is in; `OUTSIDE` between collectives.
      phase: One of the phases in `Status`.
      pause: Name and site of what it waits in while paused, else ("", "").
      deadline_ns: Deadline of the current collective on the clock of `time.monotonic_ns`, 0 for none.
      entered_ns: When a collective with a deadline was called.
      limited_by: The replica that set this deadline; another one if this one acts for several, see `hurry`.
      given_up: Fingerprint of the last collective that ended with an error, 0 if none has.
      order: Distinguishes steps and grows with each; the step's number unless the caller counts otherwise.
      started_ns: When the last peer arrived at the current collective.
      moved: Elements, bytes and dtype of the current collective if only its exchange has revealed them.
      algorithm: The algorithm of the current collective, "" until a link has set it.
      flights: The last collectives, oldest first.
      inputs: Checks whether the inputs of the current collective are finite; None if that is not recorded.
    """

    __slots__ = (
        "algorithm",
        "call",
        "deadline_ns",
        "entered_ns",
        "flights",
        "given_up",
        "inputs",
        "limited_by",
        "moved",
        "order",
        "pause",
        "phase",
        "rank",
        "seq",
        "started_ns",
        "step",
    )

    def __init__(self, rank: int, *, reads: bool = False) -> None:
        """A replica in no collective; `reads` says whether its inputs to collectives are checked."""
        self.rank = rank
        self.step = -1
        self.order = -1
        self.seq = -1
        self.call = OUTSIDE
        self.phase = "running"
        self.pause = ("", "")
        self.deadline_ns = 0
        self.entered_ns = 0
        self.limited_by = rank
        self.given_up = 0
        self.algorithm = ""
        self.moved: tuple[int, int, str] | None = None
        self.started_ns = 0
        self.inputs = Finiteness() if reads else None
        self.flights: deque[tuple[int, int, Call, str, int, int, int]] = deque(maxlen=_REMEMBERED)

    def status(self) -> Status:
        """What the replica is doing."""
        call, (pause, site) = self.call, self.pause
        if call is not OUTSIDE:
            return Status(self.step, self.seq, call.op, self.phase, call.site)
        return Status(self.step, self.seq, pause, "paused" if pause else "running", site)

    def arrived(self, when_ns: int = 0) -> None:
        """Notes that all peers have reached the current collective (now or at `when_ns`), so data moves now."""
        self.started_ns = when_ns or time.monotonic_ns()
        self.phase = "moving"

    def look(self, array: np.ndarray) -> None:
        """Checks an input of the current collective, if that is recorded and there is time."""
        if self.inputs is not None:
            self.inputs.look(array)

    def reads_on_host(self) -> None:
        """Notes that the current collective of a replica on a device reads only the host arrays given to `look`."""
        if self.inputs is not None:
            self.inputs.found = FINITE

    def asked(self) -> Asked:
        """The current call in words."""
        return self.call.asked(self.rank, self.step, self.seq)

    def fingerprint(self) -> int:
        """The fingerprint of the current call; see `Call.fingerprint`."""
        return self.call.fingerprint(self.order, self.seq)

    def came_to(self, fingerprint: int) -> bool:
        """Whether the replica is in the collective with that fingerprint, or was until it failed. Any thread."""
        if self.call is not OUTSIDE and self.fingerprint() == fingerprint:
            return True
        return self.given_up == fingerprint  # read last, because the replica sets it before it leaves

    def waited_seconds(self) -> float:
        """Time since the current collective was called; it must have a deadline."""
        return (time.monotonic_ns() - self.entered_ns) * 1e-9

    def expired(self) -> bool:
        """Whether the deadline of the current collective has passed."""
        return self.deadline_ns > 0 and time.monotonic_ns() >= self.deadline_ns

    def hurry(self, others: Iterable[Position]) -> None:
        """Adopts the earliest deadline of the replicas for which this one acts, itself included."""
        limited = [other for other in others if other.deadline_ns]
        if limited:
            first = min(limited, key=lambda other: other.deadline_ns)
            self.entered_ns, self.deadline_ns = first.entered_ns, first.deadline_ns
            self.limited_by = first.rank

    def seconds_left(self, at_most: float) -> float:
        """Seconds until the deadline, but no more than `at_most`, so that waiters check other conditions in between."""
        if not self.deadline_ns:
            return at_most
        return min(at_most, max(0.0, (self.deadline_ns - time.monotonic_ns()) * 1e-9))

    def flight(self) -> list[Flight]:
        """The last 2,000 collectives, oldest first."""
        return [
            Flight(step, seq, call.op, call.redop, call.what, call.site, state, enter, start, end)
            for step, seq, call, state, enter, start, end in self.flights.copy()
        ]
