"""Zarr: rows of chunked arrays, and of the arrays of a group side by side."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from workbench.backends.numpy import STRING
from workbench.data.dataset import Dataset
from workbench.data.formats.columns import columns_layout
from workbench.data.formats.damage import any_damage_told, in_one_line
from workbench.data.formats.mapped import native
from workbench.data.formats.npy_header import MOST_ROW_BYTES
from workbench.data.formats.splits import PositionedTable, SplitReader
from workbench.data.sources.files import file_names
from workbench.data.sources.opening import missing
from workbench.data.sources.urls import Url, shown
from workbench.data.spec import TensorSpec
from workbench.data.structure import LEAF, Structure
from workbench.data.tables import Run
from workbench.errors import (
    DataLossError,
    InvalidArgumentError,
    LibraryMissing,
    NotFoundError,
    WorkbenchError,
)
from workbench.extras import install_command

if TYPE_CHECKING:
    from workbench.data.formats.zarr.checked_store import CheckedStore

_CODECS: Final = set(
    "adler32 astype bitround blosc bytes bz2 crc32 crc32c delta fixedscaleoffset fletcher32 gzip lz4 lzma packbits "
    "quantize sharding_indexed shuffle transpose vlen-array vlen-bytes vlen-utf8 zlib zstd".split()
)
"""Codecs that only compute. Others, such as "pickle", may run code from a file."""
_BLOCK_BYTES: Final = 1 << 28


class ZarrDataset(Dataset):
    """Rows of Zarr arrays (formats 2 and 3): arrays from an array, dicts of arrays by name from a group.

    Rows are along the first dimension. `AutoShardPolicy.FILE` distributes chunks of rows among hosts, by the array
    whose chunks have the most rows. Text is bytes. The format defines a missing chunk to hold the fill value, so a lost
    chunk goes unnoticed. Codecs that may run code, such as pickle, are rejected, and so are links out of the folder.
    Needs zarr: `pip install 'replica-workbench[zarr]'`.

    Args:
      stores: The folder or URL of an array or group, a list of them, or a dataset of them. For a group on a server that
        lists no folders, such as plain HTTP, name the arrays (`columns`) or consolidate its metadata.
      columns: Which arrays of groups to read, also in inner groups ("a/b"); None for all directly in the group.

    Raises:
      LibraryMissing: if zarr is missing.
      TypeError: if the names are not text. Reading raises `InvalidArgumentError` for arrays that are missing or cannot
        be read row by row, `DataLossError` for a damaged store, and `NotFoundError` for a missing one.
    """

    def __init__(self, stores: Any, columns: Sequence[str] | None = None) -> None:
        _zarr()
        names = None if columns is None else tuple(dict.fromkeys(columns))
        super().__init__(ZarrStores(file_names(stores), columns=names))


@dataclass(frozen=True, eq=False, kw_only=True)
class ZarrStores(SplitReader):
    """Rows of Zarr arrays.

    Attributes:
      columns: Which arrays of a group to read; None for all.
    """

    name: ClassVar[str] = "Zarr rows"
    split_names: ClassVar[str] = "chunks of rows"
    columns: tuple[str, ...] | None = None

    def element_spec(self) -> Any:
        """The nested spec of an element, according to the first store."""
        path = self.first_file()
        with _damage_told(path):
            return _Content.of(path, self.columns).spec()

    def count_splits(self, path: str) -> int:
        """How many chunks of rows a store has."""
        with _damage_told(path):
            content = _Content.of(path, self.columns)
            return -(-content.rows // content.split_rows)

    def read_splits(self, path: str, splits: Sequence[int]) -> Iterator[Run]:
        """The rows of some chunks."""
        expected = self.element_spec()
        with _damage_told(path):
            content = _Content.of(path, self.columns)
        if content.spec() != expected:
            raise InvalidArgumentError(
                f"{path!r} holds rows {content.spec()}, the first store {expected}; stores that are read together "
                "hold arrays of one shape and dtype"
            )
        for split in splits:
            for rows in content.blocks(split):
                with _damage_told(path):
                    run = content.read(rows)
                yield run


@dataclass(frozen=True, slots=True)
class _Content:
    """The arrays of one store."""

    path: str
    arrays: list[Any]
    structure: Structure

    @staticmethod
    def of(path: str, columns: Sequence[str] | None) -> _Content:
        zarr = _zarr()
        store, node = _opened(path)
        if isinstance(node, zarr.Array):
            if columns is not None:
                raise InvalidArgumentError(f"{path!r} is a single array; columns= is for groups")
            arrays, structure = {"": node}, LEAF
        else:
            arrays = _chosen(node, columns, path)
            order, structure = columns_layout(list(arrays))
            names = list(arrays)
            arrays = {names[index]: arrays[names[index]] for index in order}
        for name, array in arrays.items():
            what = f"{path!r}, array {name!r}" if name else f"{path!r}"
            store.chunks[name] = _checked(array, what)
        if len({array.shape[0] for array in arrays.values()}) > 1:
            counts = ", ".join(f"{name!r} has {array.shape[0]}" for name, array in arrays.items())
            raise InvalidArgumentError(
                f"{path!r}: arrays have different numbers of rows: {counts}; use columns="
            )
        return _Content(path, list(arrays.values()), structure)

    @property
    def rows(self) -> int:
        return int(self.arrays[0].shape[0])

    @property
    def split_rows(self) -> int:
        return int(max(1, *((array.shards or array.chunks)[0] for array in self.arrays)))

    def spec(self) -> Any:
        return self.structure.pack([TensorSpec(a.shape[1:], _dtype(a.dtype)) for a in self.arrays])

    def blocks(self, split: int) -> Iterator[range]:
        """The rows of a chunk, in parts that fit in memory."""
        start, stop = split * self.split_rows, min(self.rows, (split + 1) * self.split_rows)
        step = max(1, _BLOCK_BYTES // max(1, *map(_row_bytes, self.arrays)))
        yield from (range(first, min(stop, first + step)) for first in range(start, stop, step))

    def read(self, rows: range) -> Run:
        columns = []
        for array in self.arrays:
            values = np.asarray(array[rows.start : rows.stop])
            text = values.dtype.kind == "T"
            what = f"{self.path!r}, array {array.name!r}"
            columns.append(native(values.astype(STRING) if text else values, what, self.path))
        return Run(PositionedTable(columns, self.structure, rows), range(len(rows)))


def _opened(path: str) -> tuple[CheckedStore, Any]:
    """A store, and the array or group in it."""
    from workbench.data.formats.zarr.checked_store import CheckedStore, Folder
    from workbench.data.formats.zarr.remote import RemoteStore

    zarr = _zarr()
    if isinstance(path, Url):
        store = CheckedStore(RemoteStore(path), shown(path))
        try:
            return store, zarr.open(store, mode="r")
        except FileNotFoundError:
            raise NotFoundError(
                f"{path!r} holds no array or group of Zarr; check the URL, as seen by the host that reads it"
            ) from None
    if not os.path.isdir(path):
        if os.path.exists(path):
            raise DataLossError(
                f"{path!r} is a file; Zarr is a folder, unpack it first if it is packed", file=path
            )
        raise missing(path, "folder")
    store = CheckedStore(Folder(path, read_only=True), path)
    return store, zarr.open(store, mode="r")


def _chosen(group: Any, columns: Sequence[str] | None, path: str) -> dict[str, Any]:
    found = dict(group.arrays()) if columns is None else {}
    for name in columns or ():
        if all(part not in ("", ".", "..") for part in name.split("/")):
            with contextlib.suppress(KeyError):
                found[name] = group[name]
        if not hasattr(found.get(name), "chunks"):
            raise InvalidArgumentError(f"{path!r} has no array {name!r}{_others(group)}")
    if not found:
        raise InvalidArgumentError(f"{path!r} has no arrays to read")
    return found


def _others(group: Any) -> str:
    try:
        return f"; its arrays are {', '.join(name for name, _ in group.arrays())}"
    except InvalidArgumentError:  # its server cannot list files
        return ""


def _checked(array: Any, what: str) -> Any:
    """Rejects an array that cannot be read safely row by row; returns the form of its chunks."""
    from workbench.data.formats.zarr.checked_store import Chunks

    names = _codec_names(array)
    for name in names:
        if name not in _CODECS:
            raise InvalidArgumentError(
                f"{what} has the codec {name!r}, which workbench does not use: it may run code of the file, or "
                f"nobody has checked that it does not; write it with one of {', '.join(sorted(_CODECS))}"
            )
    if array.dtype.kind not in "biufcSUmMTO" or (array.dtype.kind == "O" and "vlen-utf8" not in names):
        raise InvalidArgumentError(f"{what}: arrays of {array.dtype} cannot be read; write numbers or text")
    if not array.shape:
        raise InvalidArgumentError(f"{what} is a single value and has no rows")
    chunk_bytes = math.prod(array.shards or array.chunks) * array.dtype.itemsize
    for size, part in ((_row_bytes(array), "row"), (chunk_bytes, "chunk")):
        if size > MOST_ROW_BYTES:
            raise InvalidArgumentError(
                f"{what}: a {part} takes {size:,} bytes, more than 1 GiB; write smaller ones"
            )
    text = array.dtype.kind in "TO"
    return Chunks(
        MOST_ROW_BYTES if text else chunk_bytes, "blosc" in names and "sharding_indexed" not in names
    )


def _codec_names(array: Any) -> list[str]:
    if array.metadata.zarr_format == 2:
        codecs = [*(array.metadata.filters or ()), *filter(None, [array.metadata.compressor])]
        return [codec.codec_id for codec in codecs]
    names, codecs = [], list(array.metadata.codecs)
    while codecs:
        codec = codecs.pop()
        names.append(codec.to_dict()["name"].removeprefix("numcodecs."))
        codecs += [*getattr(codec, "codecs", ()), *getattr(codec, "index_codecs", ())]
    return names


def _row_bytes(array: Any) -> int:
    return int(math.prod(array.shape[1:]) * array.dtype.itemsize)


def _dtype(dtype: Any) -> Any:
    return STRING if dtype.kind in "SUTO" else np.dtype(dtype).newbyteorder("=")


def _zarr() -> ModuleType:
    try:
        import zarr
    except ImportError as error:
        raise LibraryMissing(f"Zarr needs zarr: {install_command('zarr')}") from error
    return zarr


@contextlib.contextmanager
def _damage_told(path: str) -> Iterator[None]:
    with any_damage_told(path, "the store is damaged, or no Zarr"):
        try:
            yield
        except WorkbenchError:
            raise
        except Exception as error:
            said = in_one_line(error)
            if "codec" in said.lower():
                raise InvalidArgumentError(f"{path!r} cannot be read: {said}") from error
            raise
