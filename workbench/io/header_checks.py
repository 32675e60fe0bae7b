"""Compares the headers of many examples, eight bytes at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from workbench.io.example_bytes import LONGEST_WINDOW, ExampleBytes, Flags, Octets, Places
from workbench.io.headers import Header

Array = np.ndarray[Any, np.dtype[Any]]
Position = tuple[int, int]
"""How many features of varying length precede a position, and its distance in bytes from the last of these."""

_WORD: Final = 8
_SEVEN_BITS: Final = 0x7F
# Longer values are not compared.
_LONGEST_GAP: Final = 64


class Runs:
    """Runs of headers with the same distances in all examples, and without varying bytes."""

    def __init__(self, positions: list[Position], runs: list[list[tuple[int, Octets]]]) -> None:
        """Prepares for runs.

        Args:
          positions: Where each run starts.
          runs: The headers of each run, and their distance in bytes from its position.
        """
        points, offsets = np.array(positions).T
        self._points, self._offsets = points, offsets[:, None]
        self._width = max(_width(run) for run in runs)
        same = np.zeros((len(runs), self._width), np.uint8)
        mask = np.zeros_like(same)
        for index, run in enumerate(runs):
            for start, header in run:
                same[index, start : start + len(header)] = header
                mask[index, start : start + len(header)] = 0xFF
        self._same, self._mask = same.view(np.uint64)[:, None], mask.view(np.uint64)[:, None]

    def fits(self, examples: ExampleBytes, rows: Places, points: Places) -> Flags:
        """Which of the examples `rows` have these bytes; `points` has their points, `(points, n)`."""
        octets = examples.windows(rows, points[self._points] + self._offsets, self._width)
        found = octets.view(np.uint64) & self._mask
        if found.tobytes() == b"".join([same.tobytes() * len(rows) for same in self._same]):
            return np.ones(len(rows), bool)
        return np.asarray((found == self._same).all(axis=(0, 2)))


def runs_of(headers: Sequence[tuple[Position, Octets]]) -> list[Runs]:
    """The runs of headers at some positions, in this order; runs of equal width are combined."""
    by_width: dict[int, tuple[list[Position], list[list[tuple[int, Octets]]]]] = {}
    for position, run in _split(headers):
        positions, runs = by_width.setdefault(_width(run), ([], []))
        positions.append(position)
        runs.append(run)
    return [Runs(*each) for each in by_width.values()]


def _split(headers: Sequence[tuple[Position, Octets]]) -> Iterator[tuple[Position, list[tuple[int, Octets]]]]:
    first: Position = (0, 0)
    run: list[tuple[int, Octets]] = []
    for position, same in headers:
        start = position[1] - first[1]
        if run:
            gap = start - run[-1][0] - len(run[-1][1])
            if position[0] != first[0] or gap > _LONGEST_GAP or start + len(same) > LONGEST_WINDOW:
                yield first, run
                run = []
        if not run:
            first, start = position, 0
        run.append((start, same))
    if run:
        yield first, run


def _width(run: list[tuple[int, Octets]]) -> int:
    start, same = run[-1]
    return _whole_words(start + len(same))


class VaryingHeaders:
    """Headers of features whose lengths differ between examples, but not the number of bytes that the lengths take."""

    def __init__(self, headers: list[Header], offsets: list[int]) -> None:
        """Prepares for headers.

        Args:
          headers: The headers, in their order.
          offsets: How far after its point each starts.
        """
        self._offsets = np.array(offsets)[:, None]
        self._before = np.array([len(header.same) for header in headers])[:, None] + self._offsets
        self._width = _whole_words(max(len(header.same) for header in headers))
        same = np.zeros((len(headers), self._width), np.uint8)
        mask, ones = np.zeros_like(same), np.zeros_like(same)
        parts = []
        most = np.full((len(headers), 1), np.iinfo(np.int64).max, np.uint64)
        for index, header in enumerate(headers):
            same[index, : len(header.same)] = header.same
            mask[index, : len(header.same)] = 0xFF
            for length in header.lengths:
                same[index, length.start : length.stop] &= 0x80  # whether another byte follows
                mask[index, length.start : length.stop] = 0x80
                longest = (1 << 7 * (length.stop - length.start)) - 1 - (len(header.same) - length.stop)
                most[index] = min(int(most[index, 0]), longest)
            for length in header.lengths[1:]:  # the values were located by the first one
                nested = len(header.same) - length.stop
                if length.stop - length.start == 1:
                    same[index, length.start], mask[index, length.start] = nested, 0xFF
                    ones[index, length.start] = 1
                    continue
                for byte in range(length.start, length.stop):
                    more = 0x80 if byte + 1 < length.stop else 0
                    parts.append((index, byte, nested, 7 * (byte - length.start), more))
        by_word = zip(*(each.view(np.uint64).T[..., None].copy() for each in (same, mask, ones)), strict=True)
        self._words = [(*word, bool(word[2].any())) for word in by_word]
        self._most = most
        columns = np.array(parts, np.int64).reshape(-1, 5).T
        self._headers, self._bytes = columns[0], columns[1]
        self._nested, self._shifts, self._more = (column[:, None] for column in columns[2:])

    def fits(self, examples: ExampleBytes, rows: Places, points: Places) -> Flags:
        """Which of the examples `rows` have these headers, with lengths that end where the feature ends."""
        octets = examples.windows(rows, points[:-1] + self._offsets, self._width)
        sizes = points[1:] - points[:-1]
        sizes -= self._before
        # No value is longer than its lengths can state, so one-byte lengths can be added to all words at once. A
        # negative size becomes a large number here.
        added = sizes.view(np.uint64)
        wrong = added > self._most
        words = octets.view(np.uint64)
        for index, (expected, mask, ones, varies) in enumerate(self._words):
            if varies:
                expected = added * ones + expected
            wrong |= (words[:, :, index] & mask) != expected
        fit = ~wrong.any(axis=0)
        if len(self._headers):
            inner = sizes[self._headers] + self._nested
            inner >>= self._shifts
            inner &= _SEVEN_BITS
            inner |= self._more
            fit &= (octets[self._headers, :, self._bytes] == inner).all(axis=0)
        return np.asarray(fit)


def _whole_words(size: int) -> int:
    return -(-size // _WORD) * _WORD
