"""The dispatcher's journal: its decisions, written before anyone else learns about them.

It is a TFRecord file of JSON objects, so lengths and contents have checksums. A killed process leaves at most a part of
the last record, which was not reported to anyone: it is truncated. Any other error is damage. Written entries survive
the end of the process at any time. Entries that others rely on (datasets, jobs, lanes) are also synced to the disk
before they are reported. Acknowledgements are not, because that would take a disk access per block of elements: a
machine that loses power may lose the last of them, and their elements may arrive again.

A growing journal is rewritten with entries that make the same state: beside the old one, which it replaces once it is
complete and on the disk.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable
from typing import Any

from workbench.data.stored.locks import FileLock
from workbench.errors import DataLossError, FailedPreconditionError
from workbench.faults import fault
from workbench.io.checksums import masked_crc32c
from workbench.io.storage import storage

Entry = dict[str, Any]
_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_HEAD_BYTES = _LENGTH.size + _CRC.size


class Journal:
    """Entries in a file, to which only one process may append."""

    def __init__(self, path: str) -> None:
        """Reads the file `path`, which need not exist; `entries` has its content.

        Raises:
          DataLossError: if it is damaged; the message names file and offset.
          FailedPreconditionError: if another process has it open.
        """
        self._path = path
        try:
            self._lock = FileLock(path + ".lock", wait=False)
        except BlockingIOError as error:
            raise FailedPreconditionError(
                f"another dispatcher that runs uses the journal {path!r}; stop it, or choose another work_dir"
            ) from error
        try:
            self._open(path)
        except BaseException:
            self._lock.release()
            raise

    def _open(self, path: str) -> None:
        self._file = os.open(path, _FLAGS, 0o600)
        try:
            with open(self._file, "rb", closefd=False) as stream:
                data = stream.read()
            self.entries, self._end = read_entries(data, path)
            os.ftruncate(self._file, self._end)
        except BaseException:
            os.close(self._file)
            raise

    @property
    def size_bytes(self) -> int:
        """The size of the file."""
        return self._end

    def append(self, entry: Entry, *, sync: bool = False) -> None:
        """Writes an entry completely or not at all; with `sync`, it is on the disk on return.

        Raises:
          StorageFull: if there is no space left.
        """
        record = framed(entry)
        try:
            with storage(self._path):
                fault("data_journal.before_append")
                _write(self._file, record, self._end)
                if sync:
                    os.fsync(self._file)
        except BaseException:
            os.ftruncate(self._file, self._end)
            raise
        self._end += len(record)
        fault("data_journal.after_append")

    def replace(self, entries: Iterable[Entry]) -> None:
        """Replaces the content of the file by these entries, atomically.

        Raises:
          StorageFull: if there is no space left.
        """
        data = b"".join(map(framed, entries))
        # This process holds the lock, so an existing file comes from a killed process and may be overwritten.
        beside = self._path + ".new"
        with storage(self._path):
            file = os.open(beside, _FLAGS | os.O_TRUNC, 0o600)
            try:
                _write(file, data, 0)
                os.fsync(file)
                fault("data_journal.before_replace")
                os.replace(beside, self._path)
            except BaseException:
                os.close(file)
                os.unlink(beside)
                raise
        # From here on the old file has no name, so nothing may fail in between.
        os.close(self._file)
        self._file, self._end = file, len(data)
        fault("data_journal.after_replace")
        _sync_folder(self._path)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)
        self._lock.release()


def _write(file: int, data: bytes, offset: int) -> None:
    written = 0
    while written < len(data):
        written += os.pwrite(file, data[written:], offset + written)


def _sync_folder(path: str) -> None:
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def framed(entry: Entry) -> bytes:
    """An entry as a record of a TFRecord file."""
    body = json.dumps(entry, separators=(",", ":")).encode()
    length = _LENGTH.pack(len(body))
    return length + _CRC.pack(masked_crc32c(length)) + body + _CRC.pack(masked_crc32c(body))


def read_entries(data: bytes, path: str) -> tuple[list[Entry], int]:
    """The complete entries in the contents of a journal, and where they end.

    Raises:
      DataLossError: if a record is damaged; a partial record at the end is not damage.
    """
    entries: list[Entry] = []
    start = 0
    while len(data) - start >= _HEAD_BYTES:
        length_bytes = data[start : start + _LENGTH.size]
        if _CRC.unpack_from(data, start + _LENGTH.size)[0] != masked_crc32c(length_bytes):
            raise _damaged(path, start, "the checksum of its length is wrong")
        (length,) = _LENGTH.unpack(length_bytes)
        body_start = start + _HEAD_BYTES
        if length + _CRC.size > len(data) - body_start:
            break
        body = data[body_start : body_start + length]
        if _CRC.unpack_from(data, body_start + length)[0] != masked_crc32c(body):
            raise _damaged(path, start, "its checksum is wrong")
        try:
            entries.append(json.loads(body))
        except (ValueError, RecursionError) as error:
            raise _damaged(path, start, f"it is not JSON: {error}") from error
        start = body_start + length + _CRC.size
    return entries, start


def _damaged(path: str, offset: int, why: str) -> DataLossError:
    return DataLossError(
        f"the dispatcher's journal {path!r} is damaged: record at byte {offset:,}: {why}. What follows cannot be "
        f"trusted, so the dispatcher does not start: restore the file, or give it an empty work_dir, which starts over",
        file=path,
        offset=offset,
    )
