"""Arrow files and streams: rows, record batches dealt to hosts, damage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

import workbench as wb
from workbench.data import ArrowDataset, TensorSpec
from workbench.data.sharding.autoshard import auto_shard
from workbench.errors import DataLossError, InvalidArgumentError, NotFoundError

TABLE = pa.table({"x": np.arange(25), "name": [f"n{i}" for i in range(25)], "y": np.arange(25) / 2})


def file(path: Path, compression: str | None = None) -> str:
    pyarrow.feather.write_feather(TABLE, path, compression=compression or "uncompressed", chunksize=10)
    return str(path)


def stream(path: Path) -> str:
    with pa.ipc.new_stream(path, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=10)
    return str(path)


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_rows_of_a_file_are_dicts_of_columns(tmp_path: Path, compression: str | None) -> None:
    dataset = ArrowDataset(file(tmp_path / "a", compression))
    assert dataset.element_spec["name"] == TensorSpec((), "string")
    assert [(row["x"], row["name"], row["y"]) for row in dataset] == [
        (i, b"n%d" % i, i / 2) for i in range(25)
    ]
    assert [batch["y"].tolist() for batch in ArrowDataset(tmp_path / "a", ["y"]).batch(16)] == [
        [i / 2 for i in range(16)],
        [i / 2 for i in range(16, 25)],
    ]


def test_a_stream_is_read_as_a_file(tmp_path: Path) -> None:
    assert list(ArrowDataset(stream(tmp_path / "a"))) == list(ArrowDataset(file(tmp_path / "b")))
    with pytest.raises(InvalidArgumentError, match="no column 'z'"):
        list(ArrowDataset(tmp_path / "a", ["z"]))


def test_record_batches_are_dealt_and_keep_their_positions(tmp_path: Path) -> None:
    dataset = ArrowDataset([file(tmp_path / "a"), stream(tmp_path / "b"), file(tmp_path / "c", "lz4")])
    parts = [auto_shard(dataset, 2, host).dataset for host in (0, 1)]
    first, second = ([int(row["x"]) for row in part] for part in parts)
    assert first == [*range(10), *range(20, 25), *range(10), *range(20, 25)]
    assert second == [*range(10, 20), *range(25), *range(10, 20)]
    ids = [int(i) for part in parts for run in part.open(part.next_pass(provenance=True)) for i in run.ids()]
    assert sorted(ids) == [(number << 32) + row for number in range(3) for row in range(25)]


def test_the_explanation_counts_every_row(tmp_path: Path) -> None:
    model = wb.explain_sharding(ArrowDataset(file(tmp_path / "a")).batch(4), wb.data.Shape(hosts=2))
    assert (model.elements, model.duplicates, model.dropped) == (25, 0, 0)
    assert model.labels[24] == "a:24"


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no file"):
        list(ArrowDataset(tmp_path / "missing"))
    with pytest.raises(NotFoundError, match="is a folder"):
        list(ArrowDataset(tmp_path))
    (tmp_path / "old").write_bytes(b"FEA1 and so on")
    with pytest.raises(InvalidArgumentError, match="version 1"):
        list(ArrowDataset(tmp_path / "old"))
    (tmp_path / "empty").touch()
    with pytest.raises(DataLossError, match="no Arrow file"):
        list(ArrowDataset(tmp_path / "empty"))


@pytest.mark.parametrize(
    "write", [file, stream, lambda path: file(path, "lz4")], ids=["file", "stream", "lz4"]
)
def test_damage_never_breaks_the_process(tmp_path: Path, write: object) -> None:
    good = Path(write(tmp_path / "good")).read_bytes()  # type: ignore[operator]
    bad = tmp_path / "bad"
    told = 0
    contents = [good[:cut] for cut in range(0, len(good), 11)]
    contents += [
        good[:place] + bytes([good[place] ^ 0xA5]) + good[place + 1 :] for place in range(0, len(good), 2)
    ]
    for content in contents:
        bad.write_bytes(content)
        try:
            rows = list(ArrowDataset(bad))
        except (DataLossError, InvalidArgumentError) as error:
            told += "bad'" in str(error)
        else:
            assert len(rows) <= 25
    assert told > len(contents) // 8
