"""The bytes of an example before the values of its features, learned from one example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from workbench.io.example_bytes import Octets
from workbench.io.wire import Malformed, read_varint

FEATURES: Final = 0x0A
ENTRY: Final = 0x0A
ITEM: Final = 0x0A
LONGEST_HEADER: Final = 256
_KEY: Final = 0x0A
_VALUE: Final = 0x12
_KINDS: Final = {0x0A: 1, 0x12: 2, 0x1A: 3}
_LONGEST_LENGTH = 4


@dataclass(frozen=True, slots=True)
class Length:
    """Bytes of a header with the length of something that ends where the feature ends.

    Attributes:
      start: Where these bytes start in the header.
      stop: Where the measured content starts.
    """

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Header:
    """The bytes of a feature before its values: only those of its lengths vary.

    Attributes:
      name: The name of the feature.
      kind: The kind of its values.
      single: Whether the values are one item, whose header is part of this one: one text, or packed numbers.
      key: The bytes from the name's length to the tag after it.
      same: All bytes, shape `(n,)`.
      lengths: Those of the entry, the feature, the list of values, and the item if it is single.
      size: Bytes of the feature with its values, in the example that it was learned from.
    """

    name: str
    kind: int
    single: bool
    key: Octets
    same: Octets
    lengths: tuple[Length, ...]
    size: int


Template = dict[str, Header]


def learned(data: bytes, start: int) -> Template:
    """The headers of the features of one example, in their order.

    Args:
      data: The example.
      start: Where its features start.

    Raises:
      Malformed: if they have another form, or one occurs twice.
    """
    template: Template = {}
    while start < len(data):
        header, start = header_at(data, start)
        if header.name in template:
            raise Malformed("a name stands there twice")
        template[header.name] = header
    return template


def merged(known: Template, new: Template) -> Template:
    """A template that covers both; only `new` if their orders contradict each other."""
    common = [name for name in new if name in known]
    if common != [name for name in known if name in new]:
        return new
    result: Template = {}
    rest = iter(known.items())
    for name, header in new.items():
        if name in known:
            for other, known_header in rest:
                result[other] = known_header
                if other == name:
                    break
        else:
            result[name] = header
    result.update(rest)
    return result


def header_at(data: bytes, start: int) -> tuple[Header, int]:
    """The header of the feature at `start` of an example, and where the feature ends.

    Raises:
      Malformed: if it has an unusual form, which need not be an error.
    """
    entry, entry_end = _message(data, start, ENTRY, len(data))
    key, key_end = _message(data, entry, _KEY, entry_end)
    value, value_end = _message(data, key_end, _VALUE, entry_end)
    kind = _KINDS.get(data[value], 0) if value < value_end else 0
    content, end = _message(data, value, data[value] if kind else -1, value_end)
    if not entry_end == value_end == end:
        raise Malformed("a feature of another form")
    lengths = [
        Length(1, entry - start),
        Length(key_end + 1 - start, value - start),
        Length(value + 1 - start, content - start),
    ]
    before = content - start
    try:
        item, item_end = _message(data, content, ITEM, end)
    except Malformed:
        single = False
    else:
        single = item_end == end
        if single:
            lengths.append(Length(content + 1 - start, item - start))
            before = item - start
    try:
        name = data[key:key_end].decode()
    except UnicodeDecodeError as error:
        raise Malformed("a name is not text") from error
    if before > LONGEST_HEADER:
        raise Malformed("a name is long")
    # A view would keep the whole example in memory.
    same = np.frombuffer(data, np.uint8, before, start).copy()
    key_bytes = same[entry - start : key_end + 1 - start]
    return Header(name, kind, single, key_bytes, same, tuple(lengths), end - start), end


def _message(data: bytes, position: int, tag: int, end: int) -> tuple[int, int]:
    """Where the content of the field at `position` starts and ends."""
    if position >= end or data[position] != tag:
        raise Malformed("another field")
    size, start = read_varint(data, position + 1)
    if start + size > end or start - position - 1 > _LONGEST_LENGTH:
        raise Malformed("a field is cut off")
    return start, start + size
