"""A sliding window of elements that several trainers share: each gets all elements that pass while it reads."""

from __future__ import annotations

from bisect import bisect_right

from workbench.data.service.blocks import cut, size_of
from workbench.data.service.lanes.shelf import MOST_BYTES, MOST_RUNS, Request
from workbench.data.tables import Run

_OVERHEAD_BYTES = 256


class WindowShelf:
    """`Shelf` of jobs with a cross-trainer cache, as tf.data.experimental.service.CrossTrainerCache.

    New elements are made for the trainer that is furthest ahead; they displace the oldest. A late trainer starts with
    the oldest remaining element, and a slow one continues there and misses earlier ones.
    """

    def __init__(self, start: int, window_bytes: int) -> None:
        """Starts empty.

        Args:
          start: Number of the first element.
          window_bytes: How much to keep; the newest run stays, however large.
        """
        self._next = start
        self._window_bytes = window_bytes
        # Runs in order, the number of each one's first element, and their sizes. Those before `_oldest` were dropped.
        self._runs: list[Run | None] = []
        self._starts: list[int] = []
        self._sizes: list[int] = []
        self._oldest = 0
        self._held_bytes = 0
        self._positions: dict[str, int] = {}

    def has_room(self, size_bytes: int) -> bool:
        """See `Shelf.has_room`."""
        furthest = max(self._positions.values(), default=self._starts[0] if self._starts else self._next)
        if furthest >= self._next:
            return True
        first_unread = max(self._oldest, bisect_right(self._starts, furthest) - 1)
        unread = len(self._runs) - first_unread
        limit = min(MOST_BYTES, self._window_bytes // 2)
        return unread < MOST_RUNS and sum(self._sizes[first_unread:]) + size_bytes <= limit

    def put(self, run: Run, size_bytes: int) -> None:
        """See `Shelf.put`."""
        self._runs.append(run)
        self._starts.append(self._next)
        self._sizes.append(size_bytes + _OVERHEAD_BYTES)
        self._next += size_of(run)
        self._held_bytes += self._sizes[-1]
        while self._held_bytes > self._window_bytes and self._oldest < len(self._runs) - 1:
            self._runs[self._oldest] = None
            self._held_bytes -= self._sizes[self._oldest]
            self._oldest += 1
        if self._oldest > MOST_RUNS and 2 * self._oldest > len(self._runs):
            for column in (self._runs, self._starts, self._sizes):
                del column[: self._oldest]
            self._oldest = 0

    def free(self, request: Request) -> None:
        """See `Shelf.free`: elements that were taken stay for other trainers."""

    def take(self, request: Request) -> tuple[int, list[Run]] | None:
        """See `Shelf.take`."""
        if not self._runs:
            return None
        start = max(self._positions.get(request.trainer, 0), self._starts[self._oldest])
        position, stop = start, min(self._next, start + request.most)
        nth = bisect_right(self._starts, position) - 1
        runs: list[Run] = []
        while position < stop:
            run = self._runs[nth]
            assert run is not None
            first = position - self._starts[nth]
            last = min(size_of(run), stop - self._starts[nth])
            runs.append(cut(run, first, last))
            position += last - first
            nth += 1
        self._positions[request.trainer] = position
        return (start, runs) if runs else None

    def give_back(self, consumer: str) -> None:
        """See `Shelf.give_back`: a trainer misses elements that were sent to it but not read."""

    def is_used_up(self, request: Request) -> bool:
        """See `Shelf.is_used_up`."""
        return self._positions.get(request.trainer, 0) >= self._next
