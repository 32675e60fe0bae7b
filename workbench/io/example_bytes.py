"""The bytes of many serialized examples, read at many places at a time."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

Octets = np.ndarray[Any, np.dtype[np.uint8]]
Places = np.ndarray[Any, np.dtype[np.int64]]
# Longer than any window, so that none ends behind the buffer.
_PADDING = 512
_SHORT = 16


class ExampleBytes(Protocol):
    """Examples of which any bytes can be read; a place counts from wherever `starts` does.

    Attributes:
      starts: Where each example starts, `(n,)`.
      stops: Where each ends.
    """

    starts: Places
    stops: Places

    def windows(self, rows: Places, places: Places, width: int) -> Octets:
        """The `width` bytes at a place of each of `rows`, `(len(rows), width)`; anything behind the last one."""

    def chain(self, rows: Places, places: Places, sizes: list[int], width: int) -> tuple[Octets, Places]:
        """Follows fields of which each is a tag, its length, and as many bytes.

        Args:
          rows: Examples, `(n,)`.
          places: Where the first field of each starts, `(n,)`.
          sizes: How many bytes the length of each field takes.
          width: How many bytes to give.

        Returns:
          The first `width` bytes of each field, `(fields, n, width)`, and where each starts, `(fields + 1, n)`.
        """

    def texts(self, rows: Places, starts: Places, stops: Places) -> list[bytes]:
        """What stands between two places of each of the examples `rows`."""

    def packed(self, rows: Places, starts: Places, stops: Places) -> Octets:
        """The same, one after the other."""


class Joined:
    """Examples in one buffer: for short ones the copy costs less than work on each."""

    def __init__(self, serialized: list[bytes]) -> None:
        """Copies the examples."""
        self._data = b"".join([*serialized, bytes(_PADDING)])
        self._octets = np.frombuffer(self._data, np.uint8)
        self._last = len(self._data) - _PADDING
        self.stops = np.cumsum(np.fromiter(map(len, serialized), np.int64, len(serialized)))
        self.starts = np.concatenate([[0], self.stops[:-1]])

    def windows(self, rows: Places, places: Places, width: int) -> Octets:
        """The `width` bytes at each place."""
        return self._every(width)[np.minimum(places, self._last)].view(np.uint8).reshape(len(places), width)

    def chain(self, rows: Places, places: Places, sizes: list[int], width: int) -> tuple[Octets, Places]:
        """Follows fields."""
        at = np.empty((len(sizes) + 1, len(rows)), np.int64)
        at[0] = places
        for field, size in enumerate(sizes):
            # A length that is not true may point anywhere.
            here, following = at[field], at[field + 1]
            np.minimum(here, self._last, out=here)
            np.add(here, size + 1, out=following)
            if size == 1:
                following += self._octets[
                    here + 1
                ]  # above 127 the length has two bytes, which the caller sees
            else:
                following += length_in(self.windows(rows, here + 1, size), 0, size)
        octets = self._every(width)[at[:-1]].view(np.uint8)
        return octets.reshape(len(sizes), len(rows), width), at

    def _every(self, width: int) -> np.ndarray[Any, Any]:
        """The `width` bytes at every place, without a copy; `take` of it would make one of all."""
        return np.ndarray((len(self._data) - width + 1,), f"V{width}", self._data, 0, (1,))

    def texts(self, rows: Places, starts: Places, stops: Places) -> list[bytes]:
        """What stands between starts and stops."""
        return list(map(self._data.__getitem__, map(slice, starts.tolist(), stops.tolist())))

    def packed(self, rows: Places, starts: Places, stops: Places) -> Octets:
        """The same, one after the other."""
        sizes = stops - starts
        longest = int(sizes.max(initial=0))
        if not longest:
            return np.empty(0, np.uint8)
        if longest == sizes.min():
            return self._every(longest)[starts].view(np.uint8)
        if longest <= _SHORT:
            return self.windows(rows, starts, longest)[np.arange(longest) < sizes[:, None]]
        return _joined(self.texts(rows, starts, stops))


class Apart:
    """Examples as they are: copying long ones would take longer than looking into each."""

    def __init__(self, serialized: list[bytes]) -> None:
        """Refers to the examples."""
        self._serialized = serialized
        self.starts = np.zeros(len(serialized), np.int64)
        self.stops = np.fromiter(map(len, serialized), np.int64, len(serialized))

    def windows(self, rows: Places, places: Places, width: int) -> Octets:
        """The `width` bytes at a place of each of the examples `rows`."""
        found = self.texts(rows, places, places + width)
        joined = b"".join(found)
        if len(joined) < width * len(found):
            joined = b"".join([piece.ljust(width, b"\0") for piece in found])
        return np.frombuffer(joined, np.uint8).reshape(len(found), width)

    def chain(self, rows: Places, places: Places, sizes: list[int], width: int) -> tuple[Octets, Places]:
        """Follows fields."""
        at = np.empty((len(sizes) + 1, len(rows)), np.int64)
        octets = np.empty((len(sizes), len(rows), width), np.uint8)
        at[0] = places
        for field, size in enumerate(sizes):
            octets[field] = self.windows(rows, at[field], width)
            at[field + 1] = at[field] + (size + 1) + length_in(octets[field], 1, size + 1)
        return octets, at

    def texts(self, rows: Places, starts: Places, stops: Places) -> list[bytes]:
        """What stands between two places of each of the examples `rows`."""
        examples = self._serialized
        return [
            examples[row][start:stop]
            for row, start, stop in zip(rows.tolist(), starts.tolist(), stops.tolist(), strict=True)
        ]

    def packed(self, rows: Places, starts: Places, stops: Places) -> Octets:
        """The same, one after the other."""
        return _joined(self.texts(rows, starts, stops))


def fields_at(examples: ExampleBytes, rows: Places, places: Places) -> tuple[Octets, Places, Places]:
    """The field at a place of each of the examples `rows`: its tag, and where its content starts and stops.

    A length of more than 28 bits is not read: then the content stops at -1.
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


def length_in(octets: Octets, start: int, stop: int) -> Places:
    """The varint in some columns of `octets`."""
    length = (octets[:, start] & 0x7F).astype(np.int64)
    for index in range(start + 1, stop):
        length |= (octets[:, index] & 0x7F).astype(np.int64) << (7 * (index - start))
    return length


def _joined(texts: list[bytes]) -> Octets:
    return np.frombuffer(bytearray().join(texts), np.uint8)
