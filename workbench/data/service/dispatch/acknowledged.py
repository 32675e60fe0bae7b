"""Which elements of a lane were acknowledged: ranges of their numbers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable


class Acknowledged:
    """A set of whole numbers from 0, kept as ranges that do not touch."""

    __slots__ = ("_starts", "_stops")

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        """Starts with ranges, as from `ranges`."""
        pairs = list(ranges)
        self._starts: list[int] = [start for start, _ in pairs]
        self._stops: list[int] = [stop for _, stop in pairs]

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The set as ranges in order."""
        return list(zip(self._starts, self._stops, strict=True))

    def missing(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The parts of `range(start, stop)` that are not in the set."""
        found: list[tuple[int, int]] = []
        index = bisect_left(self._stops, start)
        while start < stop:
            if index == len(self._starts) or stop <= self._starts[index]:
                found.append((start, stop))
                break
            if start < self._starts[index]:
                found.append((start, self._starts[index]))
            start = max(start, self._stops[index])
            index += 1
        return found

    def add(self, start: int, stop: int) -> None:
        """Adds `range(start, stop)` to the set."""
        if start >= stop:
            return
        first = bisect_left(self._stops, start)
        last = first
        while last < len(self._starts) and self._starts[last] <= stop:
            start, stop = min(start, self._starts[last]), max(stop, self._stops[last])
            last += 1
        self._starts[first:last] = [start]
        self._stops[first:last] = [stop]

    @property
    def prefix(self) -> int:
        """The first number that is not in the set."""
        return self._stops[0] if self._starts and self._starts[0] == 0 else 0

    def __contains__(self, number: int) -> bool:
        return not self.missing(number, number + 1)

    def __len__(self) -> int:
        return sum(self._stops) - sum(self._starts)
