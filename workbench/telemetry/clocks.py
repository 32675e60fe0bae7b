"""Clocks of several hosts on one time axis, with a bound of the error.

All times are `time.monotonic_ns`, so a jump of the wall clock has no effect. Within a host that clock is shared by all
processes. Between hosts its zero differs, so each host's offset to the driver's clock is estimated from ping exchanges,
as NTP does: the true offset lies within half the round trip of every exchange, and the quickest exchange bounds it
best. A wall clock is read once per process, only to print times of day.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

DRIFT: Final = 100e-6
"""The largest rate at which two quartz clocks diverge: an estimate gets worse by this fraction of its age."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """One moment on both clocks of a process.

    Attributes:
      monotonic_ns: The moment by `time.monotonic_ns`.
      wall_ns: The same moment by `time.time_ns`.
    """

    monotonic_ns: int
    wall_ns: int

    @staticmethod
    def now(
        monotonic: Callable[[], int] = time.monotonic_ns, wall: Callable[[], int] = time.time_ns
    ) -> Anchor:
        """Reads both clocks a few times, and returns the reading least disturbed by the scheduler."""
        readings = []
        for _ in range(5):
            before = monotonic()
            at = wall()
            after = monotonic()
            readings.append((after - before, before + (after - before) // 2, at))
        _, middle, at = min(readings)
        return Anchor(middle, at)

    def to_wall_ns(self, monotonic_ns: int) -> int:
        """Time of day, in ns since 1970, of a moment on the monotonic clock."""
        return self.wall_ns + (monotonic_ns - self.monotonic_ns)


@dataclass(frozen=True, slots=True)
class Ping:
    """One exchange between the driver and a host.

    Attributes:
      sent_ns: When the driver sent the request; driver's clock.
      received_ns: When the host received it; host's clock.
      answered_ns: When the host answered; host's clock.
      returned_ns: When the driver received the answer; driver's clock.
    """

    sent_ns: int
    received_ns: int
    answered_ns: int
    returned_ns: int


@dataclass(frozen=True, slots=True)
class Offset:
    """What to add to a host's times to get the driver's, and the error bound.

    Attributes:
      offset_ns: Driver's time minus host's time.
      err_ns: The true offset is within `offset_ns` ± `err_ns`.
    """

    offset_ns: int
    err_ns: int


def offset_of(ping: Ping) -> Offset:
    """The offset according to one exchange.

    Raises:
      ValueError: if the exchange ended before it began, on either clock.
    """
    away = ping.returned_ns - ping.sent_ns
    there = ping.answered_ns - ping.received_ns
    if away < 0 or there < 0:
        raise ValueError(f"not a ping: {away} ns on the driver's clock, {there} ns on the host's")
    # Sums before halving, because the middle of an exchange may lie between two nanoseconds.
    twice = (ping.sent_ns + ping.returned_ns) - (ping.received_ns + ping.answered_ns)
    # + 1 for that half, and for a host whose clock runs faster than the driver's within one exchange.
    return Offset(twice // 2, max(0, away - there + 1) // 2 + 1)


class OffsetEstimator:
    """Offset of one host, from the exchanges seen so far; bounded memory, no thread, no I/O."""

    def __init__(self, window: int = 32) -> None:
        self._seen: deque[tuple[int, Offset]] = deque(maxlen=window)

    def add(self, ping: Ping) -> Offset:
        """Takes an exchange into account and returns `estimate` as of its end."""
        self._seen.append((ping.returned_ns, offset_of(ping)))
        estimate = self.estimate(ping.returned_ns)
        assert estimate is not None  # one was just added
        return estimate

    def estimate(self, now_ns: int) -> Offset | None:
        """The best offset known at `now_ns` of the driver's clock, or None before the first exchange.

        The error of an exchange is half its round trip plus the drift that is possible since then.
        """
        aged = (
            Offset(offset.offset_ns, offset.err_ns + int(abs(now_ns - at) * DRIFT))
            for at, offset in self._seen
        )
        return min(aged, key=lambda offset: offset.err_ns, default=None)
