"""NumPy's files: rows, maps, archives, blocks dealt to hosts, pickles, damage."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

import workbench as wb
from workbench.data import Dataset, NumpyDataset, TensorSpec
from workbench.data.sharding.autoshard import auto_shard
from workbench.errors import DataCorruption, DataLossError, InvalidArgumentError, NotFoundError


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> Any:
        return open, (self.path, "w")


def saved(path: Path, array: Any) -> str:
    with path.open("wb") as file:
        np.save(file, array)
    return str(path)


def test_rows_of_an_array_are_elements(tmp_path: Path) -> None:
    array = np.arange(60, dtype=np.float32).reshape(20, 3)
    dataset = NumpyDataset(saved(tmp_path / "a", array))
    assert dataset.element_spec == TensorSpec((3,), np.float32)
    np.testing.assert_array_equal(list(dataset), array)
    np.testing.assert_array_equal(np.concatenate(list(dataset.batch(6))), array)
    shuffled = np.concatenate(list(dataset.shuffle(20, seed=1).batch(6)))
    assert shuffled.tolist() != array.tolist()
    assert sorted(shuffled.tolist()) == array.tolist()
    assert [int(x) for x in NumpyDataset(saved(tmp_path / "b", np.arange(5))).skip(1).take(3)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.array(["a", "bcd", "é"]), "object"),
        (np.array([b"a", b"bcd"]), "object"),
        (np.arange(4, dtype=">i4"), "int32"),
        (np.asfortranarray(np.arange(12.0).reshape(4, 3)), "float64"),
        (np.array(["2020-01-01", "NaT"], "M8[D]"), "datetime64[D]"),
        (np.zeros((3, 0)), "float64"),
        (np.zeros((0, 3)), "float64"),
        (np.array([True, False]), "bool"),
    ],
)
def test_every_array_without_objects_is_read(tmp_path: Path, array: Any, dtype: str) -> None:
    dataset = NumpyDataset(saved(tmp_path / "a", array))
    assert dataset.element_spec.dtype.name == dtype
    (batch,) = list(dataset.batch(9)) or [np.zeros((0, 3))]
    rows = list(dataset)
    assert all(dataset.element_spec.accepts(row) for row in rows)
    expected = (
        [text if isinstance(text, bytes) else text.encode() for text in array.tolist()]
        if dtype == "object"
        else array
    )
    np.testing.assert_array_equal(batch, expected)
    assert len(rows) == len(array)


def test_elements_do_not_point_into_the_map_and_a_shortened_file_is_told(tmp_path: Path) -> None:
    path = saved(tmp_path / "a", np.arange(1_000_000))
    iterator = iter(NumpyDataset(path).batch(1000))
    first = next(iterator)
    os.truncate(path, 4096)
    # Reading a memory map beyond the end of its file would kill this process.
    assert first.tolist() == list(range(1000))
    with pytest.raises(
        DataLossError, match=r"a' was made shorter while it was read: from 8,000,128 to 4,096 bytes"
    ):
        next(iterator)


def test_arrays_of_an_archive_are_columns(tmp_path: Path) -> None:
    x, y = np.arange(5000.0).reshape(2500, 2), np.array([f"n{i}" for i in range(2500)])
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", y=y, x=x)
        dataset = NumpyDataset(tmp_path / "a.npz")
        assert dataset.element_spec == {"y": TensorSpec((), "string"), "x": TensorSpec((2,), np.float64)}
        rows = list(dataset)
        np.testing.assert_array_equal([row["x"] for row in rows], x)
        assert [row["y"] for row in rows] == [name.encode() for name in y]
        (batch,) = NumpyDataset(tmp_path / "a.npz", columns=["x"]).batch(2500)
        assert list(batch) == ["x"]
    with pytest.raises(InvalidArgumentError, match="no array 'z'; its arrays are y, x"):
        list(NumpyDataset(tmp_path / "a.npz", columns=["z"]))
    np.savez(tmp_path / "b.npz", x=x, y=y[:3], s=np.float64(1))
    with pytest.raises(InvalidArgumentError, match="array 's' is a single value"):
        list(NumpyDataset(tmp_path / "b.npz"))
    with pytest.raises(
        InvalidArgumentError, match=r"different numbers of rows: 'x' has 2500, 'y' has 3; use columns="
    ):
        list(NumpyDataset(tmp_path / "b.npz", columns=["x", "y"]))
    np.savez(tmp_path / "c.npz", x=np.asfortranarray(x))
    with pytest.raises(InvalidArgumentError, match=r"stored column by column; save numpy\.ascontiguousarray"):
        list(NumpyDataset(tmp_path / "c.npz"))


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    objects = np.array([Bomb(tmp_path / "executed")], object)
    saved(tmp_path / "a", objects)
    np.savez(tmp_path / "b.npz", x=objects)
    (tmp_path / "c").write_bytes(pickle.dumps(Bomb(tmp_path / "executed")))
    fields = np.zeros(2, [("a", object), ("b", int)])
    saved(tmp_path / "d", fields)
    for name in ("a", "b.npz", "d"):
        with pytest.raises(InvalidArgumentError, match="pickled Python objects, which are never loaded"):
            list(NumpyDataset(tmp_path / name))
    with pytest.raises(DataLossError, match=r"c' is not a file of NumPy"):
        list(NumpyDataset(tmp_path / "c"))
    assert not (tmp_path / "executed").exists()


def member(header: bytes, data: bytes = b"") -> bytes:
    text = header + b" " * (63 - (len(header) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def test_names_in_archives_are_names_only(tmp_path: Path) -> None:
    content = io.BytesIO()
    np.save(content, np.arange(3))
    names = ["../up.npy", "/absolute.npy", "a/b.npy", "con\x01.npy"]
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for name in names:
            archive.writestr(name, content.getvalue())
    before = sorted(path for path in tmp_path.rglob("*"))
    (row, *_) = NumpyDataset(tmp_path / "a.npz")
    assert list(row) == [name.removesuffix(".npy") for name in names]
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_sizes_that_are_only_claimed_are_refused(tmp_path: Path) -> None:
    for shape, error, message in [
        (b"(1152921504606846976,)", DataLossError, "takes 9,223,372,036,854,775,936 bytes, the file has 136"),
        (b"(1, 1152921504606846976)", InvalidArgumentError, "more than 1 GiB"),
        (b"(-3,)", DataLossError, "cannot be"),
        (b"(2,)", DataLossError, "cut off or damaged"),
        (b"(0,)", DataLossError, "cut off or damaged"),
    ]:
        (tmp_path / "a").write_bytes(
            member(b"{'descr': '<i8', 'fortran_order': False, 'shape': " + shape + b", }", bytes(8))
        )
        with pytest.raises(error, match=message):
            list(NumpyDataset(tmp_path / "a"))
        with zipfile.ZipFile(tmp_path / "b.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(tmp_path / "a", "x.npy")
        with pytest.raises(error, match="array 'x'"):
            list(NumpyDataset(tmp_path / "b.npz"))


def test_an_archive_that_unpacks_to_much_is_read_in_blocks(tmp_path: Path) -> None:
    import tracemalloc

    np.savez_compressed(tmp_path / "a.npz", x=np.zeros((1 << 16, 1 << 10), np.uint8))  # 64 MiB in 64 KiB
    tracemalloc.start()
    count = sum(1 for _ in NumpyDataset(tmp_path / "a.npz").batch(64))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 1 << 10
    assert peak < 1 << 23


@pytest.mark.parametrize("policy", ["FILE", "AUTO", "DATA"])
@pytest.mark.parametrize("name", ["a", "a.npz"])
@pytest.mark.parametrize("hosts", [1, 2, 3])
def test_each_row_reaches_one_host_by_every_policy(
    tmp_path: Path, policy: str, name: str, hosts: int
) -> None:
    array = np.arange(20_000).reshape(-1, 2)
    if name == "a":
        saved(tmp_path / name, array)
    else:
        np.savez(tmp_path / name, x=array)
    options = wb.data.Options()
    options.experimental_distribute.auto_shard_policy = wb.data.AutoShardPolicy[policy]
    dataset = NumpyDataset(tmp_path / name).with_options(options)
    parts = []
    for host in range(hosts):
        part = auto_shard(dataset, hosts, host).dataset
        parts.append([int((row if name == "a" else row["x"])[0]) for row in part])
        ids = [int(i) for run in part.open(part.next_pass(provenance=True)) for i in run.ids()]
        assert [2 * i for i in ids] == parts[-1]
    assert sorted(x for part in parts for x in part) == list(range(0, 20_000, 2))
    assert max(map(len, parts)) < 2 * min(map(len, parts))


def test_few_rows_are_dealt_too_and_fewer_than_hosts_are_refused(tmp_path: Path) -> None:
    dataset = NumpyDataset(saved(tmp_path / "a", np.arange(5)))
    assert [[int(x) for x in auto_shard(dataset, 2, host).dataset] for host in (0, 1)] == [[0, 2, 4], [1, 3]]
    with pytest.raises(
        InvalidArgumentError, match=r"5 blocks of rows of 1 file\(s\) cannot be divided among 6 hosts"
    ):
        list(auto_shard(dataset, 6, 0).dataset)


def test_the_explanation_names_file_and_row(tmp_path: Path) -> None:
    paths = [saved(tmp_path / f"{name}.npy", np.arange(20)) for name in "ab"]
    model = wb.explain_sharding(NumpyDataset(paths).batch(10), wb.data.Shape(hosts=2))
    assert (model.policy, model.elements, model.duplicates) == ("AUTO→FILE", 40, 0)
    assert model.labels[(1 << 32) + 7] == "b.npy:7"


def test_a_pipeline_of_arrays_travels(tmp_path: Path) -> None:
    dataset = NumpyDataset(saved(tmp_path / "a", np.arange(4))).map(lambda row: row * 2)
    assert list(pickle.loads(cloudpickle.dumps(dataset))) == [0, 2, 4, 6]


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no file .*missing"):
        list(NumpyDataset(tmp_path / "missing"))
    with pytest.raises(NotFoundError, match="is a folder; name its files"):
        list(NumpyDataset(tmp_path))
    (tmp_path / "empty").touch()
    with pytest.raises(DataCorruption, match=r"empty' is not a file of NumPy"):
        list(NumpyDataset(tmp_path / "empty"))
    with pytest.raises(InvalidArgumentError, match="a' is a single value and has no rows"):
        list(NumpyDataset(saved(tmp_path / "a", np.float32(3))))
    with pytest.raises(InvalidArgumentError, match="save one array per field"):
        list(NumpyDataset(saved(tmp_path / "a", np.zeros(2, [("a", int)]))))
    with pytest.raises(InvalidArgumentError, match="holds a single array; columns= is for"):
        list(NumpyDataset(saved(tmp_path / "a", np.zeros(2)), columns=["x"]))
    iterator = iter(
        NumpyDataset(
            [saved(tmp_path / "a", np.arange(1)), saved(tmp_path / "b", np.arange(1.0)), str(tmp_path / "a")]
        )
    )
    assert next(iterator) == 0
    with pytest.raises(InvalidArgumentError, match=r"b' holds rows .*float64.*the first file .*int64"):
        next(iterator)
    assert next(iterator) == 0


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "packed.npz"])
def test_damage_is_told_or_changes_values_only(tmp_path: Path, name: str) -> None:
    array = np.arange(40, dtype=np.int32).reshape(20, 2)
    good = tmp_path / name
    match name:
        case "a.npy":
            saved(good, array)
        case "a.npz":
            np.savez(good, x=array)
        case _:
            np.savez_compressed(good, x=array)
    content = good.read_bytes()
    bad = tmp_path / "bad"
    for cut in range(len(content)):
        bad.write_bytes(content[:cut])
        with pytest.raises(DataLossError, match="bad'"):
            list(NumpyDataset(bad))
    told = 0
    for place in range(len(content)):
        for flip in (0x01, 0x20, 0x80):
            bad.write_bytes(content[:place] + bytes([content[place] ^ flip]) + content[place + 1 :])
            try:
                read = list(NumpyDataset(bad))
            except (DataLossError, InvalidArgumentError) as error:
                told += "bad'" in str(error)
            else:
                # An archive has checksums; a single array has none.
                rows = read if name == "a.npy" else [row["x"] for row in read]
                assert name == "a.npy" or np.array_equal(rows, array)
    assert told > len(content)


@pytest.mark.parametrize("code", [0x110000, 0xD800, 0xFFFFFFFF])
def test_text_that_is_no_unicode_is_told(tmp_path: Path, code: int) -> None:
    path = Path(saved(tmp_path / "a", np.array(["ab", "cd"])))
    path.write_bytes(path.read_bytes()[:-4] + code.to_bytes(4, "little"))
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.write(path, "x.npy")
    for name in ("a", "b.npz"):
        with pytest.raises(DataLossError, match=rf"{name}'.* holds text that is not Unicode"):
            list(NumpyDataset(tmp_path / name))
        with pytest.raises(DataLossError, match="not Unicode"):
            list(NumpyDataset(tmp_path / name).batch(2))


def test_shuffling_a_map_reads_only_what_is_taken(tmp_path: Path) -> None:
    dataset = NumpyDataset(saved(tmp_path / "a", np.zeros((1 << 16, 1 << 8), np.uint8)))
    runs = list(dataset.with_source(dataset.source, ()).open(dataset.next_pass()))
    assert [run.rows for run in runs] == [range(1 << 16)]
    assert isinstance(dataset, Dataset)
