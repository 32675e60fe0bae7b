"""Records of TFRecord files: length, its checksum, data, their checksum."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from workbench.data.sources.compressed import DEFAULT_BLOCK_BYTES, blocks
from workbench.data.sources.files import FileReader
from workbench.data.sources.text import LineTable
from workbench.data.tables import Run
from workbench.errors import DataLossError, DataWarning
from workbench.io.checksums import masked_crc32c

_HEADER = struct.Struct("<QI")
_FOOTER_BYTES = 4


@dataclass(frozen=True)
class Records(FileReader):
    """Records as bytes, checksums verified.

    As in tf.data a file that ends inside the 12 bytes before a record just ends. That is reported: a
    `DataWarning`, or a `DataLossError` if `strict`.

    Attributes:
      strict: Whether a file cut off inside a header is an error.
    """

    name: ClassVar[str] = "records"
    strict: bool = False

    def read(self, path: str) -> Iterator[Run]:
        """The records of one file."""
        parser = _Parser(path)
        for block in blocks(path, self.compression, self.block_bytes or DEFAULT_BLOCK_BYTES):
            records = parser.feed(block)
            if records:
                yield Run(LineTable(records), range(len(records)))
            parser.check()
        self._report_rest(path, parser)

    def _report_rest(self, path: str, parser: _Parser) -> None:
        rest = parser.rest_bytes
        if not rest:
            return
        place = f"{path!r}: record {parser.count} at byte {parser.offset}"
        if rest >= _HEADER.size:
            raise DataLossError(f"{place} is cut off: the file ends {rest} bytes into it")
        message = f"{place} has only {rest} of its header's 12 bytes; the file is taken to end there"
        if self.strict:
            raise DataLossError(message)
        warnings.warn(message, DataWarning, stacklevel=2)


class _Parser:
    """Cuts blocks of bytes into records; what is wrong is raised only after the good records before it."""

    def __init__(self, path: str) -> None:
        self._blocks: list[bytes] = []
        self._missing = 0
        self.offset = 0
        self.count = 0
        self._path = path
        self._error: DataLossError | None = None
        # Lengths repeat: a header that was once found right need not be checked again.
        self._known: dict[bytes, int] = {}

    @property
    def rest_bytes(self) -> int:
        """How many bytes follow the last complete record."""
        return sum(map(len, self._blocks))

    def check(self) -> None:
        """Raises what `feed` found."""
        if self._error is not None:
            raise self._error

    def feed(self, block: bytes) -> list[bytes]:
        """The records that are complete with `block`."""
        self._blocks.append(block)
        self._missing -= len(block)
        if self._missing > 0:  # joining the blocks of a huge record again and again would take quadratic time
            return []
        data = b"".join(self._blocks)
        position, end = 0, len(data)
        records: list[bytes] = []
        missing = 0
        known = self._known
        while end - position >= _HEADER.size:
            header = data[position : position + _HEADER.size]
            length = known.get(header)
            if length is None:
                length, crc = _HEADER.unpack(header)
                if masked_crc32c(header[:8]) != crc:
                    self._fail("length", position)
                    break
                known[header] = length
            start = position + _HEADER.size
            stop = start + length
            if stop + _FOOTER_BYTES > end:
                missing = stop + _FOOTER_BYTES - end
                break
            record = data[start:stop]
            if masked_crc32c(record) != int.from_bytes(data[stop : stop + _FOOTER_BYTES], "little"):
                self._fail("data", position)
                break
            records.append(record)
            position = stop + _FOOTER_BYTES
            self.count += 1
        self.offset += position
        self._blocks, self._missing = [data[position:]], missing
        return records

    def _fail(self, what: str, position: int) -> None:
        self._error = DataLossError(
            f"{self._path!r}: the checksum of the {what} of record {self.count}, at byte "
            f"{self.offset + position}, "
            "is wrong; the file is damaged, or no record file (check compression_type)"
        )
