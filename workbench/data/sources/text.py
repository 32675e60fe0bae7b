"""Lines of text files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from operator import itemgetter
from typing import ClassVar, Final

from workbench.backends.users_line import warn
from workbench.data.sources.compressed import blocks
from workbench.data.sources.files import FileReader
from workbench.data.tables import BytesTable, Run
from workbench.errors import DataLossError, DataWarning

_BLOCK_BYTES: Final = 1 << 19
_LONG_LINE_BYTES: Final = 160  # on average; `split` checks each byte, which is slower from this length on
_without_end = itemgetter(slice(None, -1))


@dataclass(frozen=True)
class TextLines(FileReader):
    """Lines without their line ends, as bytes.

    As in tf.data, every carriage return is removed, not only those before a newline. A lone one is reported by a
    `DataWarning` once per file, or a `DataLossError` if `strict`.

    Attributes:
      strict: Whether a lone carriage return is an error.
    """

    name: ClassVar[str] = "text lines"
    strict: bool = False

    def read(self, path: str) -> Iterator[Run]:
        """The lines of one file."""
        begun: list[bytes] = []  # the line that continues in the next block
        begun_bytes = offset = 0
        returns = warned = is_long = False
        for block in blocks(path, self.compression, self.block_bytes or _BLOCK_BYTES):
            returns = returns or b"\r" in block
            lines = split_long(block) if is_long else block.split(b"\n")
            is_long = len(block) >= _LONG_LINE_BYTES * len(lines)
            begun.append(lines[0])
            if len(lines) == 1:
                begun_bytes += len(block)
                continue
            lines[0] = b"".join(begun)
            size = begun_bytes + len(block)
            begun = [lines.pop()]
            begun_bytes = len(begun[0])
            if returns:
                text = b"\n".join(lines)
                warned = self._report(path, text + b"\n", offset, warned)
                lines = text.replace(b"\r", b"").split(b"\n")
                returns = b"\r" in begun[0]
            offset += size - begun_bytes
            yield Run(BytesTable(lines), range(len(lines)))
        if begun_bytes:
            rest = b"".join(begun)
            if returns:
                self._report(path, rest, offset, warned)
            yield Run(BytesTable([rest.replace(b"\r", b"")]), range(1))

    def _report(self, path: str, text: bytes, offset: int, warned: bool) -> bool:
        """Reports the first carriage return that does not end a line; files with DOS line ends have none."""
        if warned or text.count(b"\r") == text.count(b"\r\n"):
            return warned
        position = text.index(b"\r", 0)
        while text[position + 1 : position + 2] == b"\n":
            position = text.index(b"\r", position + 1)
        message = (
            f"{path!r}: carriage return inside a line at byte {offset + position}; it is removed and the "
            "line goes on, "
            "as in tf.data. Convert the line ends if it was meant as one"
        )
        if self.strict:
            raise DataLossError(message, file=path, offset=offset + position)
        warn(message, DataWarning)
        return True


def split_long(block: bytes) -> list[bytes]:
    """As `split` at newlines, but faster for long lines and slower for short ones; no block is empty."""
    lines = list(map(_without_end, BytesIO(block)))
    rest = block[block.rfind(b"\n") + 1 :]
    if rest:
        lines[-1] = rest
    else:
        lines.append(rest)
    return lines
