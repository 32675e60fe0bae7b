"""Recorded runs, reopened without a cluster."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from workbench.errors import DataCorruption, NotFoundError
from workbench.telemetry import batches
from workbench.telemetry.facts import RUN_KEY, Facts
from workbench.telemetry.feed import STUCK_AFTER_NS, Feed
from workbench.telemetry.frames import to_pandas
from workbench.telemetry.records import COLUMNS
from workbench.telemetry.snapshot import Snapshot, TableRow

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_BATCH: Final = 16_384


class Run:
    """A recorded run: the views of `Feed`, from a file. Made by `open_run`.

    Attributes:
      path: The file.
      events: What happened beside the collectives, oldest first.
      anchor: The driver's clocks, for times of day.
    """

    def __init__(self, path: Path, facts: Facts) -> None:
        self.path = path
        self.events = facts.events
        self.anchor = facts.anchor
        self._facts = facts
        self._lock = threading.Lock()  # guards `_feed`: the file is folded once, when somebody looks
        self._feed: Feed | None = None
        self._end_ns = 0

    def snapshot(self) -> Snapshot:
        """What views draw, as at the end of the run.

        Raises:
          DataCorruption: if the file is damaged.
        """
        with self._lock:
            if self._feed is None:
                self._feed = self._fold()
            return self._feed.snapshot()

    def table(self) -> tuple[TableRow, ...]:
        """The timing table of `snapshot()`."""
        return self.snapshot().table

    def to_arrow(self) -> pa.Table:
        """All records, in the order in which they were recorded.

        Raises:
          DataCorruption: if the file is damaged.
        """
        with _reading(self.path) as file:
            return file.read(columns=list(COLUMNS))

    def to_pandas(self) -> pd.DataFrame:
        """`to_arrow` as a data frame.

        Raises:
          BackendUnavailable: if pandas is not installed.
          DataCorruption: if the file is damaged.
        """
        return to_pandas(self.to_arrow())

    def _fold(self) -> Feed:
        feed = Feed(now_ns=lambda: self._end_ns + STUCK_AFTER_NS)
        with _reading(self.path) as file:
            for number, batch in enumerate(file.iter_batches(_BATCH, columns=list(COLUMNS))):
                columns = batches.from_batch(batch)
                self._end_ns = max(self._end_ns, _end_ns(columns))
                header = batches.Header("run", batch.num_rows, 0, 0, (), number)
                feed.ingest_columns(header, columns)
        facts = self._facts
        rest = batches.Header("facts", 0, facts.dropped, facts.dropped_events, facts.events, 0)
        feed.ingest_columns(rest, batches.empty())
        return feed


def open_run(path: str | os.PathLike[str]) -> Run:
    """Opens a file that `Recorder` wrote. Nothing in it is executed.

    Raises:
      NotFoundError: if there is no such file.
      DataCorruption: if it is damaged or not a recorded run; the text names the file.
    """
    where = Path(path)
    with _reading(where) as file:
        metadata = file.metadata.metadata or {}
        if RUN_KEY not in metadata or set(COLUMNS) - set(file.schema_arrow.names):
            raise DataCorruption(f"{where} is a Parquet file, but not a run that workbench recorded")
        return Run(where, Facts.decode(metadata[RUN_KEY]))


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    """The open Parquet file; whatever is wrong with it becomes DataCorruption with its name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no recorded run {path}") from error
    except PermissionError:
        raise
    except DataCorruption as error:
        raise error if str(path) in str(error) else DataCorruption(f"{path}: {error}") from error
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise DataCorruption(f"{path} is damaged or not a recorded run: {error}") from error


def _end_ns(columns: batches.Columns) -> int:
    enter, end, offset = (columns[name] for name in ("t_enter_ns", "t_end_ns", "clock_offset_ns"))
    assert isinstance(enter, np.ndarray)
    assert isinstance(end, np.ndarray)
    return int((np.maximum(enter, end) + offset).max(initial=0))
