"""Batches of records in the form that is sent: an Arrow IPC stream with a header in its metadata."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from workbench.errors import DataCorruption
from workbench.telemetry.events import Event
from workbench.telemetry.recording import arrow
from workbench.telemetry.records import ADDED_COLUMNS, COLUMNS, INT32_COLUMNS, TEXT_COLUMNS, Record, schema

if TYPE_CHECKING:
    import pyarrow as pa

HEADER_KEY: Final = b"workbench.telemetry"
VERSION: Final = 3


@dataclass(frozen=True, slots=True)
class Header:
    """Where a batch comes from, and what was lost before it.

    Attributes:
      drain: Id of the `Drain` that made it.
      count: Number of records in it.
      dropped: Records that were lost there so far.
      dropped_events: Events that were lost there so far.
      events: The events drained with it.
      batch: Number of the batch there, from 0.
    """

    drain: str
    count: int
    dropped: int
    dropped_events: int
    events: tuple[Event, ...]
    batch: int


@dataclass(frozen=True, slots=True)
class Text:
    """A column of few distinct strings: `values[codes[i]]` is the text of row i.

    Attributes:
      codes: int32, shape `(rows,)`.
      values: The distinct strings.
    """

    codes: np.ndarray
    values: tuple[str, ...]

    @staticmethod
    def constant(value: str, rows: int) -> Text:
        """The column that has `value` in each of `rows` rows."""
        return Text(np.zeros(rows, np.int32), (value,))

    def __len__(self) -> int:
        return len(self.codes)

    def tolist(self) -> list[str]:
        """The column as strings, one per row."""
        return [self.values[code] for code in self.codes.tolist()]


Columns = dict[str, "np.ndarray | Text"]
"""A batch in memory: one entry per column of `records.COLUMNS`, all of the same length."""


def append(columns: Columns, record: Record) -> Columns:
    """The columns with one more row."""
    longer: Columns = {}
    for name, column in columns.items():
        value = getattr(record, name)
        if isinstance(column, Text):
            values = tuple(dict.fromkeys((*column.values, value)))
            longer[name] = Text(np.append(column.codes, np.int32(values.index(value))), values)
        else:
            longer[name] = np.append(column, column.dtype.type(value))
    return longer


def taken(columns: Columns, rows: np.ndarray) -> Columns:
    """The columns with some of the rows: `rows` is a mask, or row numbers."""
    return {
        name: Text(column.codes[rows], column.values) if isinstance(column, Text) else column[rows]
        for name, column in columns.items()
    }


def with_named_sites(columns: Columns, name: Callable[[str], str]) -> Columns:
    """The columns with call sites renamed by `name`."""
    sites = columns["site"]
    assert isinstance(sites, Text)
    return columns | {"site": Text(sites.codes, tuple(map(name, sites.values)))}


def to_table(columns: Columns) -> pa.Table:
    """The columns as an Arrow table with the schema of `records.schema()`."""
    import pyarrow as pa

    return pa.Table.from_batches([_to_batch(columns)])


def _to_batch(columns: Columns) -> pa.RecordBatch:
    import pyarrow as pa

    target = schema()
    arrays = []
    for field in target:
        column = columns[field.name]
        if isinstance(column, Text):
            indices = arrow.from_numbers(column.codes, pa.int32())
            arrays.append(pa.DictionaryArray.from_arrays(indices, arrow.from_texts(column.values)))
        else:
            arrays.append(arrow.from_numbers(column, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def from_batch(batch: pa.RecordBatch) -> Columns:
    """The columns of an Arrow batch; the inverse of `to_table`. Columns of later versions may be missing.

    Raises:
      DataCorruption: if a column or value is missing, or a column refers to a missing text.
    """
    names = batch.schema.names
    if missing := missing_columns(names):
        raise DataCorruption(f"telemetry batch lacks columns {missing}; has {names}")
    arrays = dict(zip(names, batch.columns, strict=True))
    if gaps := [name for name in COLUMNS if name in arrays and arrays[name].null_count]:
        raise DataCorruption(f"telemetry batch lacks values in columns {gaps}")
    columns: Columns = {}
    for name in COLUMNS:
        if name not in arrays:
            columns[name] = Text.constant(ADDED_COLUMNS[name], batch.num_rows)
        else:
            columns[name] = (_text if name in TEXT_COLUMNS else _numbers)(name, arrays[name])
    return columns


def missing_columns(names: Collection[str]) -> list[str]:
    """The required columns that a batch lacks."""
    return [name for name in COLUMNS if name not in names and name not in ADDED_COLUMNS]


def _numbers(name: str, array: Any) -> np.ndarray:
    try:
        return arrow.numbers_in(array)
    except TypeError as error:
        raise DataCorruption(f"telemetry batch: column {name!r} {error}") from error


def _text(name: str, array: Any) -> Text:
    if not hasattr(array, "dictionary"):
        array = array.dictionary_encode()
    values = tuple(array.dictionary.to_pylist())
    if None in values:
        raise DataCorruption(f"telemetry batch: column {name!r} has a text that is none")
    if len(values) == 1:  # true of most columns: nothing is looked up, so there is nothing to check
        return Text.constant(values[0], len(array))
    codes = _numbers(name, array.indices).astype(np.int32, copy=False)
    if len(codes) and (codes.min() < 0 or codes.max() >= len(values)):
        raise DataCorruption(f"telemetry batch: column {name!r} refers to texts it does not contain")
    return Text(codes, values)


def encode(columns: Columns, header: Header) -> bytes:
    """The batch as one Arrow IPC stream."""
    import pyarrow as pa

    batch = _to_batch(columns)
    fields = {name: getattr(header, name) for name in Header.__dataclass_fields__}
    fields |= {"version": VERSION, "events": [event.as_dict() for event in header.events]}
    target = batch.schema.with_metadata({HEADER_KEY: json.dumps(fields).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, target) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def decode(data: bytes) -> tuple[Header, Columns]:
    """Reads what `encode` wrote. Nothing in `data` is executed.

    Raises:
      DataCorruption: if `data` is not such a stream.
    """
    import pyarrow as pa

    try:
        with pa.ipc.open_stream(data) as reader:
            fields = json.loads((reader.schema.metadata or {})[HEADER_KEY])
            (batch,) = reader
        version = fields.pop("version")
        if version != VERSION:
            raise DataCorruption(f"telemetry batch has version {version}, this workbench reads {VERSION}")
        fields["events"] = tuple(Event(**event) for event in fields["events"])
        header = Header(**fields)
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise DataCorruption(f"not a telemetry batch ({len(data)} bytes): {error}") from error
    if header.count != batch.num_rows:
        raise DataCorruption(f"telemetry batch announces {header.count} records but has {batch.num_rows}")
    return header, from_batch(batch)


def empty() -> Columns:
    """A batch without records, for a header that carries only events or counts."""
    kinds = {name: np.int32 if name in INT32_COLUMNS else np.int64 for name in COLUMNS}
    return {
        name: Text.constant("", 0) if name in TEXT_COLUMNS else np.zeros(0, kind)
        for name, kind in kinds.items()
    }
