"""What `explain_sharding` says of every source is what replicas get."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from workbench.data import (
    SHARD_HINT,
    ArrowDataset,
    AutoShardPolicy,
    CsvDataset,
    Dataset,
    FixedLengthRecordDataset,
    ImageFolderDataset,
    NumpyDataset,
    Options,
    ParquetDataset,
    Shape,
    TextLineDataset,
    TFRecordDataset,
    ZarrDataset,
    distribute_for_host,
    explain_sharding,
    from_dask,
    from_hugging_face,
    from_torch,
)
from workbench.data.experimental import SqlDataset
from workbench.errors import InvalidArgumentError, NotFoundError
from workbench.io import TFRecordWriter

FILES, ROWS = 4, 6
TOTAL = FILES * ROWS
Make = Callable[[Path], tuple[Dataset, Callable[[Any], Any]]]
"""A dataset of `TOTAL` different numbers out of files in a folder, and how to find them in a batch of its elements."""


@pytest.fixture(scope="module", autouse=True)
def nothing_stays() -> Iterator[None]:
    """Ends the threads that zarr keeps, and drops files in memory."""
    yield
    if zarr := sys.modules.get("zarr"):
        zarr.core.sync.cleanup_resources()
    fsspec.filesystem("memory").store.clear()


def _paths(folder: Path, end: str, write: Callable[[str, range], None]) -> list[str]:
    paths = [str(folder / f"{number}{end}") for number in range(FILES)]
    for number, path in enumerate(paths):
        write(path, range(number * ROWS, (number + 1) * ROWS))
    return paths


def _texts(folder: Path) -> list[str]:
    return _paths(
        folder, ".txt", lambda path, rows: Path(path).write_text("".join(f"{row}\n" for row in rows)) and None
    )


def _numbers(batch: Any) -> Any:
    return np.array([int(text) for text in batch])


def _text(folder: Path) -> Any:
    return TextLineDataset(_texts(folder)), _numbers


def _records(folder: Path) -> Any:
    def write(path: str, rows: range) -> None:
        with TFRecordWriter(path) as writer:
            for row in rows:
                writer.write(str(row).encode())

    return TFRecordDataset(_paths(folder, ".tfrecord", write)), _numbers


def _fixed(folder: Path) -> Any:
    def write(path: str, rows: range) -> None:
        Path(path).write_bytes(b"".join(b"%04d" % row for row in rows))

    return FixedLengthRecordDataset(_paths(folder, ".bin", write), 4), _numbers


def _parquet(folder: Path) -> Any:
    def write(path: str, rows: range) -> None:
        pa.parquet.write_table(pa.table({"x": list(rows)}), path, row_group_size=4)

    return ParquetDataset(_paths(folder, ".parquet", write)), lambda batch: batch["x"]


def _arrow(folder: Path) -> Any:
    def write(path: str, rows: range) -> None:
        pa.feather.write_feather(pa.table({"x": list(rows)}), path, chunksize=4, compression="uncompressed")

    return ArrowDataset(_paths(folder, ".feather", write)), lambda batch: batch["x"]


def _csv(folder: Path) -> Any:
    def write(path: str, rows: range) -> None:
        Path(path).write_text("x,y\n" + "".join(f"{row},0\n" for row in rows))

    return CsvDataset(_paths(folder, ".csv", write)), lambda batch: batch["x"]


def _npy(folder: Path) -> Any:
    paths = _paths(folder, ".npy", lambda path, rows: np.save(path, np.arange(rows.start, rows.stop)))
    return NumpyDataset(paths), lambda batch: batch


def _npz(folder: Path) -> Any:
    paths = _paths(folder, ".npz", lambda path, rows: np.savez(path, x=np.arange(rows.start, rows.stop)))
    return NumpyDataset(paths), lambda batch: batch["x"]


def _images(folder: Path) -> Any:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install -e '.[images]'")
    for row in range(TOTAL):
        place = folder / "abcd"[row // ROWS]
        place.mkdir(exist_ok=True)
        image.fromarray(np.full((2, 2), row, np.uint8)).save(place / f"{row:02}.png")
    return ImageFolderDataset(folder, size=(2, 2), mode="L"), lambda batch: batch[0][:, 0, 0, 0]


def _zarr(folder: Path) -> Any:
    zarr = pytest.importorskip("zarr", reason="Zarr is not installed: pip install -e '.[zarr]'")

    def write(path: str, rows: range) -> None:
        array = zarr.create_array(path, shape=(ROWS,), chunks=(4,), dtype="i8")
        array[:] = np.array(rows)

    return ZarrDataset(_paths(folder, ".zarr", write)), lambda batch: batch


def _urls(folder: Path) -> Any:
    files = fsspec.filesystem("memory")
    for path in _texts(folder):
        files.pipe_file(path, Path(path).read_bytes())
    return TextLineDataset([f"memory://{path}" for path in sorted(map(str, folder.glob("*.txt")))]), _numbers


def _parquet_urls(folder: Path) -> Any:
    files = fsspec.filesystem("memory")
    _parquet(folder)
    paths = sorted(map(str, folder.glob("*.parquet")))
    for path in paths:
        files.pipe_file(path, Path(path).read_bytes())
    return ParquetDataset([f"memory://{path}" for path in paths]), lambda batch: batch["x"]


def _hugging_face(folder: Path) -> Any:
    datasets = pytest.importorskip(
        "datasets", reason="Hugging Face datasets is not installed: pip install datasets"
    )
    return from_hugging_face(datasets.Dataset.from_dict({"x": np.arange(TOTAL)})), lambda batch: batch["x"]


class _MapStyle:
    """Has the interface of PyTorch's map-style datasets."""

    def __len__(self) -> int:
        return TOTAL

    def __getitem__(self, index: int) -> Any:
        return np.int64(index)


class _IterableStyle:
    """Has the interface of PyTorch's iterable-style datasets."""

    def __iter__(self) -> Iterator[Any]:
        return iter(np.arange(TOTAL))


def _map_style(folder: Path) -> Any:
    return from_torch(_MapStyle()), lambda batch: batch


def _iterable_style(folder: Path) -> Any:
    return from_torch(_IterableStyle()), lambda batch: batch


def _dask_array(folder: Path) -> Any:
    return from_dask(da.arange(TOTAL, chunks=ROWS)), lambda batch: batch


def _dask_bag(folder: Path) -> Any:
    return from_dask(db.from_sequence(range(TOTAL), npartitions=FILES)), lambda batch: batch


def _dask_frame(folder: Path) -> Any:
    frame = dd.from_pandas(pd.DataFrame({"x": np.arange(TOTAL)}), npartitions=FILES)
    return from_dask(frame), lambda batch: batch["x"]


def _sql(folder: Path) -> Any:
    connection = sqlite3.connect(folder / "rows.db")
    connection.execute("create table rows (x integer)")
    connection.executemany("insert into rows values (?)", [(row,) for row in range(TOTAL)])
    connection.commit()
    connection.close()
    data = SqlDataset("sqlite", str(folder / "rows.db"), "select x from rows order by x", (np.int64,))
    return data, lambda batch: batch[0]


def _range(folder: Path) -> Any:
    return Dataset.range(TOTAL), lambda batch: batch


def _slices(folder: Path) -> Any:
    return Dataset.from_tensor_slices({"x": np.arange(TOTAL)}), lambda batch: batch["x"]


def _shuffled(folder: Path) -> Any:
    return Dataset.range(TOTAL).shuffle(TOTAL, seed=3), lambda batch: batch


def _generator(folder: Path) -> Any:
    return Dataset.from_generator(lambda: iter(range(TOTAL)), output_types=np.int64), lambda batch: batch


def _interleaved(folder: Path) -> Any:
    return Dataset.from_tensor_slices(_texts(folder)).interleave(TextLineDataset, cycle_length=2), _numbers


def _listed(folder: Path) -> Any:
    _texts(folder)
    return Dataset.list_files(str(folder / "*.txt"), shuffle=False).flat_map(TextLineDataset), _numbers


def _listed_parquet(folder: Path) -> Any:
    _parquet(folder)
    names = Dataset.list_files(str(folder / "*.parquet"), shuffle=False)
    return ParquetDataset(names), lambda batch: batch["x"]


def _zipped_files(folder: Path) -> Any:
    lines, _ = _text(folder)
    records, _ = _records(folder)
    return Dataset.zip((lines, records)), lambda batch: _numbers(batch[1])


def _files_and_range(folder: Path) -> Any:
    lines, _ = _text(folder)
    return Dataset.zip((lines, Dataset.range(TOTAL))), lambda batch: _numbers(batch[0])


def _concatenated_files(folder: Path) -> Any:
    texts = _texts(folder)
    return TextLineDataset(texts[:2]).concatenate(TextLineDataset(texts[2:])), _numbers


def _file_and_range(folder: Path) -> Any:
    lines = TextLineDataset(_texts(folder)[:2]).map(np.int64)
    return lines.concatenate(Dataset.range(2 * ROWS, TOTAL)), lambda batch: batch


def _sampled(folder: Path) -> Any:
    texts = _texts(folder)
    parts = [TextLineDataset(texts[:2]), TextLineDataset(texts[2:])]
    return Dataset.sample_from_datasets(parts, [0.5, 0.5], seed=1), _numbers


def _filtered(folder: Path) -> Any:
    return Dataset.range(2 * TOTAL).filter(lambda x: x % 2 == 0), lambda batch: batch


SOURCES: dict[str, Make] = {
    make.__name__[1:]: make
    for make in (
        _text,
        _records,
        _fixed,
        _parquet,
        _arrow,
        _csv,
        _npy,
        _npz,
        _images,
        _zarr,
        _urls,
        _parquet_urls,
        _hugging_face,
        _map_style,
        _iterable_style,
        _dask_array,
        _dask_bag,
        _dask_frame,
        _sql,
        _range,
        _slices,
        _shuffled,
        _generator,
        _interleaved,
        _listed,
        _listed_parquet,
        _zipped_files,
        _files_and_range,
        _concatenated_files,
        _file_and_range,
        _sampled,
        _filtered,
    )
}
IN_MEMORY = {
    "hugging_face",
    "map_style",
    "iterable_style",
    "sql",
    "range",
    "slices",
    "shuffled",
    "generator",
    "files_and_range",
    "file_and_range",
    "filtered",
}
"""Sources that have no files to deal."""


def _received(dataset: Dataset, shape: Shape, numbers: Callable[[Any], Any]) -> list[list[list[int]]]:
    """The numbers that each replica gets in each step, from what replicas read."""
    hosts = []
    for host in range(shape.hosts):
        pipeline = distribute_for_host(
            dataset, num_hosts=shape.hosts, host=host, replicas_per_host=shape.replicas_per_host
        )
        steps = [
            [[int(x) for x in numbers(value)] for value in values]  # type: ignore[union-attr]
            for values in pipeline.values_for(range(shape.replicas_per_host))
        ]
        hosts.append(steps)
    nothing: list[list[int]] = [[]] * shape.replicas_per_host
    return [
        [part for steps in hosts for part in (steps[number] if number < len(steps) else nothing)]
        for number in range(max(map(len, hosts)))
    ]


@pytest.mark.parametrize("shape", [Shape(1, 2), Shape(2, 2), Shape(2, 1), Shape(4, 1)], ids=str)
@pytest.mark.parametrize("policy", ["AUTO", "FILE", "DATA", "OFF", "HINT"])
@pytest.mark.parametrize("source", SOURCES)
def test_replicas_get_what_is_claimed(source: str, policy: str, shape: Shape, tmp_path: Path) -> None:
    dataset, numbers = SOURCES[source](tmp_path)
    if policy == "HINT":
        dataset = dataset.shard(SHARD_HINT, SHARD_HINT)
    options = Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy[policy]
    dataset = dataset.batch(5).with_options(options)
    if policy == "FILE" and source in IN_MEMORY and shape.hosts > 1:
        with pytest.raises(NotFoundError, match="FILE"):
            explain_sharding(dataset, shape)
        return
    if (
        source in ("concatenated_files", "sampled") and shape.hosts == 4 and policy in ("AUTO", "FILE")
    ):  # two files each
        with pytest.raises(InvalidArgumentError, match="cannot be divided among"):
            explain_sharding(dataset, shape)
        return
    claimed = explain_sharding(dataset, shape)
    got = _received(dataset, shape, numbers)
    everything = [number for step in got for part in step for number in part]

    assert [[len(part) for part in step] for step in got] == [
        [cell.rows for cell in step] for step in claimed.steps
    ]
    assert claimed.counts == tuple(sum(len(step[r]) for step in got) for r in range(shape.replicas))
    assert claimed.limit == ""
    assert claimed.policy_used == {"AUTO": "DATA" if source in IN_MEMORY else "FILE"}.get(policy, policy)
    if any(cell.ids for step in claimed.steps for cell in step):
        pairs = {
            pair
            for step, cells in zip(got, claimed.steps, strict=True)
            for part, cell in zip(step, cells, strict=True)
            for pair in zip(cell.ids, part, strict=True)
        }
        # An id always stands for the same element, and for no other one.
        assert len({id for id, _ in pairs}) == len({number for _, number in pairs}) == len(pairs)
        assert claimed.elements == len(set(everything))
        assert claimed.duplicates == len(everything) - len(set(everything))
        if claimed.dropped is not None and source != "filtered":
            assert claimed.dropped == TOTAL - len(set(everything))


@pytest.mark.parametrize("policy", ["AUTO", "DATA", "OFF"])
def test_hosts_that_read_the_same_are_gone_through_once(policy: str) -> None:
    """64 hosts of 8 replicas would call the function 64 times as often as a single host."""
    calls = 0

    def counted(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return x

    data = Dataset.range(2048).map(counted).batch(1024)
    calls = 0
    claimed = explain_sharding(data, Shape(hosts=64, replicas_per_host=8), policy=policy)

    assert claimed.replicas == 512
    assert calls < 4096


def test_cutting_a_batch_of_many_files_takes_no_time_for_each_row_of_each_file() -> None:
    """The parts of a batch are looked up: cutting it 512 times once took a walk over all of them each time."""
    from workbench.data.stages.grouping.batches import Joined

    class Counting(list[Any]):
        looked_at = 0

        def __getitem__(self, index: Any) -> Any:
            Counting.looked_at += 1
            return super().__getitem__(index)

    parts = Counting(run for run in Dataset.range(4096).batch(2).open(Dataset.range(1).next_pass()))
    assert sum(map(len, parts)) == 2048
    joined = Joined(parts)
    for start in range(0, 2048, 4):
        assert len(joined.cut(start, start + 4)) == 4
    assert Counting.looked_at <= 2 * 2048
