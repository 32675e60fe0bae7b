"""Writes TFRecord files: a length, its checksum, the data, and their checksum, optionally compressed."""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from workbench.errors import FailedPreconditionError, NotFoundError, StorageFull
from workbench.io.checksums import masked_crc32c
from workbench.io.compression import WINDOW_BITS, check_compression
from workbench.io.storage import FULL

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class TFRecordOptions:
    """How record files are compressed.

    Attributes:
      compression_type: "GZIP", "ZLIB", or "" (None) for none.
      flush_mode: The mode of zlib for `flush`; None for `zlib.Z_SYNC_FLUSH`, after which everything written can be
        read.
      compression_level: 0 to 9, None for zlib's own.
      mem_level: 1 to 9, None for zlib's own.
      compression_strategy: One of zlib's, None for its own.

    Raises:
      InvalidArgumentError: if the compression is unknown.
    """

    compression_type: str | None = None
    flush_mode: int | None = None
    compression_level: int | None = None
    mem_level: int | None = None
    compression_strategy: int | None = None

    def __post_init__(self) -> None:
        check_compression(self.compression_type)

    def compressor(self) -> zlib._Compress | None:
        """The compressor for one file; None for none."""
        if not self.compression_type:
            return None
        level = zlib.Z_DEFAULT_COMPRESSION if self.compression_level is None else self.compression_level
        bits = WINDOW_BITS[self.compression_type]
        strategy = zlib.Z_DEFAULT_STRATEGY if self.compression_strategy is None else self.compression_strategy
        return zlib.compressobj(level, zlib.DEFLATED, bits, self.mem_level or zlib.DEF_MEM_LEVEL, strategy)


class TFRecordWriter:
    """Writes records to a new file, and replaces an existing one (as tf.io.TFRecordWriter).

    Use it in a `with` block, or call `close`. `wb.data.experimental.TFRecordWriter` writes a whole dataset, and
    replaces the file only when it is complete.

    Args:
      path: The file.
      options: `TFRecordOptions`, or the name of a compression.

    Raises:
      InvalidArgumentError: if the compression is unknown.
      NotFoundError: if the file cannot be created.

    >>> with wb.io.TFRecordWriter("digits.tfrecord") as writer:
    ...     for label in range(3):
    ...         writer.write(wb.io.encode_example({"label": label}))
    >>> len(list(wb.data.TFRecordDataset("digits.tfrecord")))
    3
    """

    def __init__(self, path: str | os.PathLike[str], options: TFRecordOptions | str | None = None) -> None:
        self._options = options if isinstance(options, TFRecordOptions) else TFRecordOptions(options)
        self._compressor = self._options.compressor()
        self._path = os.fspath(path)
        try:
            self._file = open(self._path, "wb", buffering=1 << 18)  # noqa: SIM115 - closed by `close`
        except (OSError, ValueError) as error:  # a name with a NUL byte raises a ValueError
            said = getattr(error, "strerror", None) or error
            raise NotFoundError(f"cannot write {self._path!r}: {said}") from error

    def write(self, record: Any) -> None:
        """Appends one record.

        Args:
          record: Bytes, text, or an array without dimensions that holds one.

        Raises:
          TypeError: if it is something else.
          StorageFull: if there is no space left.
          FailedPreconditionError: after `close`.
        """
        data = _bytes(record)
        length = _LENGTH.pack(len(data))
        head = length + _CRC.pack(masked_crc32c(length))
        self._put(head + data + _CRC.pack(masked_crc32c(data)))

    def flush(self) -> None:
        """Makes the records written so far readable.

        Raises:
          StorageFull: if there is no space left.
          FailedPreconditionError: after `close`.
        """
        self._check_open()
        rest = b""
        if self._compressor is not None:
            mode = self._options.flush_mode
            rest = self._compressor.flush(zlib.Z_SYNC_FLUSH if mode is None else mode)
        self._store(rest)
        self._store(b"", flush=True)

    def close(self) -> None:
        """Ends the file; may be called again.

        Raises:
          StorageFull: if there is no space left; then the end of the file is missing.
        """
        if self._file.closed:
            return
        try:
            if self._compressor is not None:
                self._store(self._compressor.flush())
            self._store(b"", flush=True)
        finally:
            self._discard()

    def __repr__(self) -> str:
        return f"TFRecordWriter({self._path!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._file.closed:
            raise FailedPreconditionError(f"{self._path!r} is closed; make another TFRecordWriter")

    def _put(self, data: bytes) -> None:
        self._check_open()
        self._store(data if self._compressor is None else self._compressor.compress(data))

    def _store(self, data: bytes, *, flush: bool = False) -> None:
        try:
            self._file.write(data)
            if flush:
                self._file.flush()
        except OSError as error:
            if error.errno in FULL:
                raise StorageFull(
                    f"{self._path!r}: {error.strerror} at byte {self._file.tell():,}; make room, or write elsewhere"
                ) from error
            raise

    def _discard(self) -> None:
        try:
            self._file.close()
        except OSError:  # `close` flushes again what could not be stored; the first error has reported it
            pass


def _bytes(record: Any) -> bytes:
    value = record.item() if getattr(record, "shape", None) == () else record
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(
        f"a record is bytes or text, got {type(record).__name__}; encode it, such as with wb.io.encode_example"
    )
