"""Where the elements of a lane wait for consumers: an interface with an implementation for each way of reading."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from workbench.data.service.blocks import cut, size_of
from workbench.data.service.wire import Fields
from workbench.data.tables import Failed, ListTable, Run

MOST_RUNS = 256
MOST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """A consumer's request to a worker.

    Attributes:
      consumer: Its id.
      most: The most elements that it takes.
      freed: Blocks that it has acknowledged, by lane and first number.
      due: By lane, the number of the requested element, for consumers that read in rounds.
      unread: By lane, the number of its first unacknowledged element, for the same.
      trainer: The id that it shares with the other consumers of its trainer, "" without a cache.
    """

    consumer: str
    most: int
    freed: tuple[tuple[int, int], ...] = ()
    due: dict[int, int] = field(default_factory=dict)
    unread: dict[int, int] = field(default_factory=dict)
    trainer: str = ""

    @staticmethod
    def of(fields: Fields) -> Request:
        """The request in the fields of a frame."""
        freed = tuple((int(lane), int(start)) for lane, start in fields["freed"])
        due, unread = (
            {int(lane): int(number) for lane, number in fields[name]} for name in ("due", "unread")
        )
        return Request(fields["consumer"], max(1, fields["most"]), freed, due, unread, fields["trainer"])


class Shelf(Protocol):
    """Holds elements in the order of their numbers. The worker's condition guards it."""

    def has_room(self, size_bytes: int) -> bool:
        """Whether there is room for another run of this size."""

    def put(self, run: Run, size_bytes: int) -> None:
        """Adds the next run."""

    def free(self, request: Request) -> None:
        """Removes the elements that the consumer has acknowledged in the request."""

    def take(self, request: Request) -> tuple[int, list[Run]] | None:
        """Consecutive elements, after the number of the first; None if none is ready for this consumer."""

    def give_back(self, consumer: str) -> None:
        """Makes elements that a lost consumer did not acknowledge available to others."""

    def is_used_up(self, request: Request) -> bool:
        """Whether a consumer has received all elements made so far."""


class SharedShelf:
    """Elements for the first request: `Shelf` of jobs whose consumers share them."""

    def __init__(self, lane: int, start: int) -> None:
        """Starts empty; `start` is the number of the first element."""
        self._lane = lane
        self._next = start
        self._ready: deque[tuple[Run, int]] = deque()
        self._ready_bytes = 0
        self._returned: list[tuple[int, list[Run]]] = []
        self._given: dict[str, dict[int, list[Run]]] = {}

    def has_room(self, size_bytes: int) -> bool:
        """See `Shelf.has_room`."""
        few = len(self._ready) < MOST_RUNS and self._ready_bytes + size_bytes <= MOST_BYTES
        return not self._ready or few

    def put(self, run: Run, size_bytes: int) -> None:
        """See `Shelf.put`."""
        self._ready.append((run, size_bytes))
        self._ready_bytes += size_bytes

    def free(self, request: Request) -> None:
        """See `Shelf.free`."""
        given = self._given.get(request.consumer, {})
        for lane, start in request.freed:
            if lane == self._lane:
                given.pop(start, None)

    def take(self, request: Request) -> tuple[int, list[Run]] | None:
        """See `Shelf.take`."""
        if self._returned:
            start, runs = self._returned.pop()
        elif self._ready:
            start, runs = self._next, []
            left = request.most
            while self._ready and left:
                run, size = self._ready.popleft()
                count = size_of(run)
                if count > left:
                    self._ready.appendleft((cut(run, left, count), size))
                    run, count = cut(run, 0, left), left
                else:
                    self._ready_bytes -= size
                runs.append(run)
                left -= count
                self._next += count
        else:
            return None
        self._given.setdefault(request.consumer, {})[start] = runs
        return start, runs

    def give_back(self, consumer: str) -> None:
        """See `Shelf.give_back`."""
        given = self._given.pop(consumer, {})
        self._returned += given.items()

    def is_used_up(self, request: Request) -> bool:
        """See `Shelf.is_used_up`."""
        # Unacknowledged blocks may never have arrived: a worker may notice late that a connection broke.
        return not self._ready and not self._returned and not self._given.get(request.consumer)


def bytes_of(run: Run) -> int:
    """The memory of a run itself; rows of tables are gathered only when they are sent."""
    if not isinstance(run, Failed) and isinstance(run.table, ListTable):
        items = run.table.items
        return sum(
            len(leaf) if isinstance(leaf, bytes) else getattr(leaf, "nbytes", 64)
            for index in run.indices()
            for leaf in items[index]
        )
    return 64
