"""DumpFile: the newest operations of a process, and the file into which they are flushed."""

from __future__ import annotations

import json
import linecache
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.backends.users_line import warn
from workbench.debugging.dump.options import DumpOptions
from workbench.io.record_writer import TFRecordWriter
from workbench.runtime.process.last_writes import last_writes


class DumpFile:
    """What one process dumps. Its threads share it.

    It is a record file, with checksums, of Arrow batches, one per flush: what a process flushed before it was killed
    can be read, and damage is detected.

    Attributes:
      options: The options of the dump.
      ended: Whether the dump has ended; code that still records into it closes it again.
    """

    def __init__(self, options: DumpOptions) -> None:
        """Creates the folder; the first flush creates files."""
        self.options = options
        self.ended = False
        self._lock = threading.Lock()  # held during one append or one flush
        self._writing_sources = threading.Lock()  # replicas that are threads share their file
        self._waiting: deque[dict[str, Any]] = deque(maxlen=options.buffer or None)
        self._sources: set[str] = set()
        self._written: list[str] = []
        self._sources_path: Path | None = None
        self._writer: TFRecordWriter | None = None
        self._stem = f"{socket.gethostname()}-{os.getpid()}"
        Path(options.root).mkdir(parents=True, exist_ok=True)

    def add(self, row: dict[str, Any], source_files: tuple[str, ...]) -> None:
        """Keeps an operation's result; drops the oldest one if necessary.

        Args:
          row: Columns of `schema.SCHEMA`; missing ones are null.
          source_files: The user's files that led to the operation.
        """
        with self._lock:
            self._sources.update(source_files)
            self._waiting.append(row)
            if not self.options.buffer:
                self._flush()

    def flush(self) -> None:
        """Writes the kept operations."""
        with self._lock:
            self._flush()

    def flush_sources(self) -> None:
        """Writes a copy of the source files that were involved so far."""
        with self._writing_sources:
            with self._lock:
                names = sorted(self._sources)
            if names != self._written:
                sources = {name: "".join(linecache.getlines(name)) for name in names}
                path = self._sources_path = self._sources_path or self._free(_newest("sources"), ".json")
                new = path.with_suffix(".new")
                new.write_text(json.dumps(sources), encoding="utf-8")
                os.replace(new, path)
                self._written = names

    def close(self) -> None:
        """Writes the rest, and closes the file even if writing fails."""
        try:
            self.flush_sources()
        finally:
            with self._lock:
                self.ended = True
                try:
                    self._flush()
                finally:
                    writer, self._writer = self._writer, None
                    if writer is not None:
                        writer.close()

    def _free(self, kind: str, suffix: str) -> Path:
        """A path that no earlier dump into the same folder has used."""
        path = Path(self.options.root, f"{kind}-{self._stem}{suffix}")
        number = 1
        while path.exists():
            number += 1
            path = path.with_name(f"{kind}-{self._stem}-{number}{suffix}")
        return path

    def _flush(self) -> None:
        if not self._waiting:
            return
        if self._writer is None:
            self._writer = TFRecordWriter(self._free("executions", ".tfrecord"))
        import pyarrow as pa

        from workbench.debugging.dump.schema import SCHEMA

        batch = pa.RecordBatch.from_pylist(list(self._waiting), schema=SCHEMA)
        self._writer.write(batch.serialize().to_pybytes())
        self._writer.flush()
        self._waiting.clear()


def _newest(kind: str) -> str:
    """A file name prefix that sorts by start time; file times do not survive copying."""
    return f"{kind}-{time.time_ns():020}"


_files: dict[str, DumpFile] = {}
_files_lock = threading.Lock()


def dump_file(options: DumpOptions) -> DumpFile:
    """The file of this process for a dump; ends a dump into the same folder with other options.

    Warns if the kept operations of that dump cannot be written; the new one has started.
    """
    failure = ""
    with _files_lock:
        found = _files.get(options.root)
        if found is None or found.options != options:
            former, found = found, DumpFile(options)
            _files[options.root] = found
            if former is not None:  # under the lock, because both choose names in one folder
                failure = _failure(former, former.close)
    if failure:
        warn(f"what was left of the dump before was not written into {failure}", RuntimeWarning)
    return found


def known_file(root: str) -> DumpFile | None:
    """The file of this process for the dump into `root`, None if nothing was recorded here."""
    with _files_lock:
        return _files.get(root)


def flush_all() -> list[str]:
    """Writes every dump of this process, as if it ended; returns the reasons why some could not be written."""
    with _files_lock:
        files = list(_files.values())
    return [failure for file in files if (failure := _failure(file, file.flush_sources, file.flush))]


def close_all(besides: str) -> None:
    """Ends every dump in this process except the one into `besides`; what cannot be written is lost."""
    with _files_lock:
        files = [_files.pop(root) for root in list(_files) if root != besides]
    for file in files:
        _failure(file, file.close)


def _failure(file: DumpFile, *writes: Callable[[], None]) -> str:
    """Runs the writes; returns the reason if one of them failed, "" otherwise."""
    try:
        for write in writes:
            write()
    except Exception as error:
        # A full disk or a missing folder: the other files must still be written.
        return f"{file.options.root!r}: {type(error).__name__}: {error}"
    return ""


def close_file(root: str) -> None:
    """Ends a dump in this process."""
    with _files_lock:
        file = _files.pop(root, None)
    if file is not None:
        file.close()


last_writes.append(flush_all)  # a cluster may close before its dump is ended
