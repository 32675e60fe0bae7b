"""Texts of programs that parse examples of random bytes: as protocol buffers allow them, and damaged."""

from __future__ import annotations

import struct

from tests.differential.programs import Drawn

_LISTS = {"string": 1, "float32": 2, "int64": 3}  # numbers of a feature's fields


class WirePrograms(Drawn):
    """Makes programs that parse one example or two, with lists in parts, fields that are unknown, and cuts."""

    def next(self) -> str:
        """The next program, an expression."""
        kinds = {name: self._either(*_LISTS) for name in ("a", "b")[: self._number(1, 2)]}
        examples = [self._damaged(self._example(kinds)) for _ in range(self._number(1, 2))]
        wanted = ", ".join(f"{name!r}: {self._wanted(kind)}" for name, kind in kinds.items())
        return f"parsed(io.parse_example(texts({examples!r}), {{{wanted}}}))"

    def _wanted(self, kind: str) -> str:
        return self._either(
            f"io.VarLenFeature(dtypes.{kind})",
            f"io.FixedLenFeature([], dtypes.{kind})",
            f"io.FixedLenFeature([2], dtypes.{kind})",
            f"io.FixedLenSequenceFeature([], dtypes.{kind}, allow_missing=True)",
        )

    def _rarely(self, chance: float = 0.12) -> bool:
        return self._random.random() < chance

    def _example(self, kinds: dict[str, str]) -> bytes:
        entries = [self._entry(name, kind) for name, kind in kinds.items() if not self._rarely()]
        if entries and self._rarely():
            name = self._random.choice(list(kinds))
            entries.append(self._entry(name, kinds[name]))  # once more
        if self._rarely():
            entries.append(self._unknown())
        if len(entries) > 1 and self._rarely():  # in two parts
            return _field(1, entries[0]) + _field(1, b"".join(entries[1:]))
        return _field(1, b"".join(entries)) + self._unknown() * self._rarely()

    def _entry(self, name: str, kind: str) -> bytes:
        parts = [_field(1, name.encode()), _field(2, self._feature(kind))]
        if self._rarely(0.08):
            parts.reverse()
        if self._rarely(0.08):
            parts.insert(self._number(0, 2), self._unknown())
        if self._rarely(0.04):
            parts.pop()
        return _field(1, b"".join(parts))

    def _feature(self, kind: str) -> bytes:
        if self._rarely(0.08):
            kind = self._either(*_LISTS)
        lists = [_field(_LISTS[kind], self._list(kind))]
        if self._rarely(0.08):
            other = self._either(kind, *_LISTS)
            lists.append(_field(_LISTS[other], self._list(other)))
        if self._rarely(0.06):
            lists.insert(self._number(0, len(lists)), self._unknown())
        return b"".join(lists) * (not self._rarely(0.04))

    def _list(self, kind: str) -> bytes:
        count = self._random.choice((0, 1, 1, 2, 2, 2, 3))
        if kind == "string":
            return b"".join(_field(1, self._random.choice((b"", b"x", b"yz"))) for _ in range(count))
        packed = self._random.random() < 0.6
        parts = []
        for _ in range(count):
            if kind == "int64":
                value = _varint(self._random.choice((0, 1, 300, 2**63, 2**64 - 1)))
                parts.append(value if packed else b"\x08" + value)
            else:
                value = struct.pack("<f", self._random.choice((0.0, 1.5, -2.0, float("inf"))))
                parts.append(value if packed else b"\x0d" + value)
        if not packed:
            return b"".join(parts)
        cut = self._number(0, count) if self._rarely() else count
        pieces = [b"".join(parts[:cut]), b"".join(parts[cut:])]
        return b"".join(_field(1, piece) for piece in pieces if piece or self._rarely())

    def _unknown(self) -> bytes:
        return self._random.choice(
            (
                b"\x48\x05",
                _field(9, b"zz"),
                b"\x4d\0\0\0\0",
                b"\x49" + b"\0" * 8,
                b"\x4b\x4c",
            )  # the last one is a group
        )

    def _damaged(self, data: bytes) -> bytes:
        if not data or not self._rarely(0.2):
            return data
        place = self._number(0, len(data) - 1)
        return self._random.choice(
            (
                data[:place],
                data[:place] + bytes([data[place] ^ (1 << self._number(0, 7))]) + data[place + 1 :],
                data + self._random.choice((b"\0", b"\xff", b"\x0a")),
                data[:place] + data[place + 1 :],
            )
        )


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes((*found, number))


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content
