"""Arrow's own files (IPC, also called Feather) and streams: record batches are the splits of a file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from workbench.data.dataset import Dataset
from workbench.data.formats.columns import ColumnReading
from workbench.data.formats.damage import damage_told
from workbench.data.formats.splits import SplitReader
from workbench.data.sources.files import file_names
from workbench.data.sources.opening import opened
from workbench.data.sources.urls import Url
from workbench.data.tables import Run
from workbench.errors import InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

_MAGIC: Final = b"ARROW1"
_OLD_FEATHER: Final = b"FEA1"


class ArrowDataset(Dataset):
    """Rows of Arrow IPC files (Feather of version 2) and Arrow streams, as dicts of their columns.

    Columns become arrays as with `ParquetDataset`. `AutoShardPolicy.FILE` distributes record batches among hosts; a
    stream, which can only be read from its beginning, goes to one host.

    Args:
      filenames: A name or URL, a list of them, or a dataset of them.
      columns: Names of the columns to read; None for all.
      defaults: Replacements for null, by column.

    Raises:
      TypeError: if the names are not text. Reading raises `InvalidArgumentError` for columns that a file lacks or that
        no array can hold, `DataLossError` for a damaged file or a null without default, and `NotFoundError` for a
        missing file.
    """

    def __init__(
        self,
        filenames: Any,
        columns: Sequence[str] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        reading = ColumnReading(
            None if columns is None else tuple(dict.fromkeys(columns)), dict(defaults or {})
        )
        super().__init__(ArrowFiles(file_names(filenames), reading=reading))


@dataclass(frozen=True, eq=False, kw_only=True)
class ArrowFiles(SplitReader):
    """Rows of Arrow files and streams.

    Attributes:
      reading: Which columns, and what replaces null.
    """

    name: ClassVar[str] = "Arrow rows"
    split_names: ClassVar[str] = "record batches"
    reading: ColumnReading

    def element_spec(self) -> Any:
        """The nested spec of an element, according to the first file."""
        path = self.first_file()
        with _opened(path) as content:
            return self.reading.specs(content.schema, path)

    def count_splits(self, path: str) -> int:
        """How many record batches a file has; a stream counts as one."""
        with _opened(path) as content:
            return content.num_record_batches if _is_file(content) else 1

    def read_splits(self, path: str, splits: Sequence[int]) -> Iterator[Run]:
        """The rows of some record batches."""
        specs = self.element_spec()
        with _opened(path) as content:
            self.reading.expect(specs, content.schema, path)
            first = 0
            for wanted, batch in _batches(path, content, list(specs), set(splits)):
                if wanted and batch.num_rows:
                    # Arrow would follow offsets that point outside the buffer.
                    batch.select(list(specs)).validate(full=True)
                    yield self.reading.run(batch, list(specs), range(first, first + batch.num_rows), path)
                first += batch.num_rows


def _batches(
    path: str, content: Any, names: list[str], splits: set[int]
) -> Iterator[tuple[bool, pa.RecordBatch]]:
    """The batches, and whether each is wanted. Of unwanted ones, only one column is read, to get the number of rows."""
    import pyarrow as pa

    if not _is_file(content):
        for batch in content:
            yield True, batch
        return
    one = pa.ipc.IpcReadOptions(included_fields=[content.schema.get_field_index(names[0])])
    with _source(path) as again:
        counting = pa.ipc.open_file(again, options=one)
        for split in range(max(splits) + 1):
            wanted = split in splits
            yield wanted, (content if wanted else counting).get_batch(split)


def _is_file(content: Any) -> bool:
    return hasattr(content, "num_record_batches")


@contextlib.contextmanager
def _source(path: str) -> Iterator[pa.NativeFile]:
    """A file for Arrow to read. Not memory-mapped, because truncating a mapped file kills the process that reads it."""
    import pyarrow as pa

    if isinstance(path, Url):
        with opened(path) as file:
            yield pa.PythonFile(file, "r")
    else:
        with contextlib.closing(pa.OSFile(path)) as source:
            yield source


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Any]:
    import pyarrow as pa

    with opened(path) as file:
        start = file.read(len(_MAGIC))
    if start.startswith(_OLD_FEATHER):
        raise InvalidArgumentError(
            f"{path!r} is a Feather file of version 1; write it as version 2: "
            "pyarrow.feather.write_feather(table, path)"
        )
    with damage_told(path, "Arrow"), _source(path) as source:
        yield pa.ipc.open_file(source) if start == _MAGIC else pa.ipc.open_stream(source)
