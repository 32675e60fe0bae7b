"""The order in which a consumer takes elements: an interface with an implementation for each way of reading."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from workbench.data.tables import Run

MOST_ELEMENTS = 4096
_BLOCKS_PER_WORKER = 2


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive elements of a lane.

    Attributes:
      worker: Address of the worker that they come from.
      lane: The lane.
      start: Number of the first element.
      count: Number of elements.
      runs: The elements.
    """

    worker: str
    lane: int
    start: int
    count: int
    runs: list[Run]


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker from a consumer's view.

    Attributes:
      address: Its address.
      lanes: Its incomplete lanes of the job.
      lanes_total: How many lanes the job has; 0 while more may be added.
      workers: How many workers the consumer fetches from.
    """

    address: str
    lanes: tuple[int, ...]
    lanes_total: int
    workers: int


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to a worker.

    Attributes:
      most: The most elements.
      due: By lane, the number of the requested element, in rounds.
      unread: By lane, the number of the first element that was not acknowledged, in rounds.
    """

    most: int
    due: dict[int, int] = field(default_factory=dict)
    unread: dict[int, int] = field(default_factory=dict)


class Turns(Protocol):
    """Decides what is fetched and which block comes next. The reader's condition guards it."""

    def plan(self, worker: Worker, wanted: int) -> Ask | None:
        """The next request to a worker, for at most `wanted` elements; None for none."""

    def settle(self, ask: Ask, came: int) -> None:
        """Notes the end of a request: this many elements have arrived, 0 if it failed."""

    def add(self, block: Block) -> None:
        """Adds elements that have arrived."""

    def next(self) -> Block | None:
        """The block whose turn it is, if it has arrived."""

    def acknowledged(self, block: Block) -> None:
        """Notes that the dispatcher knows that this consumer has a block."""

    def done(self, block: Block) -> None:
        """Notes that the loop has used up a block."""

    def lane_due(self) -> int | None:
        """The lane without which it cannot go on; None if any will do."""


class FirstCome:
    """`Turns` of consumers that take what is ready."""

    def __init__(self, limit: int) -> None:
        """Starts empty; `limit` is the most elements here or in transit, 0 for two blocks per worker."""
        self._limit = limit
        self._blocks: deque[Block] = deque()
        self._held = 0

    def plan(self, worker: Worker, wanted: int) -> Ask | None:
        """See `Turns.plan`."""
        # Skips workers that have nothing left for the job: requests to them would delay the others.
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
