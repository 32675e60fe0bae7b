"""Records a run to a Parquet file, which `open_run` opens without a cluster."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from workbench import forks
from workbench.errors import ClusterClosed, StorageFull
from workbench.telemetry.clocks import Anchor
from workbench.telemetry.events import Event
from workbench.telemetry.feed.batch_sources import Source
from workbench.telemetry.limits import Limit
from workbench.telemetry.recording import batches
from workbench.telemetry.records import schema
from workbench.telemetry.runs.run_metadata import RUN_KEY, Facts
from workbench.telemetry.runs.saved_models import LOOKS_KEY, MAX_MODEL_BYTES, Looks
from workbench.telemetry.told import Told

if TYPE_CHECKING:
    import pyarrow as pa

_ROW_GROUP: Final = 65_536
_MAX_EVENTS: Final = 10_000
_MAX_EVENT_CHARACTERS: Final = 4 << 20
"""The limit for all messages together: they are in the file's metadata, and readers accept at most 100 MB of it."""


class Recorder:
    """Writes batches to a Parquet file, one row group per 65,536 records. Any thread may call any method.

    Only the owner can read the file. It has a temporary name beside the final one until `close`, so a reader never sees
    half a file, and an earlier recording with the final name stays until then.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        anchor: Anchor | None = None,
        name_sites: Callable[[str], str] = str,
    ) -> None:
        """Opens a recording.

        Args:
          path: Path of the finished file; an existing one is replaced.
          anchor: The driver's clocks, to show times of day; read now by default.
          name_sites: Replaces call sites in a text by the names that users know, such as "In[5]:3", which cannot be
            found later from the file.

        Raises:
          StorageFull: if there is no space.
        """
        import pyarrow.parquet as pq

        self.path = Path(path)
        self._partial = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex[:8]}.partial")
        self._anchor = anchor or Anchor.now()
        self._name_sites = name_sites
        # Guards everything below; held while a row group is written.
        self._lock = forks.lock(threading.Lock())
        self._sources: dict[str, Source] = {}
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._events: deque[Event] = deque()
        self._event_characters = 0
        self._dropped_events = 0
        self._models: dict[str, str] = {}
        self._left_out: dict[str, None] = {}
        self._limits: dict[str, Limit] = {}
        self._told: dict[str, Told] = {}
        self._closed = False
        with self._storage():
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            self._file = os.fdopen(os.open(self._partial, flags, 0o600), "wb")
            self._writer = pq.ParquetWriter(
                self._file, schema(), compression="zstd", write_page_checksum=True
            )
        forks.tell(self)

    def disown(self) -> None:
        """See `forks.tell`: the file, and what is still in the buffer, belongs to the parent."""
        if not self._closed:
            self._closed = True
            forks.let_go(self._file.fileno())

    def add(self, data: bytes) -> None:
        """Adds a batch from `Drain.take`; ignores a repeated one.

        Raises:
          DataCorruption: if `data` is not a batch.
          StorageFull: if there is no space; `close` can still finish what was recorded before.
          ClusterClosed: if the recording was closed.
        """
        if not data:
            return
        header, columns = batches.decode(data)
        with self._lock:
            self._check_open()
            source = self._sources.setdefault(header.drain, Source())
            if not source.is_new(header.batch):
                return
            source.dropped = max(source.dropped, header.dropped)
            source.dropped_events = max(source.dropped_events, header.dropped_events)
            for event in header.events:
                self._add_event(event)
            if header.count:
                named = batches.with_named_sites(columns, self._name_sites)
                self._waiting.append(batches.to_table(named))
                self._waiting_rows += header.count
            if self._waiting_rows >= _ROW_GROUP:
                self._write()

    def add_event(self, event: Event) -> None:
        """Adds an event of the driver itself."""
        with self._lock:
            self._check_open()
            self._add_event(event)

    def keep(self, view: str, model: dict[str, Any]) -> None:
        """Keeps what a view draws, such as the topology, instead of its earlier model.

        Ignored after the recording was closed: callers need not know when that happens.
        """
        text = json.dumps(model, allow_nan=False, separators=(",", ":"))
        with self._lock:
            if self._closed:
                return
            if len(text) > MAX_MODEL_BYTES:
                self._left_out[view] = None
            else:
                self._left_out.pop(view, None)
                self._models[view] = text

    def set_limit(self, group: str, limit: Limit) -> None:
        """Keeps the measured limit of a group's bus bandwidth."""
        with self._lock:
            self._limits[group] = limit

    def set_told(self, group: str, told: Told) -> None:
        """Keeps what is known about a group besides its records."""
        with self._lock:
            self._told[group] = told

    def close(self) -> Path:
        """Writes the rest and gives the file its name; does nothing if called again.

        Raises:
          StorageFull: if there is no space; nothing is left behind, and an earlier file with that name is intact.
        """
        with self._lock:
            if self._closed:
                return self.path
            self._closed = True
            try:
                with self._storage():
                    self._finish()
            finally:
                with contextlib.suppress(OSError):
                    self._file.close()
                self._partial.unlink(missing_ok=True)
            return self.path

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()  # even after an error, when a recording is needed most

    def _finish(self) -> None:
        self._write()
        sources = self._sources.values()
        facts = Facts(
            anchor=self._anchor,
            dropped=sum(source.dropped for source in sources),
            dropped_events=sum(source.dropped_events for source in sources) + self._dropped_events,
            events=tuple(self._events),
        )
        looks = Looks(self._models, tuple(self._left_out), self._limits, self._told)
        self._writer.add_key_value_metadata({RUN_KEY: facts.encode(), LOOKS_KEY: looks.encode()})
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        os.replace(self._partial, self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the name itself must survive a power failure
        finally:
            os.close(folder)

    def _write(self) -> None:
        import pyarrow as pa

        if self._waiting:
            table = pa.concat_tables(self._waiting).unify_dictionaries()
            self._waiting, self._waiting_rows = [], 0
            with self._storage():
                self._writer.write_table(table, row_group_size=_ROW_GROUP)

    def _add_event(self, event: Event) -> None:
        self._events.append(replace(event, site=self._name_sites(event.site)))
        self._event_characters += len(event.message)
        while len(self._events) > _MAX_EVENTS or self._event_characters > _MAX_EVENT_CHARACTERS:
            self._event_characters -= len(self._events.popleft().message)
            self._dropped_events += 1

    def _check_open(self) -> None:
        if self._closed:
            raise ClusterClosed(f"the recording {self.path} was closed; open a new Recorder")

    @contextlib.contextmanager
    def _storage(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StorageFull(f"no space left for the recording {self.path}; free some space") from error
            raise
