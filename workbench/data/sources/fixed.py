"""Records of one length, between a header and a footer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from workbench.data.sources.compressed import DEFAULT_BLOCK_BYTES, blocks
from workbench.data.sources.files import FileReader
from workbench.data.sources.opening import size_bytes
from workbench.data.tables import BytesTable, Run
from workbench.errors import DataLossError, FileSizeMismatch


@dataclass(frozen=True)
class FixedLength(FileReader):
    """Pieces of `record_bytes` bytes.

    Attributes:
      record_bytes: Length of a record.
      header_bytes: Bytes to skip at the start of each file.
      footer_bytes: Bytes to skip at the end of each file.
    """

    name: ClassVar[str] = "fixed-length records"
    record_bytes: int = 1
    header_bytes: int = 0
    footer_bytes: int = 0

    def read(self, path: str) -> Iterator[Run]:
        """The records of one file."""
        if not self.compression:
            self._check_size(path, size_bytes(path))
        skip, size = self.header_bytes, self.record_bytes
        total = 0
        data = b""
        for block in blocks(path, self.compression, max(self.block_bytes or DEFAULT_BLOCK_BYTES, size)):
            total += len(block)
            data += block[skip:]
            skip = max(0, skip - len(block))
            # The last footer_bytes so far may turn out to be the footer.
            usable = max(0, len(data) - self.footer_bytes) // size * size
            if usable:
                records = [data[start : start + size] for start in range(0, usable, size)]
                data = data[usable:]
                yield Run(BytesTable(records), range(len(records)))
        if (skip or len(data) != self.footer_bytes) and (total or self.header_bytes or self.footer_bytes):
            raise DataLossError(
                f"{path!r}: {total:,} bytes are not a whole number of {size}-byte records "
                f"between a header of {self.header_bytes} and a footer of {self.footer_bytes} bytes; "
                f"{len(data)} bytes are left over",
                file=path,
                offset=total - len(data),
            )

    def _check_size(self, path: str, size: int) -> None:
        body = size - self.header_bytes - self.footer_bytes
        if body < 0 or body % self.record_bytes:
            raise FileSizeMismatch(
                f"{path!r}: {size:,} bytes are not a whole number of {self.record_bytes}-byte records "
                f"between a header of {self.header_bytes} and a footer of {self.footer_bytes} bytes",
                file=path,
            )
