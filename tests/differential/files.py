"""Texts of random pipelines that read files: records, lines, pieces of one length, databases."""

from __future__ import annotations

import struct

from tests.differential.programs import Drawn
from workbench.io import masked_crc32c


class FilePrograms(Drawn):
    """Makes programs that read a small file, which may be damaged."""

    def next(self) -> str:
        """The next program, an expression."""
        source = self._random.choice((self._records, self._lines, self._pieces, self._rows, self._several))()
        return source + self._either(
            "", "", ".batch(2)", ".skip(1)", ".take(2)", ".repeat(2)", ".shard(2, 1)"
        )

    def _compression(self) -> tuple[str, str]:
        """How a file is compressed and how it is read: usually alike."""
        pack = self._random.choice(("", "", "GZIP", "ZLIB"))
        read = self._random.choice(("", "GZIP", "ZLIB")) if self._random.random() < 0.1 else pack
        return pack, read

    def _records(self) -> str:
        pack, read = self._compression()
        content = b"".join(
            _record(self._random.randbytes(self._number(0, 5))) for _ in range(self._number(0, 4))
        )
        return f"Records(file({self._damaged(content)!r}, {pack!r}), {read!r})"

    def _damaged(self, content: bytes) -> bytes:
        kind = self._number(0, 5)
        if kind > 3 or not content:
            return content + b"x" * (kind == 5)
        place = self._number(0, len(content) - 1)
        match kind:
            case 0:
                return content[:place]
            case 1:
                return (
                    content[:place]
                    + bytes([content[place] ^ (1 << self._number(0, 7))])
                    + content[place + 1 :]
                )
            case 2:
                return content[:place] + content[place + 1 :]
            case _:
                length = struct.pack("<Q", self._random.choice((0, 1, 5, 100, 1 << 40, (1 << 64) - 1)))
                return length + struct.pack("<I", masked_crc32c(length)) + content[12:]

    def _lines(self) -> str:
        pack, read = self._compression()
        parts = [
            self._random.choice((b"a", b"bc", b"\n", b"\n", b"\r\n", b"\0", b"\xff", b" "))
            for _ in range(self._number(0, 9))
        ]
        content = b"".join(parts)
        buffer = self._either("", ", 1", ", 2", ", 0", ", None")
        return f"Lines(file({content!r}, {pack!r}), {read!r}{buffer})"

    def _pieces(self) -> str:
        pack, read = self._compression()
        content = bytes(range(65, 65 + self._number(0, 14)))
        header, footer = self._either("None", 0, 1, 3, 20), self._either("None", 0, 1, 2)
        buffer = self._either("", ", 1", ", None")
        text = f"Pieces(file({content!r}, {pack!r}), {self._number(1, 4)}, {header}, {footer}"
        return f"{text}{buffer or ', None'}, {read!r})"

    def _several(self) -> str:
        names = ", ".join(
            f"file({self._random.choice((b'', b'a', b'a', b'b', b'ab'))!r} * {self._number(0, 3)})"
            for _ in range(self._number(1, 3))
        )
        missing = self._random.random() < 0.1
        return (
            self._either("Lines", "Pieces").replace("Pieces", "(lambda names: Pieces(names, 1))")
            + f"([{names}{', ' + repr('/missing') if missing else ''}])"
        )

    def _rows(self) -> str:
        count = self._number(1, 3)
        kinds = [self._either("INTEGER", "REAL", "TEXT", "BLOB", "") for _ in range(count)]
        values = (
            None,
            0,
            1,
            -1,
            300,
            2**31,
            2**40,
            -(2**63),
            1.5,
            -0.0,
            1e300,
            "",
            "a",
            "12",
            "1.5x",
            b"",
            b"\0a",
            b"7",
        )
        rows = [tuple(self._random.choice(values) for _ in range(count)) for _ in range(self._number(0, 4))]
        types = [
            self._either("int8", "int16", "int32", "int64", "uint8", "uint16", "float64", "string", "bool")
            for _ in range(count)
        ]
        if self._random.random() < 0.1:
            types = types[1:] if self._random.random() < 0.5 else [*types, "int32"]
        if self._random.random() < 0.05:
            types[:1] = [self._either("float32", "uint32", "uint64", "complex64", "float16")]
        columns = self._either(
            "*", ", ".join(f"c{n}" for n in range(count)), "nothing" if self._random.random() < 0.1 else "*"
        )
        wanted = ", ".join(repr(kind) for kind in types)
        return f"Sql(database({kinds}, {rows}), 'SELECT {columns} FROM t', ({wanted},))"


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))
