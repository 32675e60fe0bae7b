"""Reads the bytes of many serialized examples at many places at a time."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final, Protocol

import numpy as np

from workbench.backends.kept_memory import keep_freed_memory

Octets = np.ndarray[Any, np.dtype[np.uint8]]
Places = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
Text = bytes | memoryview
LONGEST_WINDOW: Final = 512
_SHORT: Final = 16
_WORD: Final = 8
_END: Final = 128
_HEAD: Final = itemgetter(slice(None, _END))
_TAIL: Final = itemgetter(slice(-_END, None))


class ExampleBytes(Protocol):
    """Examples whose bytes can be read at any place; places count from the same origin as `starts`.

    Places are given for some examples, `rows` of shape `(n,)`, and have the shape `(n,)` or `(fields, n)`.

    Attributes:
      starts: Where each example starts, shape `(examples,)`.
      stops: Where each example ends, shape `(examples,)`.
      least: Bytes of the shortest example.
      most: Bytes of the longest example.
    """

    starts: Places
    stops: Places
    least: int
    most: int

    def windows(self, rows: Places, places: Places, width: int) -> Octets:
        """The `width` bytes at each place, `(*places.shape, width)`; arbitrary bytes after the last one.

        `width` is at most `LONGEST_WINDOW`.
        """

    def column(self, place: int, width: int) -> Octets:
        """The `width` bytes that are `place` bytes after the start of every example, `(examples, width)`.

        As `windows`, for examples of one size.
        """

    def chain(self, rows: Places, places: Places, steps: Sequence[tuple[int, int]]) -> Places:
        """Follows fields, each a tag, its length, and as many bytes.

        Args:
          rows: Examples, `(n,)`.
          places: Where to start in each example, `(n,)`.
          steps: For each field, its distance from the last one, and how many bytes its length takes.

        Returns:
          `places`, and where each field ends, `(fields + 1, n)`. For bytes that are not such fields, places are
          arbitrary.
        """

    def texts(self, rows: Places, starts: Places, stops: Places) -> list[Text]:
        """The texts between starts and stops, in the order of `starts.ravel()`: copies, or views if requested."""

    def packed(self, rows: Places, starts: Places, sizes: Places) -> Octets:
        """The bytes at each start, one after the other."""

    def equal(self, rows: Places, starts: Places, size: int) -> Octets:
        """The same, if all have the same size."""


class Joined:
    """Examples in one buffer: for short ones, the copy costs less than work on each."""

    def __init__(self, serialized: Sequence[Text], sizes: Places, views: bool = False) -> None:
        """Copies the examples, which have `sizes` bytes; with `views`, texts are views of the copy."""
        # The last window starts after the last example.
        self._data = b"".join([*serialized, bytes(LONGEST_WINDOW)])
        self._octets = np.frombuffer(self._data, np.uint8)
        self._texts: Text = memoryview(self._data) if views else self._data
        self._last = len(self._data) - LONGEST_WINDOW
        self.stops = sizes.cumsum()
        self.starts = self.stops - sizes
        self.least, self.most = int(sizes.min()), int(sizes.max())

    def windows(self, rows: Places, places: Places, width: int) -> Octets:
        """The `width` bytes at each place."""
        every = self._every(width)
        try:
            found = every[places.ravel()]
        except IndexError:
            found = every[np.minimum(places, self._last).ravel()]
        return found.view(np.uint8).reshape(*places.shape, width)

    def column(self, place: int, width: int) -> Octets:
        """The `width` bytes at one place of every example, without a copy."""
        shape, strides = (len(self.starts), width), (self.most, 1)
        return np.ndarray(shape, np.uint8, self._data, min(place, self.most), strides)

    def chain(self, rows: Places, places: Places, steps: Sequence[tuple[int, int]]) -> Places:
        """Follows fields."""
        at = np.empty((len(steps) + 1, len(rows)), np.int64)
        at[0] = places
        # The part that all examples share is counted once, and added at the end.
        ahead, behind = 0, [0]
        for here, following, (offset, size) in zip(at[:-1], at[1:], steps, strict=True):
            ahead += offset + 1
            rest = self._octets[ahead:]
            if not len(rest):  # these examples are shorter than those fields
                following[:] = self._last
            elif size == 1:
                # Above 127, the length has two bytes, which the caller notices. A wrong length may lead past the end.
                try:
                    length = rest[here]
                except IndexError:
                    length = rest.take(here, mode="clip")
                np.add(here, length, following)
            else:
                np.add(here, length_in(self.windows(rows, here + ahead, size), 0, size), out=following)
            ahead += size
            behind.append(ahead)
        at += np.array(behind)[:, None]
        return at

    def _every(self, width: int) -> np.ndarray[Any, Any]:
        """The `width` bytes at every position, without a copy; `take` on bytes would need one of everything."""
        return np.ndarray((len(self._data) - width + 1,), f"V{width}", self._data, 0, (1,))

    def texts(self, rows: Places, starts: Places, stops: Places) -> list[Text]:
        """The texts between starts and stops."""
        places = map(slice, starts.ravel().tolist(), stops.ravel().tolist())
        return list(map(self._texts.__getitem__, places))

    def packed(self, rows: Places, starts: Places, sizes: Places) -> Octets:
        """The bytes at each start, one after the other."""
        longest = int(sizes.max(initial=0))
        if not longest:
            return np.empty(0, np.uint8)
        if longest == sizes.min():
            return self.equal(rows, starts, longest)
        if longest <= _SHORT:
            return self.windows(rows, starts, longest)[np.arange(longest) < sizes[..., None]]
        return np.frombuffer(bytearray().join(self.texts(rows, starts, starts + sizes)), np.uint8)

    def equal(self, rows: Places, starts: Places, size: int) -> Octets:
        """The `size` bytes at each start, one after the other."""
        return self._every(size)[starts.ravel()].view(np.uint8) if size else np.empty(0, np.uint8)


class Apart:
    """Separate examples: copying long ones would take longer than accessing each.

    Usually, one long value is between a few short ones, so only both ends of each example are copied into one buffer.
    """

    def __init__(self, serialized: list[bytes], sizes: Places, views: bool = False) -> None:
        """Refers to the examples, which have `sizes` bytes; with `views`, texts are views of them."""
        keep_freed_memory()
        self._serialized = serialized
        self._texts: Sequence[Text] = [memoryview(data) for data in serialized] if views else serialized
        count = len(serialized)
        self.starts, self.stops = np.zeros(count, np.int64), sizes
        self.least, self.most = int(sizes.min()), int(sizes.max())
        self._ends: Joined | None = None
        if self.least >= _END:
            pieces = [*map(_HEAD, serialized), *map(_TAIL, serialized)]
            self._ends = Joined(pieces, np.full(2 * count, _END))
        self._heads = np.arange(count) * _END
        self._tails = self._heads + (count + 1) * _END - sizes

    def windows(self, rows: Places, places: Places, width: int) -> Octets:
        """The `width` bytes at each place."""
        if self._ends is not None:
            in_head = places <= _END - width
            if (in_head | (places >= self.stops[rows] - _END)).all():
                behind = np.where(in_head, self._heads[rows], self._tails[rows])
                return self._ends.windows(rows, places + behind, width)
        found = self.texts(rows, places, places + width)
        joined = b"".join(found)
        if len(joined) < width * len(found):
            joined = b"".join([bytes(piece).ljust(width, b"\0") for piece in found])
        return np.frombuffer(joined, np.uint8).reshape(*places.shape, width)

    def column(self, place: int, width: int) -> Octets:
        """The `width` bytes at one place of every example."""
        return self.windows(np.arange(len(self.starts)), self.starts + place, width)

    def chain(self, rows: Places, places: Places, steps: Sequence[tuple[int, int]]) -> Places:
        """Follows fields."""
        at = np.empty((len(steps) + 1, len(rows)), np.int64)
        at[0] = places
        for index, (offset, size) in enumerate(steps):
            here = at[index] + (offset + 1)
            at[index + 1] = here + size + length_in(self.windows(rows, here, size), 0, size)
        return at

    def texts(self, rows: Places, starts: Places, stops: Places) -> list[Text]:
        """The texts between starts and stops."""
        pieces = zip(
            np.broadcast_to(rows, starts.shape).ravel().tolist(),
            starts.ravel().tolist(),
            stops.ravel().tolist(),
            strict=True,
        )
        examples = self._texts
        return [examples[row][start:stop] for row, start, stop in pieces]

    def packed(self, rows: Places, starts: Places, sizes: Places) -> Octets:
        """The bytes at each start, one after the other."""
        ends = sizes.ravel().cumsum()
        result = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
        pieces = zip(
            np.broadcast_to(rows, starts.shape).ravel().tolist(),
            starts.ravel().tolist(),
            sizes.ravel().tolist(),
            ends.tolist(),
            strict=True,
        )
        # One copy; slicing `texts` would make another.
        into, examples = memoryview(result.data), self._serialized
        for row, start, size, end in pieces:
            into[end - size : end] = memoryview(examples[row])[start : start + size]
        return result

    def equal(self, rows: Places, starts: Places, size: int) -> Octets:
        """The `size` bytes at each start, one after the other."""
        return self.packed(rows, starts, np.full(starts.shape, size))


def fields_at(examples: ExampleBytes, rows: Places, places: Places) -> tuple[Octets, Places, Places]:
    """The field at a place of each of the examples `rows`: its tag, and where its content starts and stops.

    A length of more than 28 bits is not read: the content then stops at -1.

    Args:
      examples: The batch.
      rows: Which of its examples.
      places: A place in each of them.
    """
    octets = examples.windows(rows, places, 5)
    lengths = (octets[:, 1] & 0x7F).astype(np.int64)
    after = places + 2
    more = octets[:, 1] >= 0x80
    for index in range(2, 5):
        if not more.any():
            return octets[:, 0], after, after + lengths
        lengths += np.where(more, (octets[:, index] & 0x7F).astype(np.int64) << (7 * (index - 1)), 0)
        after += more
        more &= octets[:, index] >= 0x80
    return octets[:, 0], after, np.where(more, -1, after + lengths)


def enclosed(examples: ExampleBytes, tag: int) -> tuple[Places, Places]:
    """Which examples are a single non-empty field, `(n,)`, and where the content of each example starts."""
    rows = np.arange(len(examples.starts))
    least, most = examples.least, examples.most
    # The lengths usually take equally many bytes, so the bytes can be compared with the expected ones.
    header = 2
    while most - header >= 1 << 7 * (header - 1):
        header += 1
    if least - header >= 1 << 7 * (header - 2):
        expected = examples.stops - examples.starts - header
        for index in range(1, header - 1):  # makes room for the continuation bit
            expected += expected & -(1 << 8 * index - 1)
        expected <<= 8
        expected += tag + sum(0x80 << 8 * index for index in range(1, header - 1))
        if least == most:
            same = int(expected[0]).to_bytes(_WORD, "little")[:header]
            if examples.column(0, header).tobytes() == same * len(rows):
                return rows, examples.starts + header
        words = examples.windows(rows, examples.starts, _WORD).view(np.int64)[:, 0]
        if ((words & ((1 << 8 * header) - 1)) == expected).all():
            return rows, examples.starts + header
    tags, places, stops = fields_at(examples, rows, examples.starts)
    return np.flatnonzero((tags == tag) & (stops == examples.stops) & (places < stops)), places


def length_in(octets: Octets, start: int, stop: int) -> Places:
    """The varint in some columns of `octets`.

    Args:
      octets: Bytes, a row per example.
      start: First column.
      stop: Column after the last one.
    """
    length = (octets[:, start] & 0x7F).astype(np.int64)
    for index in range(start + 1, stop):
        length |= (octets[:, index] & 0x7F).astype(np.int64) << (7 * (index - start))
    return length
