"""Shuffles elements through a reservoir, in blocks.

The reservoir holds `buffer_size` elements; each draw takes the element of a random slot and refills the slot with the
next element, so element i can come out at position i - buffer_size + 1 at the earliest. A block of draws is done at
once: `draw_block` returns exactly what drawing one by one would return. With in-memory sources the reservoir holds row
numbers, not rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.data.blocks.table import one_by_one
from workbench.data.passes import Pass
from workbench.data.spec import UNKNOWN_CARDINALITY
from workbench.data.stage import Opener, Stage
from workbench.data.structure import Array
from workbench.data.tables import Item, Run, items, row_numbers, single
from workbench.errors import InvalidArgumentError

_BLOCK, _SMALL_BLOCK = 8192, 1024
_SORTED = 1 << 16


@dataclass(frozen=True)
class Shuffle(Stage):
    """Random order within a window of `buffer_size` elements.

    Attributes:
      buffer_size: Number of elements in the reservoir.
      seed: Seed of the order; drawn at description time if the user gave none, so that all hosts have the same order.
      reshuffle: Whether each iteration has its own order.
    """

    name: ClassVar[str] = "shuffle"
    keeps_batches: ClassVar[bool] = True
    buffer_size: int
    seed: int
    reshuffle: bool = True

    @staticmethod
    def of(buffer_size: int, seed: int, reshuffle: bool) -> Shuffle:
        """Checks the arguments.

        Args:
          buffer_size: Size of the reservoir; `UNKNOWN_CARDINALITY` for a full shuffle.
          seed: Seed of the orders.
          reshuffle: Whether each iteration has its own order.

        Raises:
          InvalidArgumentError: if the buffer has no room.
        """
        if buffer_size == UNKNOWN_CARDINALITY:
            buffer_size = sys.maxsize
        if buffer_size < 1:
            raise InvalidArgumentError(f"shuffle: buffer_size is {buffer_size}, it must be at least 1")
        return Shuffle(buffer_size, seed, reshuffle)

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        if self.buffer_size == 1:  # there is no choice; failures keep their place
            yield from upstream()
            return
        generator = current.generator(self.seed, reshuffle=self.reshuffle)
        feed = _RowFeed(one_by_one(upstream(), current.provenance))
        reservoir = feed.read(self.buffer_size)
        table = feed.table
        if table is None:
            return
        latest = np.empty(len(reservoir), np.int64)
        block = min(_BLOCK, max(len(reservoir), _SMALL_BLOCK))
        while len(reservoir) == self.buffer_size and len(incoming := feed.read(block)):
            yield Run(table, draw_block(reservoir, incoming, generator, latest=latest))
        if feed.ended:
            generator.shuffle(reservoir)
            yield Run(table, reservoir)
        else:  # another table follows: row numbers are per table, so hold elements
            held = list(items(iter([Run(table, reservoir)]), current.provenance))
            yield from _shuffle_items(
                items(feed.rest(), current.provenance), held, self.buffer_size, generator
            )

    def describe(self) -> str:
        """The stage as a short text."""
        return "shuffle(all)" if self.buffer_size == sys.maxsize else f"shuffle({self.buffer_size})"


def draw_block(reservoir: Array, incoming: Array, generator: np.random.Generator, *, latest: Array) -> Array:
    """Draws `len(incoming)` times, each time refilling the drawn slot with the next of `incoming`.

    A slot drawn twice within the block returns, the second time, what the first draw put there. So all draws are made
    as if each slot was drawn once, and repeated draws are corrected.

    Args:
      reservoir: Rows held, shape `(buffer,)`; updated in place.
      incoming: Rows that follow, shape `(n,)`.
      generator: Source of the draws.
      latest: Scratch space for a draw per slot, int64, shape `(buffer,)`; its content does not matter.

    Returns:
      The rows drawn, shape `(n,)`.
    """
    slots = generator.integers(0, len(reservoir), len(incoming))
    drawn = reservoir.take(slots)
    # Where a slot occurs several times, NumPy keeps the last value: that of the slot's last draw.
    reservoir[slots] = incoming
    if len(reservoir) <= _SORTED:
        again, before = _repeats_by_sorting(slots)
        drawn[again] = incoming.take(before)
        return drawn
    for again, before in _repeats_by_slot(slots, latest):
        drawn[again] = incoming.take(before)
    return drawn


def _repeats_by_sorting(slots: Array) -> tuple[Array, Array]:
    """Draws whose slot was drawn before, and the draw before each. Uses radix sort, because the slots fit 16 bits."""
    order = slots.astype(np.uint16).argsort(kind="stable")
    grouped = slots.take(order)
    again = np.flatnonzero(grouped[1:] == grouped[:-1])
    return order[1:].take(again), order.take(again)


def _repeats_by_slot(slots: Array, latest: Array) -> Iterator[tuple[Array, Array]]:
    """As `_repeats_by_sorting`, for few repeats: first the second draws of slots, then the third ones, ..."""
    draws = np.arange(len(slots))
    latest[slots[::-1]] = draws[::-1]  # backwards, so that each slot keeps its first draw
    again = np.flatnonzero(latest.take(slots) != draws)
    while len(again):
        slot = slots.take(again)
        before = latest.take(slot)
        latest[slot[::-1]] = again[::-1]
        following = latest.take(slot) == again
        yield again[following], before[following]
        again = again[~following]


class _RowFeed:
    """Row numbers from successive runs, as long as they belong to one table."""

    def __init__(self, runs: Iterator[Run]) -> None:
        self._runs = runs
        self._next = next(runs, None)
        self.table = None if self._next is None else self._next.table

    @property
    def ended(self) -> bool:
        """Whether no run is left."""
        return self._next is None

    def read(self, count: int) -> Array:
        """The next `count` rows, as a new array; fewer if the runs end or another table follows."""
        parts = []
        while count and self._next is not None and self._next.table is self.table:
            rows = self._next.rows[:count]
            left = self._next.rows[count:]
            self._next = Run(self._next.table, left) if len(left) else next(self._runs, None)
            parts.append(row_numbers(rows))
            count -= len(rows)
        if len(parts) == 1:
            return parts[0].copy() if parts[0].base is not None else parts[0]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def rest(self) -> Iterator[Run]:
        """The runs that have not been read yet."""
        if self._next is not None:
            yield self._next
        yield from self._runs


def _shuffle_items(
    incoming: Iterator[Item], held: list[Item], size: int, generator: np.random.Generator
) -> Iterator[Run]:
    slots: list[int] = []
    for item in incoming:
        if len(held) < size:
            held.append(item)
            continue
        if not slots:
            slots = generator.integers(0, size, 1024).tolist()
        slot = slots.pop()
        drawn, held[slot] = held[slot], item
        yield single(*drawn)
    for slot in generator.permutation(len(held)).tolist():
        yield single(*held[slot])
