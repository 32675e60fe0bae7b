"""Recorded runs, reopened without a cluster."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from workbench import arguments, forks
from workbench.errors import DataCorruption, InvalidArgumentError, NotFoundError
from workbench.telemetry.dataframe import to_pandas
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.feed.stuck import STUCK_AFTER_NS
from workbench.telemetry.recording import arrow, batches
from workbench.telemetry.records import ADDED_COLUMNS, COLUMNS, schema
from workbench.telemetry.runs.run_metadata import RUN_KEY, Facts
from workbench.telemetry.runs.saved_models import LOOKS_KEY, Looks
from workbench.telemetry.runs.transfer_times import Kind, Times, Transfers
from workbench.telemetry.snapshot import Snapshot, TableRow

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_Records = TypeVar("_Records", "pa.Table", "pa.RecordBatch")
_BATCH: Final = 16_384
_EXTENT: Final = ("t_enter_ns", "t_end_ns", "clock_offset_ns", "replica", "step")
_MAX_REPLICAS: Final = 1 << 16
"""A file that names more is damaged, or made to keep its reader busy."""


@dataclass(frozen=True, slots=True)
class Span:
    """How much was recorded.

    Attributes:
      records: Records.
      replicas: Number of replicas.
      begin_ns, end_ns: The first record's begin and the last one's end by the driver's clock; 0 without records.
      first_step, last_step: Numbers of steps; -1 without records.
    """

    records: int
    replicas: int
    begin_ns: int
    end_ns: int
    first_step: int
    last_step: int

    @property
    def seconds(self) -> float:
        """The duration."""
        return max(0.0, (self.end_ns - self.begin_ns) / 1e9)


class Run:
    """A recorded run: the views of `Feed`, from a file. Created by `open_run`.

    Attributes:
      path: The file.
      events: Events besides the collectives, oldest first.
      anchor: The driver's clocks, for times of day.
      looks: Models of views that are not based on records.
    """

    def __init__(self, path: Path, facts: Facts, looks: Looks) -> None:
        self.path = path
        self.events = facts.events
        self.anchor = facts.anchor
        self.looks = looks
        self._facts = facts
        # Guards the next ones: the file is read once for each, on first use.
        self._lock = forks.lock(threading.Lock())
        self._feed: Feed | None = None
        self._span: Span | None = None

    def snapshot(self) -> Snapshot:
        """What views draw at the end of the run.

        Raises:
          DataCorruption: if the file is damaged.
        """
        with self._lock:
            if self._feed is None:
                self._feed = self._fold(lambda columns: columns)
            return self._feed.snapshot()

    def snapshot_of(self, steps: range) -> Snapshot:
        """What views draw for some steps, as at their end.

        Args:
          steps: Numbers of steps, as each strategy counts its own.

        Raises:
          InvalidArgumentError: if `steps` is not a range of steps.
          DataCorruption: if the file is damaged.
        """
        if steps.step != 1 or steps.start < 0:
            raise InvalidArgumentError(f"steps of a run are such as range(100, 200), got {steps}")
        return self._fold(lambda columns: _of_steps(columns, steps), steps).snapshot()

    def table(self) -> tuple[TableRow, ...]:
        """The timing table of `snapshot()`."""
        return self.snapshot().table

    def span(self) -> Span:
        """How much was recorded.

        Raises:
          DataCorruption: if the file is damaged.
        """
        with self._lock:
            if self._span is None:
                self._span = _span(list(self._extents()))
            return self._span

    def ended_ns(self) -> int:
        """When the last record ended, in ns since 1970; without records, when the recording began.

        Raises:
          DataCorruption: if the file is damaged.
        """
        return self.anchor.to_wall_ns(self.span().end_ns or self.anchor.monotonic_ns)

    def transfers(self) -> Mapping[Kind, Times]:
        """How long each collective took from the arrival of its last replica, over the whole run; see `transfers`.

        Raises:
          DataCorruption: if the file is damaged.
        """
        found = Transfers()
        for columns in self._columns():
            found.add(columns)
        return found.by_kind()

    def to_arrow(self) -> pa.Table:
        """All records, in the order in which they were recorded.

        Raises:
          DataCorruption: if the file is damaged.
        """
        import pyarrow as pa

        with _reading(self.path) as file:
            table = _sound(file.read(columns=list(COLUMNS)))
        for field in schema():
            if field.name not in table.column_names:
                unknown = pa.repeat(ADDED_COLUMNS[field.name], len(table)).dictionary_encode()
                table = table.append_column(field, unknown)
        return table.select(COLUMNS)

    def to_pandas(self) -> pd.DataFrame:
        """`to_arrow` as a data frame.

        Raises:
          BackendUnavailable: if pandas is not installed.
          DataCorruption: if the file is damaged.
        """
        return to_pandas(self.to_arrow())

    def _columns(self) -> Iterator[batches.Columns]:
        """The records, some thousands at a time, because a file may be larger than the memory."""
        with _reading(self.path) as file:
            for batch in file.iter_batches(_BATCH, columns=list(COLUMNS)):
                columns = batches.from_batch(_sound(batch))
                _check(columns)
                yield columns

    def _extents(self) -> Iterator[Span]:
        """The extents of some thousands of records at a time, without reading their texts."""
        with _reading(self.path) as file:
            for batch in file.iter_batches(_BATCH, columns=list(_EXTENT)):
                if any(column.null_count for column in batch.columns):
                    raise DataCorruption("records lack values")
                yield _extent({name: arrow.numbers_in(batch.column(name)) for name in _EXTENT})

    def _fold(self, some: Callable[[batches.Columns], batches.Columns], steps: range | None = None) -> Feed:
        end_ns = 0
        feed = Feed(now_ns=lambda: end_ns + STUCK_AFTER_NS)
        for group, limit in self.looks.limits.items():
            feed.set_limit(group, limit)
        for group, told in self.looks.told.items():
            feed.set_told(group, told)
        for number, whole in enumerate(self._columns()):
            columns = some(whole)
            end_ns = max(end_ns, _extent({name: np.asarray(columns[name]) for name in _EXTENT}).end_ns)
            count = len(columns["seq"])
            feed.ingest_columns(batches.Header("run", count, 0, 0, (), number), columns)
        facts = self._facts
        events = facts.events if steps is None else tuple(e for e in facts.events if e.step in steps)
        rest = batches.Header("facts", 0, facts.dropped, facts.dropped_events, events, 0)
        feed.ingest_columns(rest, batches.empty())
        return feed


def open_run(path: str | os.PathLike[str]) -> Run:
    """Opens a file that `Recorder` wrote. Nothing in it is executed.

    Raises:
      NotFoundError: if there is no such file.
      DataCorruption: if it is damaged or not a recorded run; the text names the file.
    """
    where = arguments.path(path, "the file of a run")
    with _reading(where) as file:
        metadata = file.metadata.metadata or {}
        if RUN_KEY not in metadata or batches.missing_columns(file.schema_arrow.names):
            raise DataCorruption(f"{where} is a Parquet file, but not a run that workbench recorded")
        facts = Facts.decode(metadata[RUN_KEY])
        _check_types(file.schema_arrow)
        looks = Looks.decode(metadata[LOOKS_KEY]) if LOOKS_KEY in metadata else Looks()
        return Run(where, facts, looks)


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    """The open Parquet file; any error becomes a DataCorruption with its name."""
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


def _sound(records: _Records) -> _Records:
    """The same records, checked.

    Raises:
      pyarrow.ArrowInvalid: if they refer to missing texts, for example because a page's header is damaged.
    """
    records.validate(full=True)
    return records


def _check_types(found: pa.Schema) -> None:
    """Checks the columns' types: the names may be right and the types wrong.

    Raises:
      DataCorruption: if a type is wrong.
    """
    import pyarrow as pa

    for field in schema():
        if field.name not in found.names:
            continue  # a column that a later version added
        kind = found.field(field.name).type
        text = pa.types.is_dictionary(field.type)
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if not (pa.types.is_string(kind) if text else kind == field.type):
            raise DataCorruption(
                f"column {field.name!r} has type {kind}, not {'text' if text else field.type}"
            )


def _check(columns: batches.Columns) -> None:
    """Checks the numbers that decide how much memory a record takes.

    Raises:
      DataCorruption: if they make no sense.
    """
    for name in ("replica", "n"):
        values = columns[name]
        if len(values) and not (values.min() >= 0 and values.max() <= _MAX_REPLICAS):  # type: ignore[union-attr]
            raise DataCorruption(f"column {name!r} has values that no run has")


def _of_steps(columns: batches.Columns, steps: range) -> batches.Columns:
    step = columns["step"]
    assert isinstance(step, np.ndarray)
    return batches.taken(columns, (step >= steps.start) & (step < steps.stop))


def _extent(columns: Mapping[str, np.ndarray]) -> Span:
    enter, end, offset, replica, step = (columns[name] for name in _EXTENT)
    if not len(step):
        return Span(0, 0, 0, 0, -1, -1)
    return Span(
        records=len(step),
        replicas=int(replica.max()) + 1,
        begin_ns=int((enter + offset).min()),
        end_ns=int((np.maximum(enter, end) + offset).max()),
        first_step=int(step.min()),
        last_step=int(step.max()),
    )


def _span(parts: list[Span]) -> Span:
    parts = [part for part in parts if part.records]
    if not parts:
        return Span(0, 0, 0, 0, -1, -1)
    return Span(
        records=sum(part.records for part in parts),
        replicas=max(part.replicas for part in parts),
        begin_ns=min(part.begin_ns for part in parts),
        end_ns=max(part.end_ns for part in parts),
        first_step=min(part.first_step for part in parts),
        last_step=max(part.last_step for part in parts),
    )
