"""Arrays as NumPy saves them: rows of `.npy` files, and of the arrays in an `.npz` archive side by side."""

from __future__ import annotations

import contextlib
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from typing import IO, Any, ClassVar, Final

from workbench.data.dataset import Dataset
from workbench.data.formats.columns import columns_layout
from workbench.data.formats.mapped import MappedTable, native
from workbench.data.formats.npy_header import MAGIC, NpyHeader, size_of
from workbench.data.formats.splits import PositionedTable, SplitReader
from workbench.data.sources.files import file_names
from workbench.data.sources.opening import opened
from workbench.data.structure import LEAF, Structure
from workbench.data.tables import Run
from workbench.errors import DataLossError, InvalidArgumentError

_ARCHIVE: Final = b"PK\x03\x04"
_ENDING: Final = ".npy"


class NumpyDataset(Dataset):
    """Rows of arrays that NumPy saved: arrays from `.npy` files, dicts of arrays by name from `.npz` files.

    A local `.npy` file is mapped into memory, so shuffling chooses rows before any is read; the file must not be
    truncated while it is in use. `AutoShardPolicy.FILE` distributes blocks of rows among hosts. Text is bytes. Pickled
    objects are never loaded.

    Args:
      filenames: A name or URL, a list of them, or a dataset of them.
      columns: Which arrays of `.npz` files to read; None for all, which must then have equally many rows.

    Raises:
      TypeError: if the names are not text. Reading raises `InvalidArgumentError` for arrays that are missing or cannot
        be read row by row, `DataLossError` for a damaged file, and `NotFoundError` for a missing file.
    """

    def __init__(self, filenames: Any, columns: Sequence[str] | None = None) -> None:
        names = None if columns is None else tuple(dict.fromkeys(columns))
        super().__init__(NumpyFiles(file_names(filenames), columns=names))


@dataclass(frozen=True, eq=False, kw_only=True)
class NumpyFiles(SplitReader):
    """Rows of arrays in files.

    Attributes:
      columns: Which arrays of an archive to read; None for all.
    """

    name: ClassVar[str] = "NumPy rows"
    split_names: ClassVar[str] = "blocks of rows"
    columns: tuple[str, ...] | None = None

    def element_spec(self) -> Any:
        """The nested spec of an element, according to the first file."""
        with self._opened(self.first_file()) as content:
            return content.spec()

    def count_splits(self, path: str) -> int:
        """How many blocks of rows a file has."""
        with self._opened(path) as content:
            return -(-content.rows // content.split_rows)

    def read_splits(self, path: str, splits: Sequence[int]) -> Iterator[Run]:
        """The rows of some blocks."""
        expected = self.element_spec()
        with self._opened(path) as content:
            if content.spec() != expected:
                raise InvalidArgumentError(
                    f"{path!r} holds rows {content.spec()}, the first file {expected}; files that are read together "
                    "hold arrays of one shape and dtype"
                )
            size, rows = content.split_rows, content.rows
            blocks = (range(split * size, min(rows, (split + 1) * size)) for split in splits)
            if content.can_map:
                table = content.mapped()
                whole = len(splits) == -(-rows // size)
                yield from (Run(table, block) for block in ([range(rows)] if whole and rows else blocks))
            else:
                yield from map(content.block, blocks)

    @contextlib.contextmanager
    def _opened(self, path: str) -> Iterator[_Content]:
        with opened(path) as file, _damage_told(path):
            start = file.read(len(MAGIC))
            file.seek(0)
            if start.startswith(_ARCHIVE):
                with zipfile.ZipFile(file) as archive:
                    yield _Content.of_archive(archive, self.columns, path)
            elif start != MAGIC:
                raise DataLossError(f"{path!r} is not a file of NumPy (.npy, .npz), or damaged", file=path)
            elif self.columns is not None:
                raise InvalidArgumentError(f"{path!r} holds a single array; columns= is for .npz files")
            else:
                yield _Content.of_array(file, path)


@dataclass(slots=True)
class _Content:
    """The open arrays of one file."""

    path: str
    headers: list[NpyHeader]
    streams: list[IO[bytes]]
    structure: Structure
    can_map: bool

    @staticmethod
    def of_array(file: Any, path: str) -> _Content:
        header = NpyHeader.read(file, f"{path!r}")
        header.expect_bytes(size_of(file))
        can_map = isinstance(file, FileIO) and header.rows * header.row_bytes > 0
        if not can_map:
            _expect_rows(header)
        return _Content(path, [header], [file], LEAF, can_map)

    @staticmethod
    def of_archive(archive: zipfile.ZipFile, columns: Sequence[str] | None, path: str) -> _Content:
        members = _members(archive, path)
        names = list(members) if columns is None else list(columns)
        for name in names:
            if name not in members:
                raise InvalidArgumentError(
                    f"{path!r} has no array {name!r}; its arrays are {', '.join(members)}"
                )
        if not names:
            raise InvalidArgumentError(f"{path!r} has no arrays to read")
        headers, streams = [], []
        for name in names:
            stream = archive.open(members[name])
            header = NpyHeader.read(stream, f"{path!r}, array {name!r}")
            header.expect_bytes(members[name].file_size)
            _expect_rows(header)
            headers.append(header)
            streams.append(stream)
        if len({header.rows for header in headers}) > 1:
            counts = ", ".join(
                f"{name!r} has {header.rows}" for name, header in zip(names, headers, strict=True)
            )
            raise InvalidArgumentError(
                f"{path!r}: arrays have different numbers of rows: {counts}; use columns="
            )
        order, structure = columns_layout(names)
        return _Content(path, [headers[i] for i in order], [streams[i] for i in order], structure, False)

    @property
    def rows(self) -> int:
        return self.headers[0].rows

    @property
    def split_rows(self) -> int:
        return min(header.split_rows() for header in self.headers)

    def spec(self) -> Any:
        return self.structure.pack([header.spec for header in self.headers])

    def mapped(self) -> MappedTable:
        return MappedTable.of(self.streams[0], self.headers[0], self.path)

    def block(self, rows: range) -> Run:
        """Some rows. Callers request blocks in ascending order."""
        columns = []
        for header, stream in zip(self.headers, self.streams, strict=True):
            stream.seek(header.start + rows.start * header.row_bytes)
            data = _read(stream, len(rows) * header.row_bytes)
            if rows.stop == header.rows:
                stream.read(1)  # an archive compares checksums at the end
            columns.append(native(header.array(data, len(rows)), header.what, self.path))
        return Run(PositionedTable(columns, self.structure, rows), range(len(rows)))


def _expect_rows(header: NpyHeader) -> None:
    if header.fortran and len(header.shape) > 1 and header.rows:
        raise InvalidArgumentError(
            f"{header.what} is stored column by column; save numpy.ascontiguousarray of it"
        )


def _members(archive: zipfile.ZipFile, path: str) -> dict[str, zipfile.ZipInfo]:
    """The arrays of an archive, by name. Extracts nothing, so names cannot lead to other files."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(_ENDING)
        if name in members:
            raise InvalidArgumentError(f"{path!r} has two arrays {name!r}")
        members[name] = info
    return members


def _read(stream: IO[bytes], count: int) -> bytes:
    """All available bytes up to `count`; a raw file may return fewer per read."""
    data = stream.read(count)
    if len(data) in (0, count):
        return data
    parts = [data]
    missing = count - len(data)
    while missing and (data := stream.read(missing)):
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)


@contextlib.contextmanager
def _damage_told(path: str) -> Iterator[None]:
    try:
        yield
    except DataLossError as error:  # from a header, possibly of an archive's member
        error.file = path
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError) as error:
        if isinstance(error, InvalidArgumentError):
            raise
        raise DataLossError(
            f"{path!r}: {error}; the file is damaged or cut off, or no file of NumPy", file=path
        ) from error
    except (NotImplementedError, RuntimeError) as error:  # zipfile's error for unknown codecs and encryption
        raise InvalidArgumentError(f"{path!r} cannot be read: {error}; save it with numpy.savez") from error
