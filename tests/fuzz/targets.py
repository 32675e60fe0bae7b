"""What is fuzzed: for each reader its good inputs, and a check of what it makes of a damaged one."""

from __future__ import annotations

import gzip
import itertools
import random
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tests.fuzz import reference
from workbench.data import Dataset, FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from workbench.errors import WorkbenchError
from workbench.io.checksums import crc32c, masked_crc32c
from workbench.io.compression import WINDOW_BITS

_PACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}


class WrongData(AssertionError):
    """A reader gave something else than is there."""


class Target(ABC):
    """A reader."""

    name: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        """Prepares good inputs; files go into `folder`."""
        self.folder = folder
        self.path = folder / "input"
        self.inputs = self.good_inputs()

    @abstractmethod
    def good_inputs(self) -> list[bytes]:
        """Inputs that are damaged then."""

    @abstractmethod
    def check(self, data: bytes) -> None:
        """Reads `data`.

        Raises:
          WrongData: if the reader gives something else than is there.
          WorkbenchError: if the input is refused.
        """

    def repaired(self, data: bytes, rng: random.Random) -> bytes:
        """`data` with checksums that are right, so that what is behind them is reached; some of the time."""
        return data

    def written(self, data: bytes) -> str:
        """The name of a file that holds `data`."""
        overwrite(self.path, data)
        return str(self.path)


def overwrite(path: Path, data: bytes) -> None:
    """Puts `data` into a file that may exist. Cut to nothing first, it would be brought to the disk each time."""
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(data)
        file.truncate()


def elements(dataset: Any) -> tuple[list[Any], bool]:
    """What a dataset gives up to its first error, and whether there is one; what follows must end or fail, too."""
    found: list[Any] = []
    iterator = iter(dataset)
    try:
        found.extend(iterator)
    except WorkbenchError:
        for _ in range(3):
            try:
                next(iterator, None)
            except WorkbenchError:
                continue
        return found, True
    return found, False


def _same(found: Any, expected: Any, what: str) -> None:
    if found != expected:
        raise WrongData(f"{what}: {found!r:.300} is read where {expected!r:.300} stands")


def _record(data: bytes) -> bytes:
    length = len(data).to_bytes(8, "little")
    crcs = [masked_crc32c(part).to_bytes(4, "little") for part in (length, data)]
    return length + crcs[0] + data + crcs[1]


class _Compressed(Target):
    compression: ClassVar[str] = ""
    block_bytes = 300  # so that everything crosses a block's end

    def content(self, data: bytes) -> bytes | None:
        """The file's content; None if it cannot be decompressed."""
        if not self.compression:
            return data
        try:
            return reference.unpacked(data, WINDOW_BITS[self.compression])
        except reference.Damaged:
            return None


class Records(_Compressed):
    """Record files."""

    name = "tfrecord"

    def good_inputs(self) -> list[bytes]:
        rng = random.Random(1)
        self.known = [rng.randbytes(size) for size in (0, 1, 11, 12, 16, 100, 280, 300, 900, 16, 16)]
        files = [self.known, self.known[:3], [b"same"] * 40]
        self.known.append(b"same")
        return [_PACK[self.compression](b"".join(map(_record, file))) for file in files]

    def check(self, data: bytes) -> None:
        content = self.content(data)
        for block_bytes in (self.block_bytes, None):
            dataset = TFRecordDataset(self.written(data), self.compression, block_bytes, strict=True)
            found, failed = elements(dataset)
            if content is not None:
                _same((found, failed), reference.records(content), f"blocks of {block_bytes}")
            elif not failed or not set(found) <= set(self.known):
                raise WrongData("damaged compressed data are read to the end, or give other records")

    def repaired(self, data: bytes, rng: random.Random) -> bytes:
        if self.compression or len(data) < 12 or rng.random() < 0.7:
            return data
        length = rng.choice((len(data) - 16, len(data), 1 << 30, 1 << 60, (1 << 64) - 1, 0)) % (1 << 64)
        head = length.to_bytes(8, "little")
        return head + masked_crc32c(head).to_bytes(4, "little") + data[12:]


class GzipRecords(Records):
    """Record files, compressed."""

    name = "tfrecord-gzip"
    compression = "GZIP"


class ZlibRecords(Records):
    """Record files, compressed."""

    name = "tfrecord-zlib"
    compression = "ZLIB"


class Lines(_Compressed):
    """Text files."""

    name = "text"

    def good_inputs(self) -> list[bytes]:
        text = b"one\r\n\r\n\ntwo\rthree\r" + b"long " * 200 + b"\n\r\n" + b"x\n" * 100 + b"last"
        return [_PACK[self.compression](each) for each in (text, text * 3, b"\n", b"\r", text[:30])]

    def check(self, data: bytes) -> None:
        content = self.content(data)
        for block_bytes in (7, self.block_bytes, None):
            found, failed = elements(TextLineDataset(self.written(data), self.compression, block_bytes))
            if content is None and not failed:
                raise WrongData("damaged compressed data are read to the end")
            if content is not None:
                _same((found, failed), (reference.lines(content), False), f"blocks of {block_bytes}")


class GzipLines(Lines):
    """Text files, compressed."""

    name = "text-gzip"
    compression = "GZIP"


class Pieces(_Compressed):
    """Files of fixed-length records."""

    name = "fixed-length"

    def good_inputs(self) -> list[bytes]:
        data = random.Random(2).randbytes(1000)
        return [_PACK[self.compression](each) for each in (data[:15], data[:365], data, data[:5])]

    def check(self, data: bytes) -> None:
        content = self.content(data)
        for header, footer in ((0, 0), (3, 2)):
            dataset = FixedLengthRecordDataset(
                self.written(data), 10, header, footer, self.block_bytes, self.compression
            )
            found, failed = elements(dataset)
            expected = None if content is None else reference.pieces(content, 10, header, footer)
            _same(failed, expected is None, "whether the file has a wrong size")
            if expected is not None:
                _same(found, expected, f"header {header}, footer {footer}")


class GzipPieces(Pieces):
    """Files of fixed-length records, compressed."""

    name = "fixed-length-gzip"
    compression = "GZIP"


class Database(Target):
    """SQLite files."""

    name = "sql"

    def good_inputs(self) -> list[bytes]:
        import sqlite3

        path = self.folder / "made"
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("CREATE TABLE t (a INTEGER, b TEXT, c REAL)")
            rows = [(n, f"text {n} " * (n % 7), n / 3) for n in range(200)]
            connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.close()
        return [path.read_bytes()]

    def check(self, data: bytes) -> None:
        from workbench.data.experimental import SqlDataset

        types = (np.int64, "string", np.float64)
        found, _ = elements(
            SqlDataset("sqlite", self.written(data), "SELECT a, b, c FROM t", types).take(500)
        )
        for a, b, c in found:
            _same((a.dtype, type(b), c.dtype), (np.int64, bytes, np.float64), "types of a row")


class _Columns(Target):
    def check(self, data: bytes) -> None:
        elements(self.dataset(self.written(data)).batch(16))

    @abstractmethod
    def dataset(self, path: str) -> Dataset:
        """The dataset of the file."""

    def table(self) -> Any:
        """Rows to write."""
        import pyarrow as pa

        return pa.table(
            {
                "a": list(range(100)),
                "b": [f"text {n % 5}" for n in range(100)],
                "c": [n / 3 for n in range(100)],
            }
        )


class Parquet(_Columns):
    """Parquet files."""

    name = "parquet"

    def good_inputs(self) -> list[bytes]:
        import pyarrow.parquet as pq

        for name, options in (("plain", {"compression": "none"}), ("snappy", {"row_group_size": 30})):
            pq.write_table(self.table(), self.folder / name, **options)
        # Long values take another path through the reader.
        wide = self.table().append_column("d", [[b"%d" % (n % 10) * 300 for n in range(100)]])
        pq.write_table(wide, self.folder / "wide", row_group_size=30, use_dictionary=False)
        return [(self.folder / name).read_bytes() for name in ("plain", "snappy", "wide")]

    def dataset(self, path: str) -> Dataset:
        from workbench.data import ParquetDataset

        return ParquetDataset(path)


class Arrow(_Columns):
    """Arrow files and streams."""

    name = "arrow"

    def good_inputs(self) -> list[bytes]:
        import pyarrow as pa

        files = []
        for make in (pa.ipc.new_file, pa.ipc.new_stream):
            sink = pa.BufferOutputStream()
            with make(sink, self.table().schema) as writer:
                writer.write_table(self.table(), max_chunksize=30)
            files.append(sink.getvalue().to_pybytes())
        return files

    def dataset(self, path: str) -> Dataset:
        from workbench.data import ArrowDataset

        return ArrowDataset(path)


class Csv(_Columns):
    """CSV files."""

    name = "csv"

    def good_inputs(self) -> list[bytes]:
        rows = "".join(f'{n},"text, ""{n}""",{n / 3}\n' for n in range(50))
        return [f"a,b,c\n{rows}".encode(), f"a,b,c\r\n{rows}".replace("\n", "\r\n").encode()]

    def dataset(self, path: str) -> Dataset:
        from workbench.data import CsvDataset

        return CsvDataset(path)


class Npy(_Columns):
    """NumPy files."""

    name = "npy"

    def good_inputs(self) -> list[bytes]:
        import io

        files = []
        for array in (np.arange(60).reshape(20, 3), np.arange(20, dtype=">f4"), np.array(["a", "bc"] * 10)):
            for save in (np.save, np.savez, np.savez_compressed):
                stream = io.BytesIO()
                save(stream, array)
                files.append(stream.getvalue())
        return files

    def dataset(self, path: str) -> Dataset:
        from workbench.data import NumpyDataset

        return NumpyDataset(path)


class Stored(Target):
    """Folders of `Dataset.save`, of which one file is damaged: all are checked, so nothing else may come out."""

    name = "saved"

    def good_inputs(self) -> list[bytes]:
        self.elements = [(n, b"text %d" % n) for n in range(60)]
        dataset = Dataset.range(60).map(lambda n: (n, b"text %d" % n))
        dataset.save(self.folder / "stored", shard_func=lambda n, text: n % 2)
        files = [path for path in sorted((self.folder / "stored").rglob("*")) if path.is_file()]
        # The damaged file's number comes first.
        self.files = [(path, path.read_bytes()) for path in files]
        return [bytes([number]) + content for number, (_, content) in enumerate(self.files)]

    def check(self, data: bytes) -> None:
        path, good = self.files[data[0] % len(self.files) if data else 0]
        overwrite(path, data[1:])
        try:
            found, failed = elements(Dataset.load(self.folder / "stored"))
            rows = [(int(n), text) for n, text in found]
            if not set(rows) <= set(self.elements) or (not failed and sorted(rows) != self.elements):
                raise WrongData(f"{path.name}: {rows!r:.300}")
        finally:
            overwrite(path, good)


class Position(Target):
    """Files of `iterator.save`."""

    name = "position"

    def good_inputs(self) -> list[bytes]:
        self.dataset = Dataset.range(50).shuffle(10, seed=4).batch(3)
        iterator = iter(self.dataset)
        for _ in range(4):
            next(iterator)
        iterator.save(self.path)
        self.rest = [batch.tolist() for batch in iterator]
        return [self.path.read_bytes()]

    def repaired(self, data: bytes, rng: random.Random) -> bytes:
        if rng.random() < 0.5:
            return data
        body = data.partition(b"\n")[0]
        return body + b"\n%08x\n" % crc32c(body)

    def check(self, data: bytes) -> None:
        iterator = iter(self.dataset)
        iterator.restore(self.written(data))
        rest = [batch.tolist() for batch in itertools.islice(iterator, 100)]
        if data == self.inputs[0]:
            _same(rest, self.rest, "what follows")
