"""Parquet files: row groups are the splits, columns and filters are pushed down to the file."""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from workbench.data.dataset import Dataset
from workbench.data.formats.columns import ColumnReading
from workbench.data.formats.damage import damage_told
from workbench.data.formats.splits import Positions, SplitReader
from workbench.data.sources.files import file_names
from workbench.data.sources.opening import opened
from workbench.data.tables import Run
from workbench.errors import InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

_KEEP = "\0keep"
_BEGUN_BYTES = 32 << 20
_PART_BYTES = 12 << 20  # so that Arrow starts two at a time
_LARGE_GROUP_BYTES = 128 << 20
_WIDE_ROW_BYTES = 256  # from this size on, decoding rows in parts takes no longer than all at once
_BATCH_BYTES = 4 << 20
_READ_BYTES = 1 << 20


class ParquetDataset(Dataset):
    """Rows of Parquet files, as dicts of their columns.

    Text and binary columns are bytes. Lists of equal length are arrays. A null becomes NaN or NaT if the type has that,
    and otherwise raises, unless `defaults` has a replacement. `AutoShardPolicy.FILE` distributes row groups among
    hosts. Page checksums are verified if present. Without `filters`, wide rows are decoded a few megabytes at a time;
    with filters, a whole row group at a time.

    Args:
      filenames: A name or URL, a list of them, or a dataset of them.
      columns: Names of the columns to read; None for all. Only these are read from the file.
      filters: Which rows to read: `[("x", ">", 3), ("y", "in", {1, 2})]`, a list of such lists (any of them), or an
        expression of `pyarrow.compute`. Row groups in which no row can match are not read.
      defaults: Replacements for null, by column.

    Raises:
      TypeError: if the names are not text, or the filters have the wrong form.
      InvalidArgumentError: if the filters cannot be understood. Reading raises it for columns that a file lacks or that
        no array can hold, `DataLossError` for a damaged file or a null without default, and `NotFoundError` for a
        missing file.
    """

    def __init__(
        self,
        filenames: Any,
        columns: Sequence[str] | None = None,
        filters: Any = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        reading = ColumnReading(
            None if columns is None else tuple(dict.fromkeys(columns)), dict(defaults or {})
        )
        reader = Parquet(file_names(filenames), reading=reading, keep=_expression(filters))
        super().__init__(reader)


@dataclass(frozen=True, eq=False, kw_only=True)
class Parquet(SplitReader):
    """Rows of Parquet files.

    Attributes:
      reading: Which columns, and what replaces null.
      keep: Which rows; None for all.
    """

    name: ClassVar[str] = "Parquet rows"
    split_names: ClassVar[str] = "row groups"
    reading: ColumnReading
    keep: pc.Expression | None = None

    def element_spec(self) -> Any:
        """The nested spec of an element, according to the first file."""
        path = self.first_file()
        with _opened(path) as (_, fragment):
            return self.reading.specs(fragment.physical_schema, path)

    def count_splits(self, path: str) -> int:
        """How many row groups a file has."""
        with _opened(path) as (_, fragment):
            return int(fragment.num_row_groups)

    def read_splits(self, path: str, splits: Sequence[int]) -> Iterator[Run]:
        """The rows of some row groups."""
        import pyarrow.compute as pc

        specs = self.element_spec()
        with _opened(path) as (file, fragment):
            self.reading.expect(specs, fragment.physical_schema, path)
            ends = np.cumsum([0, *(group.num_rows for group in fragment.row_groups)]).tolist()
            if self.keep is None:
                kept = list(splits)
            else:
                with _told(path):
                    parts = fragment.split_by_row_group(self.keep)
                wanted = {group.id for part in parts for group in part.row_groups}
                kept = [split for split in splits if split in wanted]
            sizes = self._bytes_read(fragment, list(specs))

            def begin(some: list[int]) -> Iterator[pa.RecordBatch]:
                part = fragment.subset(row_group_ids=some)
                row_bytes = _row_bytes(part, sizes)
                if self.keep is None and row_bytes:
                    return _streamed(file, part, list(specs), max(1, _BATCH_BYTES // row_bytes))
                return self._scanned(path, part, list(specs))

            positions = Positions([range(ends[split], ends[split + 1]) for split in kept])
            for batch in _read_ahead(sizes, kept, begin):
                where = positions.take(batch.num_rows)
                if self.keep is not None:
                    mask = pc.fill_null(batch.column(_KEEP), False)
                    batch = batch.filter(mask)
                    where = np.asarray(where)[mask.to_numpy(zero_copy_only=False)]
                if batch.num_rows:
                    yield self.reading.run(batch, list(specs), where, path)

    def _bytes_read(self, fragment: ds.ParquetFileFragment, names: list[str]) -> dict[int, int]:
        """Decoded bytes of each row group, for the columns that are read."""
        read, all_names = set(names), fragment.physical_schema.names
        if self.keep is not None:
            filters = str(self.keep)
            read.update(name for name in all_names if name in filters)
        if len(read) == len(all_names):
            return {group.id: group.total_byte_size for group in fragment.row_groups}
        metadata = fragment.metadata
        columns = []
        for column in range(metadata.num_columns):
            path = metadata.schema.column(column).path  # a nested column is called "name.list.element"
            if not read.isdisjoint(itertools.accumulate(path.split("."), "{}.{}".format)):
                columns.append(column)
        sizes = {}
        for group in fragment.row_groups:
            of_group = metadata.row_group(group.id)
            sizes[group.id] = sum(of_group.column(column).total_uncompressed_size for column in columns)
        return sizes

    def _scanned(self, path: str, part: ds.ParquetFileFragment, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Starts decoding, and returns all rows. With a filter, an extra column marks the rows to keep."""
        import pyarrow.dataset as ds

        asked: Any = {name: ds.field(name) for name in names}
        if self.keep is not None:
            asked[_KEEP] = self.keep
        with _told(path):
            scanner = part.scanner(columns=asked)
        # Arrow's threads start here. The batches raise the file's errors, each at its place.
        batches: Iterator[pa.RecordBatch] = scanner.to_batches()
        return batches


@contextlib.contextmanager
def _opened(path: str) -> Iterator[tuple[Any, ds.ParquetFileFragment]]:
    """The open file and its metadata; the file's name instead if Arrow opens it itself."""
    import pyarrow as pa
    from pyarrow.fs import LocalFileSystem

    # Opened even if Arrow opens the file itself, because these errors name the remedy.
    with opened(path) as opened_file, damage_told(path, "Parquet"):
        file: Any = path
        if isinstance(opened_file, FileIO):
            fragment = _format(pre_buffer=False).make_fragment(path, LocalFileSystem())
        else:
            file = pa.PythonFile(opened_file, "r")
            fragment = _format(pre_buffer=True).make_fragment(file)
        fragment.ensure_complete_metadata()
        yield file, fragment


def _row_bytes(fragment: ds.ParquetFileFragment, sizes: Mapping[int, int]) -> int:
    """The size of a row if rows must be decoded in parts, since a scan decodes whole row groups; otherwise 0."""
    groups = fragment.row_groups
    largest = max(sizes[group.id] for group in groups)
    row_bytes = sum(sizes[group.id] for group in groups) // max(1, sum(group.num_rows for group in groups))
    return row_bytes if row_bytes >= _WIDE_ROW_BYTES or largest > _LARGE_GROUP_BYTES else 0


def _streamed(
    file: Any, fragment: ds.ParquetFileFragment, names: list[str], rows: int
) -> Iterator[pa.RecordBatch]:
    """All rows, in batches of the given number."""
    import pyarrow.parquet as pq

    is_local = isinstance(file, str)
    reader = pq.ParquetFile(
        file,
        metadata=fragment.metadata,
        buffer_size=_READ_BYTES if is_local else 0,
        pre_buffer=not is_local,
        page_checksum_verification=True,
    )
    groups = [group.id for group in fragment.row_groups]
    yield from reader.iter_batches(batch_size=rows, row_groups=groups, columns=names)


def _read_ahead(
    sizes: Mapping[int, int], splits: Sequence[int], begin: Callable[[list[int]], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """The batches of row groups, in order. While the reader uses one part's batches, Arrow decodes the next parts.

    Args:
      sizes: Decoded bytes of each row group.
      splits: Which row groups.
      begin: Starts reading a part's row groups. The parts in progress take at most 32 MiB, or there is only one.
    """
    begun: deque[tuple[int, Iterator[pa.RecordBatch]]] = deque()
    begun_bytes = 0
    for part in _parts(sizes, splits):
        part_bytes = sum(sizes[split] for split in part)
        while begun and begun_bytes + part_bytes > _BEGUN_BYTES:
            done_bytes, batches = begun.popleft()
            yield from batches
            begun_bytes -= done_bytes
        begun.append((part_bytes, begin(part)))
        begun_bytes += part_bytes
    while begun:
        yield from begun.popleft()[1]


def _parts(sizes: Mapping[int, int], splits: Sequence[int]) -> Iterator[list[int]]:
    """Row groups to scan together, because Arrow reads ahead in them as much as it can, whatever the memory."""
    part: list[int] = []
    part_bytes = 0
    for split in splits:
        if part and part_bytes + sizes[split] > _PART_BYTES:
            yield part
            part, part_bytes = [], 0
        part.append(split)
        part_bytes += sizes[split]
    if part:
        yield part


def _format(*, pre_buffer: bool) -> ds.ParquetFileFormat:
    """How to read files: `pre_buffer` joins small reads, which helps files behind URLs but not files on disk."""
    import pyarrow.dataset as ds

    options = ds.ParquetFragmentScanOptions(page_checksum_verification=True, pre_buffer=pre_buffer)
    return ds.ParquetFileFormat(default_fragment_scan_options=options)


@contextlib.contextmanager
def _told(path: str) -> Iterator[None]:
    """Distinguishes a filter that does not fit the columns from a damaged file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError, pa.ArrowTypeError) as error:
        raise InvalidArgumentError(f"{path!r}: the filters do not fit its columns: {error}") from error


def _expression(filters: Any) -> pc.Expression | None:
    if filters is None:
        return None
    import pyarrow.parquet as pq

    try:
        return pq.filters_to_expression(filters)
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidArgumentError(
            f"filters must be tuples such as ('x', '>', 3), lists of them, or an expression of pyarrow.compute, "
            f"got {filters!r:.80}: {error}"
        ) from error
