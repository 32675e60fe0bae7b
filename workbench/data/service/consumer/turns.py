"""In which order a consumer takes elements: a seam with an implementation for each way of reading."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from workbench.data.tables import Run

MOST_ELEMENTS = 4096
_BLOCKS_PER_WORKER = 2


@dataclass(frozen=True, slots=True)
class Block:
    """Elements of a lane that follow each other.

    Attributes:
      worker: Address of the worker that they come from.
      lane: The lane.
      start: Number of the first.
      count: How many they are.
      runs: The elements.
    """

    worker: str
    lane: int
    start: int
    count: int
    runs: list[Run]


@dataclass(frozen=True, slots=True)
class Worker:
    """What a consumer sees of a worker.

    Attributes:
      address: Where it is.
      lanes: The lanes of the job that it has and that are not complete.
      lanes_total: How many lanes the job has; 0 as long as some may come.
      workers: How many workers the consumer fetches from.
    """

    address: str
    lanes: tuple[int, ...]
    lanes_total: int
    workers: int


@dataclass(frozen=True, slots=True)
class Ask:
    """What to ask a worker for.

    Attributes:
      most: How many elements.
      due: By lane, the number of the element that is wanted, in rounds.
      unread: By lane, the number of the first element that was not acknowledged, in rounds.
    """

    most: int
    due: dict[int, int] = field(default_factory=dict)
    unread: dict[int, int] = field(default_factory=dict)


class Turns(Protocol):
    """Decides what is fetched and which block comes next. The reader's condition guards it."""

    def plan(self, worker: Worker, wanted: int) -> Ask | None:
        """What to ask a worker for now, at most `wanted` elements; None for nothing."""

    def settle(self, ask: Ask, came: int) -> None:
        """What was asked for has come, this many elements; or it did not, and 0 have."""

    def add(self, block: Block) -> None:
        """Elements have come."""

    def next(self) -> Block | None:
        """The block whose turn it is, if it is there."""

    def acknowledged(self, block: Block) -> None:
        """The dispatcher knows that this consumer has a block."""

    def done(self, block: Block) -> None:
        """The loop has gone through a block."""

    def lane_due(self) -> int | None:
        """The lane without which it cannot go on; None if any will do."""


class FirstCome:
    """`Turns` of consumers that take what is ready."""

    def __init__(self, limit: int) -> None:
        """Nothing is here yet; at most `limit` elements will be, or on their way, with 0 two blocks per worker."""
        self._limit = limit
        self._blocks: deque[Block] = deque()
        self._held = 0

    def plan(self, worker: Worker, wanted: int) -> Ask | None:
        """See `Turns.plan`."""
        # Skips workers that have nothing left of the job: requests to them would delay the others.
        most = self._room(worker, wanted) if worker.lanes else 0
        self._held += most
        return Ask(most) if most else None

    def _room(self, worker: Worker, wanted: int) -> int:
        if self._limit:
            share = max(1, self._limit // max(1, worker.workers))
            return max(0, min(wanted, self._limit - self._held, share))
        here = sum(block.worker == worker.address for block in self._blocks)
        return wanted if here < _BLOCKS_PER_WORKER else 0

    def settle(self, ask: Ask, came: int) -> None:
        """See `Turns.settle`."""
        self._held += came - ask.most

    def add(self, block: Block) -> None:
        """See `Turns.add`."""
        self._blocks.append(block)

    def next(self) -> Block | None:
        """See `Turns.next`."""
        return self._blocks.popleft() if self._blocks else None

    def acknowledged(self, block: Block) -> None:
        """See `Turns.acknowledged`."""

    def done(self, block: Block) -> None:
        """See `Turns.done`."""
        self._held -= block.count

    def lane_due(self) -> int | None:
        """See `Turns.lane_due`."""
        return None
