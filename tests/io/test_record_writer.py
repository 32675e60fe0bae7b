"""Record files that are written: what readers find in them, and what is there when writing fails."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.data import Dataset, TFRecordDataset
from workbench.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, StorageFull
from workbench.io import TFRecordOptions, TFRecordWriter


@pytest.mark.parametrize("compression", [None, "", "GZIP", "ZLIB"])
@given(records=st.lists(st.binary(max_size=60), max_size=6))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, compression: str | None, records: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("records") / "a"
    with TFRecordWriter(path, compression) as writer:
        for record in records:
            writer.write(record)
    assert list(TFRecordDataset(path, compression)) == records


def test_text_and_scalars_are_records_and_nothing_else_is(tmp_path: Path) -> None:
    with TFRecordWriter(tmp_path / "a") as writer:
        for record in ("é", bytearray(b"b"), np.array(b"c", object), np.bytes_(b"d")):
            writer.write(record)
        with pytest.raises(TypeError, match="bytes or text, got int"):
            writer.write(3)
        with pytest.raises(TypeError, match="got list"):
            writer.write([b"a"])
    assert list(TFRecordDataset(tmp_path / "a")) == ["é".encode(), b"b", b"c", b"d"]


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_what_was_flushed_can_be_read_before_the_end(tmp_path: Path, compression: str) -> None:
    with TFRecordWriter(tmp_path / "a", TFRecordOptions(compression)) as writer:
        writer.write(b"one")
        writer.flush()
        assert next(iter(TFRecordDataset(tmp_path / "a", compression))) == b"one"


def test_options_reach_the_compressor(tmp_path: Path) -> None:
    for level in (0, 9):
        with TFRecordWriter(
            tmp_path / str(level), TFRecordOptions("ZLIB", compression_level=level)
        ) as writer:
            writer.write(bytes(10_000))
    assert (tmp_path / "0").stat().st_size > 10_000 > 100 > (tmp_path / "9").stat().st_size
    with pytest.raises(InvalidArgumentError, match="LZ4"):
        TFRecordOptions("LZ4")


def test_a_closed_writer_takes_no_record_and_closes_again(tmp_path: Path) -> None:
    writer = TFRecordWriter(tmp_path / "a")
    writer.close()
    writer.close()
    for use in (lambda: writer.write(b"a"), writer.flush):
        with pytest.raises(FailedPreconditionError, match="is closed"):
            use()
    with pytest.raises(NotFoundError, match="cannot write"):
        TFRecordWriter(tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is full")
@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_a_full_disk_is_told_and_leaves_no_file_open(compression: str) -> None:
    writer = TFRecordWriter("/dev/full", compression)
    writer.write(b"a")
    with pytest.raises(StorageFull, match=r"/dev/full.*make room"):
        writer.close()
    assert writer._file.closed
    with pytest.raises(StorageFull, match="/dev/full"):
        wb.data.experimental.TFRecordWriter("/dev/full", compression).write(Dataset.from_tensors(b"a"))


def test_a_dataset_that_fails_leaves_the_former_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    writer = wb.data.experimental.TFRecordWriter(path)
    writer.write(Dataset.from_tensor_slices([b"old"]))

    def second_is_bad(number: np.int64) -> bytes:
        if number == 1:
            raise ValueError("a bad element")
        return b"new"

    with pytest.raises(ValueError, match="a bad element"):
        writer.write(Dataset.range(3).map(second_is_bad))
    assert list(TFRecordDataset(path)) == [b"old"]
    assert os.listdir(tmp_path) == ["a"]


def test_a_dataset_replaces_a_file_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    wb.data.experimental.TFRecordWriter(tmp_path / "link").write(Dataset.from_tensor_slices([b"x", b"y"]))
    assert (tmp_path / "link").is_symlink()
    assert list(TFRecordDataset(tmp_path / "target")) == [b"x", b"y"]


def test_only_datasets_of_texts_are_written(tmp_path: Path) -> None:
    writer = wb.data.experimental.TFRecordWriter(tmp_path / "a", "GZIP")
    with pytest.raises(TypeError, match="takes a Dataset, got list"):
        writer.write([b"a"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="serialize_tensor"):
        writer.write(Dataset.range(2))
    writer.write(Dataset.range(2).map(wb.io.serialize_tensor))
    read = [wb.io.parse_tensor(record, np.int64) for record in TFRecordDataset(tmp_path / "a", "GZIP")]
    assert read == [0, 1]
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o666 & ~_umask(tmp_path)


def _umask(folder: Path) -> int:
    (folder / "plain").touch()
    return 0o777 & ~((folder / "plain").stat().st_mode | 0o111)
