"""Coordinated reads: in each round, all consumers take an element of the same lane, and lanes take turns.

Round r goes to lane r % lanes; consumer i takes number (r // lanes) * consumers + i of its elements.
"""

from __future__ import annotations

from workbench.data.service.consumer.turns import Ask, Block, Worker


class Rounds:
    """`Turns` of a consumer with an index."""

    def __init__(self, index: int, consumers: int, limit: int) -> None:
        """Starts at round 0.

        Args:
          index: The number of the consumer.
          consumers: The number of consumers.
          limit: How many elements may be here or in transit, 0 for two of each lane.
        """
        self._index = index
        self._consumers = consumers
        self._limit = limit
        self._lanes = 0
        self._round = self._unread = 0
        self._asked: dict[int, int] = {}  # by lane: the first of its rounds that has not arrived yet
        self._here: dict[int, Block] = {}

    def start(self, round_: int) -> None:
        """Continues at a round, for a consumer that was restarted."""
        self._round = self._unread = round_

    def plan(self, worker: Worker, wanted: int) -> Ask | None:
        """See `Turns.plan`."""
        if not worker.lanes_total:
            return None  # rounds need a fixed number of lanes
        self._lanes = worker.lanes_total
        # Starts with the next round, so that later ones never take the room that it needs.
        stop = self._round + (self._limit or 2 * self._lanes)
        rounds = {lane: self._next_of(lane) for lane in worker.lanes}
        due = {lane: self._number(round_) for lane, round_ in rounds.items() if round_ < stop}
        unread = {lane: self._number(self._first_of(lane, self._unread)) for lane in due}
        return Ask(1, due, unread) if due else None

    def _next_of(self, lane: int) -> int:
        """The first round of a lane that has not arrived yet."""
        return max(self._first_of(lane, self._round), self._asked.get(lane, 0))

    def _first_of(self, lane: int, round_: int) -> int:
        """The first round of a lane, starting at `round_`."""
        return round_ + (lane - round_) % self._lanes

    def _number(self, round_: int) -> int:
        """Which element of its lane this consumer takes in a round."""
        return round_ // self._lanes * self._consumers + self._index

    def settle(self, ask: Ask, came: int) -> None:
        """See `Turns.settle`."""

    def add(self, block: Block) -> None:
        """See `Turns.add`."""
        round_ = block.start // self._consumers * self._lanes + block.lane
        # The block of another round arrived earlier, from a worker that has lost the lane.
        if round_ == self._next_of(block.lane):
            self._here[round_] = block
            self._asked[block.lane] = round_ + self._lanes

    def next(self) -> Block | None:
        """See `Turns.next`."""
        block = self._here.pop(self._round, None)
        if block is not None:
            self._round += 1
        return block

    def acknowledged(self, block: Block) -> None:
        """See `Turns.acknowledged`."""
        self._unread += 1

    def done(self, block: Block) -> None:
        """See `Turns.done`."""

    def lane_due(self) -> int | None:
        """See `Turns.lane_due`."""
        return self._round % self._lanes if self._lanes else None
