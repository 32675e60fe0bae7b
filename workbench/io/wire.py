"""The wire format of protocol buffers, as far as tensors and examples need it: varints and length-delimited fields.

Written by hand, because the library would be a dependency of megabytes for four kinds of messages, and would create
objects instead of arrays.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from workbench.errors import InvalidArgumentError

_LONGEST_VARINT = 10
_SIGN = 1 << 63
_MASK = (1 << 64) - 1
VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5
Octets = np.ndarray[Any, np.dtype[np.uint8]]
Int64s = np.ndarray[Any, np.dtype[np.int64]]


class Malformed(InvalidArgumentError):
    """Bytes are not what the wire format allows."""


def varint(value: int) -> bytes:
    """A whole number of up to 64 bits; negative ones take ten bytes."""
    value &= _MASK
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varints(values: Iterable[int]) -> bytes:
    """Whole numbers one after the other, as in a packed field."""
    numbers = list(values)
    if all(0 <= value < 0x80 for value in numbers):
        return bytes(numbers)
    return b"".join(map(varint, numbers))


def delimited(number: int, payload: bytes) -> bytes:
    """Field `number` with a length prefix: text, bytes, a message, or packed numbers."""
    return varint(number << 3 | DELIMITED) + varint(len(payload)) + payload


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The unsigned number at `position`, and the position after it.

    Raises:
      Malformed: if it does not end, or needs more than 64 bits.
    """
    value = shift = 0
    for index in range(position, min(position + _LONGEST_VARINT, len(data))):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > _MASK:
                break
            return value, index + 1
        shift += 7
    raise Malformed(f"byte {position}: a number has no end")


def signed(value: int) -> int:
    """An unsigned number of 64 bits read as a signed one."""
    return value - (1 << 64) if value & _SIGN else value


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and content of each field; content is an int for a varint, otherwise bytes.

    Groups, an old form of messages that examples do not use, are skipped with the fields in them.

    Raises:
      Malformed: if a field is truncated or of an unknown kind, or a group has no end.
    """
    position, end = 0, len(data)
    groups: list[int] = []  # the open ones, by number
    while position < end:
        start = position
        key, position = read_varint(data, position)
        number, kind = key >> 3, key & 7
        if not number:
            raise Malformed(f"byte {start}: no field has number 0")
        value: Any
        if kind == VARINT:
            value, position = read_varint(data, position)
        else:
            match kind:
                case 2:
                    size, position = read_varint(data, position)
                case 1:
                    size = 8
                case 5:
                    size = 4
                case 3:
                    groups.append(number)
                    continue
                case 4:
                    if not groups or groups.pop() != number:
                        raise Malformed(f"byte {start}: group {number} ends, and has not begun")
                    continue
                case _:
                    raise Malformed(f"byte {start}: wire type {kind} is unknown")
            if size > end - position:
                raise Malformed(
                    f"byte {start}: field {number} claims {size:,} bytes, {end - position} are left"
                )
            value, position = data[position : position + size], position + size
        if not groups:
            yield number, kind, value
    if groups:
        raise Malformed(f"byte {end}: group {groups[-1]} has no end")


def unpacked_varints(data: bytes | Octets) -> Int64s:
    """The packed whole numbers in `data`, signed, shape `(n,)`.

    Raises:
      Malformed: if the last one has no end, or one is longer than ten bytes.
    """
    octets = np.frombuffer(data, np.uint8)
    if not len(octets) or octets.max() < 0x80:
        return octets.astype(np.int64)
    ends = np.flatnonzero(octets < 0x80)
    if not len(ends) or ends[-1] != len(octets) - 1:
        raise Malformed(f"byte {len(data)}: a packed number has no end")
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    longest = int(lengths.max())
    if longest > _LONGEST_VARINT:
        raise Malformed(f"a packed number has {longest} bytes")
    values = np.zeros(len(ends), np.uint64)
    for place in range(longest):
        rows = lengths > place
        values[rows] |= (octets[starts[rows] + place] & np.uint8(0x7F)).astype(np.uint64) << np.uint64(
            7 * place
        )
    return values.view(np.int64)


def floats(data: bytes) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The packed float32 numbers in `data`, shape `(n,)`, writable.

    Raises:
      Malformed: if bytes are left over.
    """
    if len(data) % 4:
        raise Malformed(f"packed floats take {len(data)} bytes, which is not a multiple of 4")
    return np.frombuffer(data, "<f4").astype(np.float32)


def float32(data: bytes) -> float:
    """One number of four bytes."""
    return float(struct.unpack("<f", data)[0])
