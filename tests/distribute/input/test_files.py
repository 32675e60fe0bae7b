"""Files of every format, read by the hosts of a strategy: each row arrives once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import zarr

import workbench as wb
from workbench.data import (
    ArrowDataset,
    CsvDataset,
    Dataset,
    ImageFolderDataset,
    NumpyDataset,
    ParquetDataset,
    ZarrDataset,
)

ROWS = 40
TABLE = pa.table({"x": np.arange(ROWS)})


@pytest.fixture(scope="module")
def hosts() -> Iterator[Any]:
    with wb.connect(hosts=2, replicas_per_host=1, processes=False):
        yield wb.MultiWorkerMirroredStrategy()
    zarr.core.sync.cleanup_resources()  # its threads live as long as the process


def of_csv(folder: Path) -> Dataset:
    for name, rows in (("a", range(25)), ("b", range(25, ROWS))):
        (folder / name).write_text("x\n" + "".join(f"{row}\n" for row in rows))
    return CsvDataset([folder / "a", folder / "b"])


def of_npy(folder: Path) -> Dataset:
    np.save(folder / "a.npy", np.arange(ROWS))
    return NumpyDataset(folder / "a.npy").map(lambda x: {"x": x})


def of_npz(folder: Path) -> Dataset:
    np.savez(folder / "a.npz", x=np.arange(ROWS))
    return NumpyDataset(folder / "a.npz")


def of_images(folder: Path) -> Dataset:
    (folder / "a").mkdir()
    for row in range(ROWS):
        PIL.Image.new("L", (1, 1), row).save(folder / "a" / f"{row}.png")
    return ImageFolderDataset(folder, mode="L").map(lambda image, label: {"x": image[0, 0, 0]})


def of_zarr(folder: Path) -> Dataset:
    rows = zarr.create_array(folder / "a", shape=(ROWS,), chunks=(7,), dtype="int64")
    rows[:] = np.arange(ROWS)
    return ZarrDataset(folder / "a").map(lambda x: {"x": x})


def of_parquet(folder: Path) -> Dataset:
    pa.parquet.write_table(TABLE, folder / "a", row_group_size=7)
    return ParquetDataset(folder / "a")


def of_arrow(folder: Path) -> Dataset:
    pyarrow.feather.write_feather(TABLE, folder / "a", chunksize=7)
    return ArrowDataset(folder / "a")


@pytest.mark.parametrize("make", [of_csv, of_npy, of_npz, of_images, of_zarr, of_parquet, of_arrow])
def test_each_row_arrives_once_and_where_the_explanation_says(
    hosts: Any, tmp_path: Path, make: Callable[[Path], Dataset]
) -> None:
    dataset = make(tmp_path).map(lambda row: row["x"]).batch(8)
    steps = [
        [part.tolist() for part in hosts.local_results(step)] for step in hosts.distribute_dataset(dataset)
    ]
    assert sorted(x for step in steps for part in step for x in part) == list(range(ROWS))
    assert all(any(step[replica] for step in steps) for replica in (0, 1))
    model = wb.explain_sharding(dataset, hosts)
    assert (model.policy, model.elements, model.duplicates, model.dropped) == ("AUTO→FILE", ROWS, 0, 0)
    assert [[len(cell.ids) for cell in step] for step in model.steps] == [
        [len(part) for part in step] for step in steps
    ]
