"""Errors of damaged files name the file as an attribute too, whatever wrote it."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import workbench as wb
from workbench.data import (
    ArrowDataset,
    CsvDataset,
    Dataset,
    FixedLengthRecordDataset,
    ImageFolderDataset,
    NumpyDataset,
    ParquetDataset,
    TextLineDataset,
    TFRecordDataset,
    service,
)
from workbench.data.experimental import SqlDataset
from workbench.errors import DataCorruption, InvalidArgumentError
from workbench.io import TFRecordWriter

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})


def _records(path: Path) -> None:
    with TFRecordWriter(path) as writer:
        writer.write(b"some record")


def _archive(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, x=np.arange(5))


def _array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.arange(5))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


WRITTEN: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Dataset]]] = {
    "records": (_records, TFRecordDataset),
    "compressed": (
        lambda path: path.write_bytes(gzip.compress(b"line\n" * 9)),
        lambda path: TextLineDataset(path, "GZIP"),
    ),
    "parquet": (lambda path: pa.parquet.write_table(TABLE, path), ParquetDataset),
    "feather": (lambda path: pa.feather.write_feather(TABLE, path), ArrowDataset),
    "npy": (_array, NumpyDataset),
    "fixed length": (_array, lambda path: FixedLengthRecordDataset(path, 8)),
    "npz": (_archive, NumpyDataset),
    "csv": (lambda path: path.write_bytes(b'a,b\n1,"2\n3,4"\n1,2'), CsvDataset),
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_file_that_is_cut_off_is_named(kind: str, tmp_path: Path) -> None:
    write, read = WRITTEN[kind]
    path = tmp_path / "data"
    write(path)
    _cut(path)
    with pytest.raises(DataCorruption) as caught:
        list(read(path))
    assert caught.value.file == str(path)


def test_a_picture_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    wrong = tmp_path / "cat" / "1.png"
    wrong.write_bytes(b"no picture")
    with pytest.raises(DataCorruption) as caught:
        list(ImageFolderDataset(tmp_path, size=(2, 2)))
    assert caught.value.file == str(wrong)


@pytest.mark.parametrize("kept_bytes", [5000, 0])
def test_a_damaged_database_is_named(kept_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "data"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table numbers (n integer)")
        connection.executemany("insert into numbers values (?)", [(n,) for n in range(3000)])
        connection.commit()
    path.write_bytes(path.read_bytes()[:kept_bytes] or b"no database" * 99)
    with pytest.raises(DataCorruption) as caught:
        list(SqlDataset("sqlite", path, "select n from numbers", [np.int64]))
    assert caught.value.file == str(path)


def test_a_null_is_one_of_its_file(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"b": pa.array([1, None], pa.int64())}), tmp_path / "data")
    with pytest.raises(DataCorruption, match="has a null at row 1") as caught:
        list(ParquetDataset(tmp_path / "data"))
    assert caught.value.file == str(tmp_path / "data")


@pytest.mark.parametrize("which", ["dataset.json", "shard"])
def test_damaged_files_of_stored_datasets_are_named(which: str, tmp_path: Path) -> None:
    Dataset.range(9).save(str(tmp_path / "stored"))
    files = [path for path in (tmp_path / "stored").rglob("*") if path.is_file() and path.stat().st_size]
    damaged = next(path for path in files if (path.name == "dataset.json") == (which == "dataset.json"))
    _cut(damaged)
    with pytest.raises(DataCorruption) as caught:
        list(Dataset.load(str(tmp_path / "stored")))
    assert caught.value.file == str(damaged)


def test_text_of_an_array_that_is_none_is_one_of_its_file(tmp_path: Path) -> None:
    np.save(tmp_path / "texts.npy", np.array(["ab", "cd"]))
    path = tmp_path / "texts.npy"
    path.write_bytes(path.read_bytes()[:-4] + b"\xff\xff\xff\xff")
    for dataset in (NumpyDataset(path), NumpyDataset(path).shuffle(2, seed=1), NumpyDataset(path).batch(2)):
        with pytest.raises(DataCorruption, match="text that is not Unicode") as caught:
            list(dataset)
        assert caught.value.file == str(path)


def test_a_record_that_is_no_block_of_elements_is_one_of_its_file(tmp_path: Path) -> None:
    Dataset.range(9).save(str(tmp_path / "stored"))
    files = [path for path in (tmp_path / "stored").rglob("*") if path.is_file() and path.stat().st_size]
    shard = next(path for path in files if path.name != "dataset.json")
    with TFRecordWriter(shard) as writer:
        writer.write(b"whole, but no block")
    with pytest.raises(DataCorruption, match="is not a block of elements") as caught:
        list(Dataset.load(str(tmp_path / "stored")))
    assert (caught.value.file, caught.value.record) == (str(shard), 0)


@pytest.mark.parametrize(
    "use",
    [
        lambda path: Dataset.range(3).save(path),
        Dataset.load,
        lambda path: list(Dataset.range(3).snapshot(path)),
        lambda path: list(Dataset.range(3).cache(path)),
        ImageFolderDataset,
        lambda path: wb.Checkpoint(a=1).save(path),
        lambda path: wb.CheckpointManager(wb.Checkpoint(a=1), path, 3),
        wb.latest_checkpoint,
        lambda path: service.DispatchServer(
            service.DispatcherConfig(work_dir=path, fault_tolerant_mode=True)
        ),
    ],
)
def test_a_folder_that_cannot_be_is_named(use: Callable[[str], Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"'a\\x00b(-1)?' has a zero byte"):
        use("a\0b")
    with pytest.raises(TypeError, match=r"(is a text or an? (os\.Path|Path)\w*|must be a path), got .*5"):
        use(5)  # type: ignore[arg-type]
