"""Zarr: rows of arrays and groups, chunks dealt to hosts, codecs that may run code, links, damage."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

import workbench as wb
from workbench.data import TensorSpec, ZarrDataset
from workbench.data.sharding.autoshard import auto_shard
from workbench.errors import (
    BackendUnavailable,
    DataCorruption,
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
)

zarr = pytest.importorskip("zarr", reason="Zarr is not installed: pip install -e '.[zarr]'")

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")


@pytest.fixture(scope="module", autouse=True)
def no_threads_of_zarr() -> Iterator[None]:
    yield
    zarr.core.sync.cleanup_resources()


def group(path: Path, zarr_format: int, **options: Any) -> str:
    made = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    for name, values, chunks in (("x", np.arange(120.0).reshape(60, 2), (7, 1)), ("y", np.arange(60), (10,))):
        array = made.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype, **options)
        array[:] = values
    return str(path)


def array(path: Path, values: Any, chunks: tuple[int, ...], zarr_format: int = 3, **options: Any) -> str:
    made = zarr.create_array(
        path, shape=values.shape, chunks=chunks, dtype=values.dtype, zarr_format=zarr_format, **options
    )
    made[:] = values
    return str(path)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_rows_of_arrays_and_groups_are_elements(tmp_path: Path, zarr_format: int) -> None:
    values = np.arange(90, dtype=">f4").reshape(30, 3)
    dataset = ZarrDataset(array(tmp_path / "a", values, (7, 2), zarr_format))
    assert dataset.element_spec == TensorSpec((3,), np.float32)
    np.testing.assert_array_equal(list(dataset), values)
    rows = list(ZarrDataset(group(tmp_path / "g", zarr_format), columns=["y", "x"]))
    assert [list(row) for row in rows[:1]] == [["y", "x"]]
    assert [int(row["y"]) for row in rows] == list(range(60))
    np.testing.assert_array_equal([row["x"] for row in rows], np.arange(120.0).reshape(60, 2))
    assert set(ZarrDataset(tmp_path / "g").element_spec) == {"x", "y"}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_texts_dates_and_inner_groups_are_read(tmp_path: Path, zarr_format: int) -> None:
    root = zarr.open_group(tmp_path / "g", mode="w", zarr_format=zarr_format)
    inner = root.create_group("inner")
    text = inner.create_array("t", shape=(3,), chunks=(2,), dtype=str)
    text[:] = np.array(["a", "bé", ""], object)
    (batch,) = ZarrDataset(tmp_path / "g", columns=["inner/t"]).batch(3)
    assert batch["inner/t"].tolist() == [b"a", "bé".encode(), b""]
    dates = np.array(["2020-01-01", "2021-01-01"], "M8[s]")
    assert list(ZarrDataset(array(tmp_path / "d", dates, (1,), zarr_format))) == list(dates)


def test_shards_are_the_parts_of_a_sharded_array(tmp_path: Path) -> None:
    dataset = ZarrDataset(array(tmp_path / "a", np.arange(40), (5,), shards=(20,)))
    assert [[int(x) for x in auto_shard(dataset, 2, host).dataset] for host in (0, 1)] == [
        list(range(20)),
        list(range(20, 40)),
    ]


@pytest.mark.parametrize("policy", ["FILE", "AUTO", "DATA"])
@pytest.mark.parametrize("hosts", [1, 2, 3])
def test_each_row_reaches_one_host_by_every_policy(tmp_path: Path, policy: str, hosts: int) -> None:
    options = wb.data.Options()
    options.experimental_distribute.auto_shard_policy = wb.data.AutoShardPolicy[policy]
    dataset = ZarrDataset([group(tmp_path / "a", 3), group(tmp_path / "b", 2)]).with_options(options)
    parts = [[int(row["y"]) for row in auto_shard(dataset, hosts, host).dataset] for host in range(hosts)]
    assert sorted(x for part in parts for x in part) == sorted([*range(60), *range(60)])
    assert all(parts)
    model = wb.explain_sharding(dataset.batch(6), wb.data.Shape(hosts=hosts))
    assert (model.elements, model.duplicates) == (120, 0)
    assert model.labels[(1 << 32) + 7] == "b:7"


def test_more_hosts_than_chunks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"2 chunks of rows of 1 file\(s\) cannot be divided among 3 hosts"
    ):
        list(auto_shard(ZarrDataset(array(tmp_path / "a", np.arange(8), (4,))), 3, 0).dataset)


def test_a_chunk_that_is_missing_is_its_fill_value(tmp_path: Path) -> None:
    path = array(tmp_path / "a", np.arange(1, 9), (4,), fill_value=-1)
    (Path(path) / "c" / "1").unlink()
    assert [int(x) for x in ZarrDataset(path)] == [1, 2, 3, 4, -1, -1, -1, -1]


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> Any:
        return open, (self.path, "w")


def test_codecs_that_may_run_code_are_refused(tmp_path: Path) -> None:
    folder = Path(array(tmp_path / "a", np.arange(4), (4,), 2))
    meta = json.loads((folder / ".zarray").read_text())
    for change in (
        {"dtype": "|O", "filters": [{"id": "pickle", "protocol": 5}], "compressor": None, "fill_value": None},
        {"filters": [{"id": "pickle", "protocol": 5}], "compressor": None},
        {"filters": [{"id": "json2"}]},
    ):
        (folder / ".zarray").write_text(json.dumps(meta | change))
        (folder / "0").write_bytes(pickle.dumps(Bomb(tmp_path / "executed")))
        with pytest.raises((InvalidArgumentError, DataLossError), match="a'"):
            list(ZarrDataset(folder))
    (folder / ".zarray").write_text(json.dumps(meta | {"compressor": {"id": "nothing"}}))
    with pytest.raises(InvalidArgumentError, match="codec"):
        list(ZarrDataset(folder))
    assert not (tmp_path / "executed").exists()


def test_links_and_names_that_lead_out_are_refused(tmp_path: Path) -> None:
    secret = Path(array(tmp_path / "secret", np.arange(4), (4,)))
    folder = Path(group(tmp_path / "g", 3))
    for name in ("../secret", "/secret", "x/../../secret", "..", "", "x/"):
        with pytest.raises(InvalidArgumentError, match="has no array"):
            list(ZarrDataset(folder, columns=[name]))
    chunk = folder / "y" / "c" / "0"
    chunk.unlink()
    chunk.symlink_to(secret / "c" / "0")
    with pytest.raises(InvalidArgumentError, match="is a link out of it"):
        list(ZarrDataset(folder))
    os.symlink(secret, folder / "z")
    with pytest.raises(InvalidArgumentError, match="is a link out of it"):
        list(ZarrDataset(folder, columns=["z"]))


def test_sizes_that_are_only_claimed_are_refused(tmp_path: Path) -> None:
    folder = Path(array(tmp_path / "a", np.arange(4), (4,), 2))
    meta = json.loads((folder / ".zarray").read_text())
    for change, message in (
        ({"chunks": [1 << 50]}, "a chunk takes"),
        ({"shape": [4, 1 << 50], "chunks": [4, 4]}, "a row takes"),
    ):
        (folder / ".zarray").write_text(json.dumps(meta | change))
        with pytest.raises(InvalidArgumentError, match=message):
            list(ZarrDataset(folder))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_chunk_that_is_cut_is_told_and_other_damage_is_told_or_changes_values_only(
    tmp_path: Path, zarr_format: int
) -> None:
    folder = Path(array(tmp_path / "a", np.arange(400), (400,), zarr_format))
    chunk = folder / ("0" if zarr_format == 2 else "c/0")
    good = chunk.read_bytes()
    for cut in range(0, len(good), 5):
        chunk.write_bytes(good[:cut])
        with pytest.raises(DataLossError, match="a"):
            list(ZarrDataset(folder))
    for place in range(0, len(good), 5):
        chunk.write_bytes(good[:place] + bytes([good[place] ^ 0x11]) + good[place + 1 :])
        try:
            assert len(list(ZarrDataset(folder))) == 400
        except DataLossError as error:
            assert "a" in str(error)  # noqa: PT017
    chunk.write_bytes(good + bytes(1 << 20))
    with pytest.raises(DataLossError, match="a"):
        list(ZarrDataset(folder))
    chunk.write_bytes(good)
    meta = folder / (".zarray" if zarr_format == 2 else "zarr.json")
    text = meta.read_text()
    for cut in range(0, len(text) - 2, 9):
        meta.write_text(text[:cut])
        with pytest.raises((DataLossError, InvalidArgumentError)):
            list(ZarrDataset(folder))


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no folder .*missing"):
        list(ZarrDataset(tmp_path / "missing"))
    (tmp_path / "file").touch()
    with pytest.raises(DataCorruption, match="file' is a file; Zarr is a folder"):
        list(ZarrDataset(tmp_path / "file"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataLossError, match=r"empty'.*no Zarr"):
        list(ZarrDataset(tmp_path / "empty"))
    with pytest.raises(InvalidArgumentError, match="single array; columns="):
        list(ZarrDataset(array(tmp_path / "a", np.arange(3), (2,)), columns=["x"]))
    root = zarr.open_group(tmp_path / "g", mode="w")
    with pytest.raises(InvalidArgumentError, match="has no arrays to read"):
        list(ZarrDataset(tmp_path / "g"))
    root.create_array("x", shape=(3,), chunks=(3,), dtype=int)
    root.create_array("y", shape=(4,), chunks=(3,), dtype=int)
    with pytest.raises(InvalidArgumentError, match=r"different numbers of rows: .*use columns="):
        list(ZarrDataset(tmp_path / "g"))
    root.create_array("s", shape=(), dtype=int)
    with pytest.raises(InvalidArgumentError, match="array 's' is a single value"):
        list(ZarrDataset(tmp_path / "g", columns=["s"]))
    iterator = iter(ZarrDataset([str(tmp_path / "a"), array(tmp_path / "b", np.arange(3.0), (2,))]))
    assert [int(next(iterator)) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(InvalidArgumentError, match=r"b' holds rows .*float64.*the first store .*int64"):
        next(iterator)


def test_without_zarr_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "zarr", None)
    with pytest.raises(BackendUnavailable, match=r"Zarr needs zarr: pip install .*zarr"):
        ZarrDataset("a")


def test_a_pipeline_of_zarr_travels(tmp_path: Path) -> None:
    dataset = ZarrDataset(array(tmp_path / "a", np.arange(4), (2,))).map(lambda x: x * 2)
    assert list(pickle.loads(cloudpickle.dumps(dataset))) == [0, 2, 4, 6]
