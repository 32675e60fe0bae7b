"""Elements for consumers that read in rounds: element `k * consumers + i` of a lane is for consumer i only."""

from __future__ import annotations

from workbench.data.service.blocks import cut, size_of
from workbench.data.service.lanes.shelf import MOST_BYTES, Request
from workbench.data.tables import Run

_ROUNDS_AHEAD = 8


class RoundShelf:
    """`Shelf` of jobs with `num_consumers`. A slow consumer keeps the others from running far ahead.

    An element stays until it is acknowledged, because a restarted consumer requests it again.
    """

    def __init__(self, lane: int, start: int, consumers: int) -> None:
        """Starts empty.

        Args:
          lane: Number of the lane.
          start: Number of the first element that is made.
          consumers: The number of consumers.
        """
        self._lane = lane
        self._made = start
        self._consumers = consumers
        self._kept: dict[int, tuple[Run, int]] = {}
        self._kept_bytes = 0
        self._unread = [start + (index - start) % consumers for index in range(consumers)]

    def has_room(self, size_bytes: int) -> bool:
        """See `Shelf.has_room`."""
        # Always makes the slowest consumer's round, because the others may be waiting for that consumer.
        behind = min(self._unread) // self._consumers
        ahead = self._made // self._consumers - behind
        return ahead <= 0 or (ahead < _ROUNDS_AHEAD and self._kept_bytes + size_bytes <= MOST_BYTES)

    def put(self, run: Run, size_bytes: int) -> None:
        """See `Shelf.put`."""
        count = size_of(run)
        for nth in range(count):
            number = self._made + nth
            if (
                number >= self._unread[number % self._consumers]
            ):  # otherwise, its consumer has it from another worker
                self._kept[number] = cut(run, nth, nth + 1), size_bytes // count
                self._kept_bytes += size_bytes // count
        self._made += count

    def free(self, request: Request) -> None:
        """See `Shelf.free`."""
        unread = request.unread.get(self._lane)
        if unread is None:
            return
        index = unread % self._consumers
        for read in range(self._unread[index], unread, self._consumers):
            _, size = self._kept.pop(read, (None, 0))
            self._kept_bytes -= size
        self._unread[index] = max(unread, self._unread[index])

    def take(self, request: Request) -> tuple[int, list[Run]] | None:
        """See `Shelf.take`."""
        number = request.due.get(self._lane, -1)
        kept = self._kept.get(number)
        return None if kept is None else (number, [kept[0]])

    def give_back(self, consumer: str) -> None:
        """See `Shelf.give_back`: its successor requests the element that is due."""

    def is_used_up(self, request: Request) -> bool:
        """See `Shelf.is_used_up`."""
        return request.due.get(self._lane, -1) >= self._made
