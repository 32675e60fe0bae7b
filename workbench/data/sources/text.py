"""Lines of text files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.data.sources.compressed import DEFAULT_BLOCK_BYTES, blocks
from workbench.data.sources.files import FileReader
from workbench.data.spec import STRING
from workbench.data.structure import LEAF, Array, Structure
from workbench.data.tables import Leaves, Rows, Run, Slab, as_slab, row_numbers
from workbench.errors import DataLossError, DataWarning


@dataclass(frozen=True)
class TextLines(FileReader):
    """Lines without their line ends, as bytes.

    As in tf.data every carriage return is removed, not only those before a newline. One that stands alone is
    reported: a `DataWarning` once per file, or a `DataLossError` if `strict`.

    Attributes:
      strict: Whether a lone carriage return is an error.
    """

    name: ClassVar[str] = "text lines"
    strict: bool = False

    def read(self, path: str) -> Iterator[Run]:
        """The lines of one file."""
        rest = b""
        offset = 0
        warned = False
        for block in blocks(path, self.compression, self.block_bytes or DEFAULT_BLOCK_BYTES):
            end = block.rfind(b"\n") + 1
            if not end:  # quadratic only in the number of blocks of one line
                rest += block
                continue
            text = rest + block[: end - 1] if rest else block[: end - 1]
            rest = block[end:]
            if b"\r" in text:
                warned = self._report(path, text + b"\n", offset, warned)
                size, text = len(text), text.replace(b"\r", b"")
            else:
                size = len(text)
            offset += size + 1
            lines = text.split(b"\n")
            yield Run(LineTable(lines), range(len(lines)))
        if rest:
            if b"\r" in rest:
                self._report(path, rest, offset, warned)
            yield Run(LineTable([rest.replace(b"\r", b"")]), range(1))

    def _report(self, path: str, text: bytes, offset: int, warned: bool) -> bool:
        """Tells of the first carriage return that ends no line; dos files have none such."""
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
            raise DataLossError(message)
        warnings.warn(message, DataWarning, stacklevel=2)
        return True


@dataclass(slots=True, eq=False)
class LineTable:
    """Bytes in a list; an object array is made only of those that go into a batch."""

    at_rest: ClassVar[bool] = True
    lines: list[bytes]

    @property
    def structure(self) -> Structure:
        """The structure of an element."""
        return LEAF

    def row(self, index: int) -> Leaves:
        """The components of one element."""
        return [self.lines[index]]

    def take(self, rows: Rows) -> Leaves:
        """The components of several elements, stacked."""
        if isinstance(rows, range):
            chosen = self.lines[rows.start : rows.stop : rows.step]
        else:
            chosen = [self.lines[row] for row in rows]
        return [np.fromiter(chosen, STRING, len(chosen))]

    def ids(self, rows: Rows) -> Array:
        """Numbers of the source elements behind `rows`."""
        return row_numbers(rows)

    def segment(self, index: int) -> Slab:
        """One element seen as a batch of rows."""
        return as_slab([self.lines[index]], row_numbers(range(index, index + 1)))
