"""Locates features in examples that have only some of a template's, or whose lengths take other numbers of bytes."""

from __future__ import annotations

from typing import Final

import numpy as np

from workbench.io.example_bytes import ExampleBytes, Flags, Places, length_in
from workbench.io.headers import ENTRY, Header, Template, header_at
from workbench.io.layouts import Found
from workbench.io.wire import Malformed

_MOST_VARIANTS: Final = 6


def located(
    serialized: list[bytes], examples: ExampleBytes, rows: Places, places: Places, template: Template
) -> tuple[list[Found], Flags]:
    """The features of a template in examples, and which examples have no other features.

    Args:
      serialized: The examples,
      examples: and their bytes.
      rows: Which of the examples.
      places: Where the features of each start.
      template: The features to find.

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
            try:  # it has the name, but its lengths have other numbers of bytes
                header, _ = header_at(serialized[row], int(places[rest[0]] - examples.starts[row]))
            except Malformed:
                break
    return found, places == stops


def _fits(
    header: Header, examples: ExampleBytes, rows: Places, places: Places, stops: Places
) -> tuple[Flags, Places]:
    """Whether this feature is at each position, and where it ends."""
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
    """Whether the feature at each position has this name, whatever its lengths."""
    octets = examples.windows(rows, places, 5)
    after = places + 2
    more = octets[:, 1] >= 0x80
    for index in range(2, 5):
        after += more
        more = more & (octets[:, index] >= 0x80)
    key = examples.windows(rows, after, len(header.key)) == header.key
    return np.asarray((octets[:, 0] == ENTRY) & key.all(axis=1))
