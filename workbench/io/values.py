"""The values of features, of which the places are known, as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.io.example_bytes import ExampleBytes, Places, fields_at
from workbench.io.examples import BYTES, FLOAT
from workbench.io.headers import ITEM
from workbench.io.layouts import Flags, Found
from workbench.io.wire import Malformed, unpacked_varints

Array = np.ndarray[Any, np.dtype[Any]]
_SHORT_BYTES = 10
_NONE: Places = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Column:
    """The values of a feature in some examples.

    Attributes:
      rows: Which examples, `(n,)`.
      kind: Of the values, as `Feature` has it.
      values: Of all of them, one example after the other.
      counts: How many are each example's, `(n,)`.
      each: How many they are if that is one number, else -1.
    """

    rows: Places
    kind: int
    values: Array
    counts: Places
    each: int

    def of_rows(self, numbers: Places) -> Column:
        """The same, where the rows have other numbers."""
        return Column(numbers[self.rows], self.kind, self.values, self.counts, self.each)


def decoded(
    examples: ExampleBytes, rows: Places, found: list[Found], done: Flags
) -> list[tuple[str, Column]]:
    """The columns of features, whose rows count within `rows`.

    An example whose values have another form than most writers give them is left out, and noted in `done`.

    Args:
      examples: The bytes.
      rows: Which of the examples the rows in `found` are.
      found: Where the features are.
      done: Which of `rows` are understood so far.
    """
    while True:
        if not done.all():
            found = [each.of(done) for each in found]
        odd: list[Places] = []
        columns: list[tuple[str, Column]] = []
        for each in found:
            if len(each.rows) and each.names:
                read = _texts if each.kind == BYTES else _numbers
                columns += read(examples, rows, each, odd)
        if not any(map(len, odd)):
            return columns
        done[np.concatenate(odd)] = False


def _numbers(
    examples: ExampleBytes, rows: Places, found: Found, odd: list[Places]
) -> Iterator[tuple[str, Column]]:
    if not found.single:  # then the lists must be empty
        odd.append(found.rows[(found.starts < found.stops).any(axis=0)])
        found = replace(found, single=True)
    longest = (found.stops - found.starts).max(axis=1)
    if longest.max() <= _SHORT_BYTES:  # all in one go
        yield from _packed(examples, rows, found, odd)
        return
    short = np.flatnonzero(longest <= _SHORT_BYTES).tolist()
    if short:
        yield from _packed(examples, rows, found.named(short), odd)
    for feature in np.flatnonzero(longest > _SHORT_BYTES).tolist():
        yield from _packed(examples, rows, found.named([feature]), odd)


def _packed(
    examples: ExampleBytes, rows: Places, found: Found, odd: list[Places]
) -> Iterator[tuple[str, Column]]:
    """Packed numbers of several features."""
    owners, starts, stops = (
        np.tile(rows[found.rows], len(found.names)),
        found.starts.ravel(),
        found.stops.ravel(),
    )
    sizes = stops - starts
    if found.kind == FLOAT:
        wrong, counts = sizes % 4 != 0, sizes // 4
        octets = examples.packed(owners, starts, stops)
    elif (single := _single(examples, owners, starts, sizes)) is not None:
        yield from _split(found, single, np.ones(len(sizes), np.int64))
        return
    else:
        octets = examples.packed(owners, starts, stops)
        ends, wrong = np.cumsum(sizes), sizes > 0
        counts = np.diff(np.concatenate([[0], np.cumsum(octets < 0x80)])[ends], prepend=0)
        wrong[wrong] = octets[ends[wrong] - 1] >= 0x80
    if wrong.any():
        odd.append(found.rows[np.flatnonzero(wrong) % len(found.rows)])
        return
    try:
        values = octets.view("<f4") if found.kind == FLOAT else unpacked_varints(octets)
    except Malformed:  # a number is too long; only one by one can tell whose
        odd.append(found.rows)
        return
    yield from _split(found, values, counts)


def _single(examples: ExampleBytes, owners: Places, starts: Places, sizes: Places) -> Array | None:
    """The whole numbers in short pieces if there is one in each; else None."""
    longest = int(sizes.max())
    if longest > _SHORT_BYTES or not sizes.min():
        return None
    columns = np.ascontiguousarray(examples.windows(owners, starts, longest).T)
    values = (columns[0] & 0x7F).astype(np.uint64)
    wrong = (columns[0] >= 0x80) != (sizes > 1)
    for index in range(1, longest):
        inside = sizes > index
        wrong |= inside & ((columns[index] >= 0x80) != (sizes > index + 1))
        values |= np.where(inside, columns[index] & 0x7F, 0).astype(np.uint64) << np.uint64(7 * index)
    return None if wrong.any() else values.view(np.int64)


def _split(found: Found, values: Array, counts: Places) -> Iterator[tuple[str, Column]]:
    """A column for each feature."""
    by_feature = counts.reshape(len(found.names), -1)
    stops = np.cumsum(by_feature.sum(axis=1)).tolist()
    same = (by_feature == by_feature[:, :1]).all(axis=1)
    each = np.where(same, by_feature[:, 0], -1).tolist()
    start = 0
    for index, (name, stop) in enumerate(zip(found.names, stops, strict=True)):
        yield name, Column(found.rows, found.kind, values[start:stop], by_feature[index], each[index])
        start = stop


def _texts(
    examples: ExampleBytes, rows: Places, found: Found, odd: list[Places]
) -> Iterator[tuple[str, Column]]:
    whose = np.arange(found.starts.size)
    starts, stops = found.starts.ravel(), found.stops.ravel()
    counts = np.ones(found.starts.size, np.int64)
    owners = np.tile(rows[found.rows], len(found.names))
    if not found.single:
        whose, starts, stops = _items(examples, owners, starts, stops)
        wrong = starts < 0
        if wrong.any():
            odd.append(found.rows[whose[wrong] % len(found.rows)])
            return
        counts = np.bincount(whose, minlength=found.starts.size)
    values = np.fromiter(examples.texts(owners[whose], starts, stops), object, len(starts))
    yield from _split(found, values, counts)


def _items(
    examples: ExampleBytes, owners: Places, starts: Places, stops: Places
) -> tuple[Places, Places, Places]:
    """The items of lists: in which each is, where it starts and where it ends; -1 where something else stands."""
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
