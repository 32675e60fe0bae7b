"""Decodes the values of located features as arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np

from workbench.io.example_bytes import ExampleBytes, Flags, Places, Text, fields_at
from workbench.io.examples import BYTES, FLOAT
from workbench.io.headers import ITEM
from workbench.io.layouts import Found
from workbench.io.short_varints import LONGEST_BYTES, short_varints
from workbench.io.wire import Malformed, unpacked_varints

Array = np.ndarray[Any, np.dtype[Any]]
_NONE: Final[Places] = np.empty(0, np.int64)


class Column(NamedTuple):
    """The values of a feature in some examples.

    Attributes:
      rows: Which examples, `(n,)`.
      kind: The kind of the values, as in `Feature`.
      values: The values of all of them, one example after the other.
      counts: The number of values of each example, `(n,)`.
      each: This number if it is the same for all, otherwise -1.
    """

    rows: Places
    kind: int
    values: Array
    counts: Places
    each: int


_Part = tuple[str, Array, Places, int]
"""Name, values, counts and each, as in a column."""


def decoded(
    examples: ExampleBytes, rows: Places, numbers: Places, found: list[Found], done: Flags
) -> list[tuple[str, Column]]:
    """The columns of features.

    An example whose values have an unusual form is left out, and marked in `done`.

    Args:
      examples: The bytes.
      rows: Which of the examples the rows in `found` are.
      numbers: Their numbers in the columns.
      found: Where the features are.
      done: Which of `rows` are decoded so far.
    """
    while True:
        if not done.all():
            found = [each.of(done) for each in found]
        odd: list[Places] = []
        columns: list[tuple[str, Column]] = []
        for each in found:
            if len(each.rows):
                # Rows are in order and unique, so as many rows as examples are all of them.
                inside = slice(None) if len(each.rows) == len(rows) else each.rows
                read = _texts if each.kind == BYTES else _numbers
                parts = read(examples, rows[inside], each, odd)
                called = numbers[inside]
                columns += [
                    (name, Column(called, each.kind, values, counts, number))
                    for name, values, counts, number in parts
                ]
        if not any(map(len, odd)):
            return columns
        done[np.concatenate(odd)] = False


def _numbers(examples: ExampleBytes, rows: Places, found: Found, odd: list[Places]) -> Iterable[_Part]:
    if found.size >= 0:
        return _floats_of_one_size(examples, rows, found, odd)
    sizes = found.stops - found.starts
    if not found.single:  # then the lists must be empty
        odd.append(found.rows[sizes.any(axis=0)])
    read = _floats if found.kind == FLOAT else _integers
    longest = int(sizes.max())
    if longest <= LONGEST_BYTES or len(found.names) == 1:  # all at once
        return read(examples, rows, found, sizes, odd)
    short = (sizes <= LONGEST_BYTES).all(axis=1)
    groups = [np.flatnonzero(short), *np.flatnonzero(~short)[:, None]]
    return itertools.chain.from_iterable(
        read(examples, rows, found.named(group), sizes[group], odd) for group in groups if len(group)
    )


def _floats(
    examples: ExampleBytes, rows: Places, found: Found, sizes: Places, odd: list[Places]
) -> Iterable[_Part]:
    """Packed floats of several features, four bytes each."""
    wrong = (sizes & 3).any(axis=0)
    if wrong.any():
        odd.append(found.rows[wrong])
        return ()
    return _split(found, examples.packed(rows, found.starts, sizes).view("<f4"), sizes >> 2)


def _floats_of_one_size(
    examples: ExampleBytes, rows: Places, found: Found, odd: list[Places]
) -> Iterable[_Part]:
    if found.size & 3:
        odd.append(found.rows)
        return ()
    values = examples.equal(rows, found.starts, found.size).view("<f4")
    return _alike(found, values, found.size >> 2)


def _integers(
    examples: ExampleBytes, rows: Places, found: Found, sizes: Places, odd: list[Places]
) -> Iterable[_Part]:
    """Packed integers of several features, one to ten bytes each."""
    single = short_varints(examples, rows, found.starts, sizes)
    if single is not None:
        return _alike(found, single, 1)
    octets = examples.packed(rows, found.starts, sizes)
    ends = sizes.ravel().cumsum()
    unended = sizes.ravel() > 0
    unended[unended] = octets[ends[unended] - 1] >= 0x80
    if unended.any():
        odd.append(found.rows[unended.reshape(sizes.shape).any(axis=0)])
        return ()
    try:
        values = unpacked_varints(octets)
    except Malformed:  # a number is too long; only reading them one by one shows whose
        odd.append(found.rows)
        return ()
    counts = np.diff(np.concatenate([[0], np.cumsum(octets < 0x80)])[ends], prepend=0)
    return _split(found, values, counts.reshape(sizes.shape))


def _split(found: Found, values: Array, counts: Places) -> Iterable[_Part]:
    """The values of each feature that has a row in `counts`."""
    first = int(counts[0, 0])
    if (counts == first).all():
        return _alike(found, values, first)
    stops = counts.sum(axis=1).cumsum().tolist()
    same = (counts == counts[:, :1]).all(axis=1)
    each = np.where(same, counts[:, 0], -1).tolist()
    parts = [values[start:stop] for start, stop in zip([0, *stops[:-1]], stops, strict=True)]
    return zip(found.names, parts, counts, each, strict=True)


def _alike(found: Found, values: Array, each: int) -> Iterable[_Part]:
    """The values of features that have `each` values in every example."""
    counts = np.full(len(found.rows), each)
    by_feature = values.reshape(len(found.names), -1)
    return zip(found.names, by_feature, itertools.repeat(counts), itertools.repeat(each), strict=False)


def _texts(examples: ExampleBytes, rows: Places, found: Found, odd: list[Places]) -> Iterable[_Part]:
    if found.single:
        return _alike(found, _objects(examples.texts(rows, found.starts, found.stops)), 1)
    owners = np.tile(rows, len(found.names))
    whose, starts, stops = _items(examples, owners, found.starts.ravel(), found.stops.ravel())
    wrong = starts < 0
    if wrong.any():
        odd.append(found.rows[whose[wrong] % len(found.rows)])
        return ()
    counts = np.bincount(whose, minlength=found.starts.size).reshape(found.starts.shape)
    return _split(found, _objects(examples.texts(owners[whose], starts, stops)), counts)


def _objects(texts: list[Text]) -> Array:
    return np.fromiter(texts, object, len(texts))


def _items(
    examples: ExampleBytes, owners: Places, starts: Places, stops: Places
) -> tuple[Places, Places, Places]:
    """The items of lists: the list of each, its start and its end; -1 for anything else."""
    which = np.flatnonzero(starts < stops)
    places = starts[which]
    parts = [(_NONE, _NONE, _NONE)]
    while len(which):
        tags, first, behind = fields_at(examples, owners[which], places)
        limits = stops[which]
        good = (tags == ITEM) & (behind >= 0) & (behind <= limits)
        parts.append((which, np.where(good, first, -1), behind))
        more = good & (behind < limits)
        which, places = which[more], behind[more]
    which, first, behind = map(np.concatenate, zip(*parts, strict=True))
    order = np.argsort(which, kind="stable")
    return which[order], first[order], behind[order]
