"""The values of many serialized examples, feature by feature.

Examples that one program wrote are mostly alike: those of one length have the same bytes between their values. So
the first one of a length is looked at closely, the others are cut at the same places by `struct`, in C, and compared.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.io.examples import BYTES, FLOAT, Feature, part, read_features
from workbench.io.wire import Malformed, floats, read_varint, unpacked_varints

Array = np.ndarray[Any, np.dtype[Any]]
_LEAST_ALIKE = 16
_ENTRY, _KEY, _VALUE = 0x0A, 0x0A, 0x12
_FEATURE_TAGS = {0x0A: 1, 0x12: 2, 0x1A: 3}


@dataclass(frozen=True, slots=True)
class Block:
    """The values of a feature in some examples, of which each has as many.

    Attributes:
      rows: Which examples.
      kind: Of the values, as `Feature` has it.
      values: Shape `(len(rows), n)`.
    """

    rows: list[int]
    kind: int
    values: Array


def columns(serialized: list[bytes], names: Collection[str]) -> dict[str, list[Block]]:
    """The values of the named features; examples that do not have one are in none of its blocks.

    Raises:
      Malformed: if the bytes of an example are damaged; the text has its number.
    """
    found: dict[str, list[Block]] = {name: [] for name in names}
    by_length: dict[int, list[int]] = defaultdict(list)
    for row, data in enumerate(serialized):
        by_length[len(data)].append(row)
    others = []
    for rows in by_length.values():
        alike = _alike([serialized[row] for row in rows], names) if len(rows) >= _LEAST_ALIKE else None
        if alike is None:
            others += rows
            continue
        for name, kind, values in alike:
            found[name].append(Block(rows, kind, values))
    for name, blocks in _gathered(serialized, others, names):
        found[name] += blocks
    return found


def _gathered(
    serialized: list[bytes], rows: list[int], names: Collection[str]
) -> Iterator[tuple[str, list[Block]]]:
    """The values of examples that are not alike: found one by one, read feature by feature."""
    strips: dict[tuple[str, int], list[tuple[int, list[bytes]]]] = defaultdict(list)
    for row in rows:
        data = serialized[row]
        try:
            places = list(_places(data))
            if len({name for name, *_ in places}) < len(places):
                raise Malformed("a name stands there twice")
        except (Malformed, UnicodeDecodeError):
            for name, (kind, values) in _one(data, row):
                if name in names:
                    yield name, [Block([row], kind, _row(kind, values))]
            continue
        for name, kind, pieces in places:
            if name in names:
                strips[name, kind].append((row, [data[start:stop] for start, stop in pieces]))
    for (name, kind), strip in strips.items():
        try:
            yield name, list(_blocks(kind, strip))
        except Malformed:  # only one by one can tell which
            for row, _ in strip:
                _one(serialized[row], row)
            raise


def _blocks(kind: int, strip: list[tuple[int, list[bytes]]]) -> Iterator[Block]:
    """Rows with equally many values together."""
    if kind == BYTES:
        by_count: dict[int, list[tuple[int, list[bytes]]]] = defaultdict(list)
        for row, pieces in strip:
            by_count[len(pieces)].append((row, pieces))
        for count, same in by_count.items():
            texts = np.fromiter((text for _, pieces in same for text in pieces), object, count * len(same))
            yield Block([row for row, _ in same], kind, texts.reshape(len(same), count))
        return
    packed = [pieces[0] if pieces else b"" for _, pieces in strip]
    joined = b"".join(packed)
    stops = np.cumsum([0, *map(len, packed)])
    if kind == FLOAT:
        values: Array = floats(joined)
        ends = stops // 4
    else:
        last = np.frombuffer(joined, np.uint8) < 0x80
        if not last[stops[1:][np.diff(stops) > 0] - 1].all():
            raise Malformed("a packed number has no end")
        values = unpacked_varints(joined)
        ends = np.concatenate([[0], np.cumsum(last)])[stops]
    counts = np.diff(ends)
    for count in np.unique(counts).tolist():
        same_rows = np.flatnonzero(counts == count)
        places = ends[same_rows][:, None] + np.arange(count)
        yield Block([strip[index][0] for index in same_rows.tolist()], kind, values[places])


def _one(data: bytes, row: int) -> list[tuple[str, Feature]]:
    try:
        return read_features(part(data, 1))
    except (Malformed, UnicodeDecodeError) as error:
        raise Malformed(f"example {row} of the batch is damaged: {error}") from error


def _row(kind: int, values: Any) -> Array:
    if kind != BYTES:
        return values[None]  # type: ignore[no-any-return]
    return np.fromiter(values, object, len(values))[None]


def _alike(serialized: list[bytes], names: Collection[str]) -> list[tuple[str, int, Array]] | None:
    """Name, kind and values `(n, k)` of each feature, if all examples are cut at the same places; else None."""
    try:
        places = list(_places(serialized[0]))
    except (Malformed, IndexError, UnicodeDecodeError):
        return None
    if len({name for name, *_ in places}) < len(places):
        return None
    wanted = [place for place in places if place[0] in names]
    sizes: list[int] = []
    position = 0
    for _, _, pieces in places:
        for start, stop in pieces:
            sizes += [start - position, stop - start]
            position = stop
    sizes.append(len(serialized[0]) - position)
    cut = struct.Struct("".join(f"{size}s" for size in sizes)).unpack
    stripes = list(zip(*map(cut, serialized), strict=True))
    if any(stripe.count(stripe[0]) < len(stripe) for stripe in stripes[::2]):
        return None
    numbers = iter(range(1, len(stripes), 2))
    at = {name: [stripes[next(numbers)] for _ in pieces] for name, _, pieces in places}
    result = []
    for name, kind, _ in wanted:
        values = _stacked(kind, at[name], len(serialized))
        if values is None:
            return None
        result.append((name, kind, values))
    return result


def _stacked(kind: int, stripes: list[tuple[bytes, ...]], count: int) -> Array | None:
    if kind == BYTES:
        values = np.empty((count, len(stripes)), object)
        for index, stripe in enumerate(stripes):
            values[:, index] = np.fromiter(stripe, object, count)
        return values
    if not stripes:
        return np.empty((count, 0), np.float32 if kind == FLOAT else np.int64)
    (stripe,) = stripes
    packed = b"".join(stripe)
    if kind == FLOAT:
        return floats(packed).reshape(count, -1)
    ends = (np.frombuffer(packed, np.uint8) < 0x80).reshape(count, -1)
    each = ends.sum(axis=1)
    if not ends[:, -1].all() or (each != each[0]).any():
        return None
    return unpacked_varints(packed).reshape(count, -1)


def _places(data: bytes) -> Iterator[tuple[str, int, list[tuple[int, int]]]]:
    """Name, kind, and where the values are, of each feature of an example in the order that all writers use.

    Raises:
      Malformed: if it is in another, which is no error.
    """
    position, end = _message(data, 0, _ENTRY, len(data))
    if end != len(data):
        raise Malformed("something follows the features")
    while position < end:
        position, entry_end = _message(data, position, _ENTRY, end)
        position, key_end = _message(data, position, _KEY, entry_end)
        name = data[position:key_end].decode()
        position, value_end = _message(data, key_end, _VALUE, entry_end)
        kind = _FEATURE_TAGS.get(data[position], 0) if position < value_end else 0
        position, list_end = _message(data, position, data[position] if kind else -1, value_end)
        if not kind or not entry_end == value_end == list_end:
            raise Malformed("a feature of another form")
        pieces = []
        while position < list_end:
            start, position = _message(data, position, 0x0A, list_end)
            pieces.append((start, position))
        odd = kind == FLOAT and any((stop - start) % 4 for start, stop in pieces)
        if odd or (kind != BYTES and (len(pieces) > 1 or any(start == stop for start, stop in pieces))):
            raise Malformed("numbers in several parts")
        yield name, kind, pieces


def _message(data: bytes, position: int, tag: int, end: int) -> tuple[int, int]:
    """Where the content of the field at `position` starts and ends."""
    if position >= end or data[position] != tag:
        raise Malformed("another field")
    start = position + 2
    if start > end or (size := data[start - 1]) > 0x7F:  # mostly a length is one byte
        size, start = read_varint(data, position + 1)
    if start + size > end:
        raise Malformed("a field is cut off")
    return start, start + size
