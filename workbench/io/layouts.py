"""Where the features of many serialized examples lie, found for all examples at a time.

Examples that one program wrote have the same features in the same order, and only the lengths differ. So the bytes
before the values are learned from one example and looked for in all others. `Layout` does that for examples that have
all of the features; `located` for those that lack some, or whose lengths take other numbers of bytes. What fits neither
is not understood here, which is no error: examples may be written in other ways.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.io.example_bytes import ExampleBytes, Octets, Places, length_in
from workbench.io.headers import ENTRY, Header, Template, header_at
from workbench.io.wire import Malformed

Array = np.ndarray[Any, np.dtype[Any]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
_MOST_VARIANTS = 6


@dataclass(frozen=True, slots=True)
class Found:
    """Features of one form in some examples.

    Attributes:
      names: Of the features.
      kind: Of the values.
      single: Whether the bytes between starts and stops are one item: a text, or packed numbers. Else they are a list
        of items.
      rows: Which examples, `(n,)`.
      starts: Where the values start, `(features, n)`.
      stops: Where they end.
    """

    names: tuple[str, ...]
    kind: int
    single: bool
    rows: Places
    starts: Places
    stops: Places

    def of(self, examples: Flags) -> Found:
        """The features in those of the examples that are marked."""
        kept = examples[self.rows]
        return replace(self, rows=self.rows[kept], starts=self.starts[:, kept], stops=self.stops[:, kept])

    def named(self, chosen: Collection[int]) -> Found:
        """Some of the features."""
        if len(chosen) == len(self.names):
            return self
        which = list(chosen)
        names = tuple(self.names[index] for index in which)
        return replace(self, names=names, starts=self.starts[which], stops=self.stops[which])


class Layout:
    """Features that examples have in one order, and whose lengths take as many bytes in each.

    Lengths are chained: that of one feature says where the next one starts. So first all places are found, a step per
    feature, and then the bytes of all headers are compared at once. Those of a length are compared with what they must
    be for the item, the list and the feature to end together.
    """

    def __init__(self, template: Template) -> None:
        """Prepares for the headers of `template`."""
        headers = list(template.values())
        self._forms: dict[tuple[int, bool], list[int]] = defaultdict(list)
        for feature, header in enumerate(headers):
            self._forms[header.kind, header.single].append(feature)
        self._names = list(template)
        self._length_sizes = [header.lengths[0].stop - 1 for header in headers]
        sizes = [len(header.same) for header in headers]
        self._sizes = np.array(sizes)[:, None]
        self._before = np.array(self._length_sizes)[:, None] + 1
        self._width = -(-max(sizes) // 8) * 8
        same = np.zeros((len(sizes), self._width), np.uint8)
        mask = np.zeros_like(same)
        parts = []
        for feature, header in enumerate(headers):
            same[feature, : sizes[feature]] = header.same
            mask[feature, : sizes[feature]] = 0xFF
            entry, *inner = header.lengths
            for length in header.lengths:
                mask[feature, length.start : length.stop] = 0x80  # whether another byte follows
            for length in inner:
                for byte in range(length.start, length.stop):
                    more = 0x80 if byte + 1 < length.stop else 0
                    parts.append((feature, byte, length.stop - entry.stop, 7 * (byte - length.start), more))
        # Eight bytes are compared at a time.
        self._same = (same & mask).view(np.uint64)
        self._mask = mask.view(np.uint64)
        columns = np.array(parts, np.int32).T
        self._features, self._bytes = columns[0], columns[1]
        self._nested, self._shifts, self._more = (column[:, None] for column in columns[2:])
        self._short = max(self._length_sizes) == 1

    def match(self, examples: ExampleBytes, rows: Places, places: Places) -> tuple[list[Found], Flags]:
        """The features of examples, and which of the examples have this layout.

        Args:
          examples: The bytes.
          rows: Which of the examples.
          places: Where the features of each start.

        Returns:
          Features, whose rows count within `rows`; and a flag for each of `rows`. What is said of an example without
          the flag is not true.
        """
        octets, at = examples.chain(rows, places, self._length_sizes, self._width)
        starts, stops = at[:-1] + self._sizes, at[1:]
        lengths = octets[:, :, 1] if self._short else (np.diff(at, axis=0) - self._before).astype(np.int32)
        fit = (at[-1] == examples.stops[rows]) & (starts <= stops).all(axis=0) & self._agree(octets, lengths)
        inside = np.arange(len(rows))
        found = [
            Found(
                tuple(self._names[feature] for feature in features),
                kind,
                single,
                inside,
                starts[features],
                stops[features],
            )
            for (kind, single), features in self._forms.items()
        ]
        return found, fit

    def _agree(self, octets: Octets, lengths: Array) -> Flags:
        """Whether all headers of an example are right, given the lengths of their entries."""
        words = octets.view(np.uint64)
        wrong = (words[:, :, 0] & self._mask[:, 0, None]) ^ self._same[:, 0, None]
        for word in range(1, self._width // 8):
            wrong |= (words[:, :, word] & self._mask[:, word, None]) ^ self._same[:, word, None]
        # One below 0 is, as a byte, none below 0x80; as a larger number `starts` has told.
        inner = lengths[self._features] - self._nested.astype(lengths.dtype)
        if not self._short:
            inner >>= self._shifts
            inner &= 0x7F
            inner |= self._more
        return ~wrong.any(axis=0) & np.asarray((octets[self._features, :, self._bytes] == inner).all(axis=0))


def located(
    serialized: list[bytes], examples: ExampleBytes, rows: Places, places: Places, template: Template
) -> tuple[list[Found], Flags]:
    """The features of examples that have some of a template's, and which examples have nothing else.

    Args:
      serialized: The examples,
      examples: and their bytes.
      rows: Which of the examples.
      places: Where the features of each start.
      template: What to look for.

    Returns:
      As `Layout.match`.
    """
    places, stops = places.copy(), examples.stops[rows]
    found: list[Found] = []
    for header in template.values():
        rest = np.flatnonzero(places < stops)
        for variant in range(_MOST_VARIANTS):
            fit, ends = _fits(header, examples, rows[rest], places[rest], stops[rest])
            inside, ends = rest[fit], ends[fit]
            starts = places[inside] + len(header.same)
            form = header.kind, header.single
            found.append(Found((header.name,), *form, inside, starts[None], ends[None]))
            places[inside] = ends
            rest = rest[~fit]
            if not variant:
                rest = rest[_named(header, examples, rows[rest], places[rest])]
            if not len(rest):
                break
            row = int(rows[rest[0]])
            try:  # it has the name, but lengths of other numbers of bytes
                header, _ = header_at(serialized[row], int(places[rest[0]] - examples.starts[row]))
            except Malformed:
                break
    return found, places == stops


def _fits(
    header: Header, examples: ExampleBytes, rows: Places, places: Places, stops: Places
) -> tuple[Flags, Places]:
    """Whether there is such a feature at each place, and where it ends."""
    octets = examples.windows(rows, places, len(header.same))
    mask = np.full(len(header.same), 0xFF, np.uint8)
    for length in header.lengths:
        mask[length.start : length.stop] = 0x80
    fit = ((octets & mask) == header.same & mask).all(axis=1)
    ends = [
        places + (length.stop + length_in(octets, length.start, length.stop)) for length in header.lengths
    ]
    fit &= ends[0] <= stops
    for end in ends[1:]:
        fit &= end == ends[0]
    return fit, ends[0]


def _named(header: Header, examples: ExampleBytes, rows: Places, places: Places) -> Flags:
    """Whether the feature at each place has this name, whatever its lengths are."""
    octets = examples.windows(rows, places, 5)
    after = places + 2
    more = octets[:, 1] >= 0x80
    for index in range(2, 5):
        after += more
        more = more & (octets[:, index] >= 0x80)
    key = examples.windows(rows, after, len(header.key)) == header.key
    return np.asarray((octets[:, 0] == ENTRY) & key.all(axis=1))
