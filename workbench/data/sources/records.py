"""Records of TFRecord files: a length, its checksum, the data, and their checksum."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from workbench.backends.users_line import warn
from workbench.data.sources.compressed import fills
from workbench.data.sources.files import FileReader
from workbench.data.sources.opening import size_bytes
from workbench.data.tables import BytesTable, Run
from workbench.errors import DataLossError, DataWarning
from workbench.io.checksums import masked_crc32c, masked_crcs

_HEADER: Final = struct.Struct("<QI")
_HEADER_BYTES: Final = 12
_FOOTER_BYTES: Final = 4
_BLOCK_BYTES: Final = 1 << 19
_MOST_KNOWN: Final = 1 << 16


@dataclass(frozen=True)
class Records(FileReader):
    """Records as bytes, checksums verified.

    As in tf.data, a file that ends inside the 12 bytes before a record just ends. This is reported by a `DataWarning`,
    or a `DataLossError` if `strict`.

    Attributes:
      strict: Whether a file truncated inside a header is an error.
    """

    name: ClassVar[str] = "records"
    strict: bool = False

    def read(self, path: str) -> Iterator[Run]:
        """The records of one file."""
        parser = _Parser(path, self.block_bytes or _BLOCK_BYTES)
        for count in fills(path, self.compression, parser.space):
            records = parser.filled(count)
            if records:
                yield Run(BytesTable(records), range(len(records)))
            parser.check()
            if parser.claims_much and not self.compression:
                parser.check_size(size_bytes(path))
        self._report_rest(path, parser)

    def _report_rest(self, path: str, parser: _Parser) -> None:
        rest = parser.rest_bytes
        if not rest:
            return
        place = f"{path!r}: record {parser.count} at byte {parser.offset}"
        if rest >= _HEADER_BYTES:
            raise DataLossError(f"{place} is cut off: the file ends {rest} bytes into it", **parser.place)
        message = f"{place} has only {rest} of its header's 12 bytes; the file is taken to end there"
        if self.strict:
            raise DataLossError(message, **parser.place)
        warn(message, DataWarning)


class _Parser:
    """Cuts bytes into records. Raises an error only after the good records before it.

    All blocks share one buffer, because allocating one for each costs as much as reading it. The buffer grows with the
    bytes that have arrived, never to the length that a record claims.
    """

    def __init__(self, path: str, block_bytes: int = _BLOCK_BYTES) -> None:
        self.rest_bytes = 0
        self.offset = 0
        self.count = 0
        self._path = path
        self._block_bytes = block_bytes
        # A memory map rather than a bytearray, because its slices are bytes.
        self._memory = mmap.mmap(-1, 2 * block_bytes)
        self._claimed_bytes = 0
        self._error: DataLossError | None = None
        # Lengths repeat, so a header that was verified once need not be checked again.
        self._known: dict[bytes, int] = {}

    @property
    def place(self) -> dict[str, Any]:
        """The location of the next record, in the form that errors use."""
        return {"file": self._path, "record": self.count, "offset": self.offset}

    def check(self) -> None:
        """Raises the error that `filled` found."""
        if self._error is not None:
            raise self._error

    @property
    def claims_much(self) -> bool:
        """Whether the next record claims to be longer than a block."""
        return self._claimed_bytes > self._block_bytes

    def check_size(self, file_bytes: int) -> None:
        """Raises if the next record claims more bytes than the file has; otherwise, the whole file would be read."""
        if self.claims_much and self.offset + self._claimed_bytes > file_bytes:
            raise DataLossError(
                f"{self._path!r}: record {self.count} at byte {self.offset} is cut off: it takes "
                f"{self._claimed_bytes:,} bytes, the file has {file_bytes - self.offset:,} more",
                **self.place,
            )

    def space(self) -> memoryview:
        """The memory for the next block; always of the same length."""
        start, stop = self.rest_bytes, self.rest_bytes + self._block_bytes
        if stop > len(self._memory):
            wider = mmap.mmap(-1, 2 * stop)
            wider[:start] = self._memory[:start]
            self._memory = wider
        return memoryview(self._memory)[start:stop]

    def filled(self, count: int) -> list[bytes]:
        """The records that the `count` new bytes in `space()` complete."""
        end = self.rest_bytes + count
        if end < self._claimed_bytes:
            self.rest_bytes = end
            return []
        records, ends, position, wrong = self._cut(end)
        good = self._verified(records, ends)
        if good < len(records):
            start = ends[good] - len(records[good]) - _HEADER_BYTES
            self._fail("data", self.count + good, self.offset + start)
            del records[good:]
        elif wrong:
            self._fail("length", self.count + good, self.offset + position)
        self.count += len(records)
        self.offset += position
        self.rest_bytes = end - position
        self._memory.move(0, position, self.rest_bytes)
        return records

    def _cut(self, end: int) -> tuple[list[bytes], list[int], int, bool]:
        """The complete records, the end of each, the start of the next one, and whether that one's length is wrong."""
        records: list[bytes] = []
        ends: list[int] = []
        add, add_end, known, data = records.append, ends.append, self._known, self._memory
        position = self._claimed_bytes = 0
        while True:
            start = position + _HEADER_BYTES
            try:  # bytes of earlier blocks may follow `end`, but no record that ends before it
                stop = start + known[data[position:start]]
            except KeyError:
                if start > end:
                    break
                header = data[position:start]
                length, crc = _HEADER.unpack(header)
                if masked_crc32c(header[:8]) != crc:
                    return records, ends, position, True
                if len(known) >= _MOST_KNOWN:
                    known.clear()
                known[header] = length
                stop = start + length
            following = stop + _FOOTER_BYTES
            if following > end:
                self._claimed_bytes = following - position if start <= end else 0
                break
            add(data[start:stop])
            add_end(stop)
            position = following
        return records, ends, position, False

    def _verified(self, records: list[bytes], ends: list[int]) -> int:
        """How many records precede the first one with a wrong checksum."""
        if not records:
            return 0
        # The four bytes at any position, so that each record's checksum is found from its end.
        words = np.ndarray((len(self._memory) - 3,), "<u4", self._memory, 0, (1,))
        wrong = masked_crcs(records) != words[ends]
        return int(wrong.argmax()) if wrong.any() else len(records)

    def _fail(self, what: str, record: int, place: int) -> None:
        self._error = DataLossError(
            f"{self._path!r}: the checksum of the {what} of record {record}, at byte {place}, "
            "is wrong; the file is damaged, or no record file (check compression_type)",
            file=self._path,
            record=record,
            offset=place,
        )
