"""Parquet files: rows, columns, filters, row groups dealt to hosts, damage."""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import workbench as wb
from workbench.data import Dataset, ParquetDataset, TensorSpec
from workbench.data.formats import parquet
from workbench.data.sharding.autoshard import auto_shard
from workbench.errors import DataCorruption, DataLossError, InvalidArgumentError, NotFoundError

Read = list[dict[str, Any]]


def written(path: Path, columns: dict[str, Any], rows_per_group: int = 10, **options: Any) -> str:
    pq.write_table(pa.table(columns), path, row_group_size=rows_per_group, **options)
    return str(path)


def numbers(path: Path, first: int, count: int, rows_per_group: int = 10, **options: Any) -> str:
    x = np.arange(first, first + count)
    return written(path, {"x": x, "name": [f"n{i}" for i in x], "y": x / 2}, rows_per_group, **options)


def test_rows_are_dicts_of_columns_with_the_types_of_the_file(tmp_path: Path) -> None:
    path = numbers(tmp_path / "a", 5, 25)
    dataset = ParquetDataset(path)
    read = list(dataset)
    assert dataset.element_spec == {
        "x": TensorSpec((), np.int64),
        "name": TensorSpec((), "string"),
        "y": TensorSpec((), np.float64),
    }
    assert [(row["x"], row["name"], row["y"]) for row in read] == [
        (i, b"n%d" % i, i / 2) for i in range(5, 30)
    ]
    assert list(ParquetDataset(Path(path)).take(1)) == list(ParquetDataset([path]).take(1)) == read[:1]


def test_batches_go_over_row_groups_and_files(tmp_path: Path) -> None:
    paths = [numbers(tmp_path / "a", 0, 25), numbers(tmp_path / "b", 25, 14)]
    batches = list(ParquetDataset(paths, columns=["x"]).batch(16))
    assert [batch["x"].tolist() for batch in batches] == [
        list(range(16)),
        list(range(16, 32)),
        list(range(32, 39)),
    ]
    names = Dataset.from_tensor_slices(paths).skip(1)
    assert [row["x"] for row in ParquetDataset(names, ["x"])] == list(range(25, 39))


def test_every_type_that_has_an_array_is_read_and_agrees_with_its_spec(tmp_path: Path) -> None:
    columns = {
        "flag": pa.array([True, False, True]),
        "small": pa.array([1, 2, 3], pa.int8()),
        "half": pa.array(np.array([1, 2, 3], np.float16)),
        "blob": pa.array([b"a\0", b"", b"c"], pa.large_binary()),
        "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
        "when": pa.array([0, None, 2], pa.timestamp("ms")),
        "day": pa.array([0, 1, 2], pa.date32()),
        "pair": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int32(), 2)),
        "list": pa.array([[1.0], [2.0], [3.0]], pa.list_(pa.float32())),
        "table": pa.array([[[1], [2]]] * 3, pa.list_(pa.list_(pa.int32(), 1), 2)),
        "gap": pa.array([1.0, None, 3.0]),
    }
    dataset = ParquetDataset(written(tmp_path / "a", columns))
    rows = list(dataset)
    (batch,) = dataset.batch(3)
    for name, spec in dataset.element_spec.items():
        assert all(spec.accepts(row[name]) for row in rows), name
        assert spec.batched(3).accepts(batch[name]), name
    assert batch["blob"].tolist() == [b"a\0", b"", b"c"]
    assert batch["kind"].tolist() == [b"u", b"v", b"u"]
    assert np.isnat(batch["when"]).tolist() == np.isnan(batch["gap"]).tolist() == [False, True, False]
    assert batch["pair"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert batch["table"].shape == (3, 2, 1)


def test_columns_come_in_the_order_asked_for_and_missing_ones_are_told(tmp_path: Path) -> None:
    path = numbers(tmp_path / "a", 0, 3)
    assert [list(row.items()) for row in ParquetDataset(path, columns=["y", "x"]).take(1)] == [
        [("y", 0.0), ("x", 0)]
    ]
    with pytest.raises(InvalidArgumentError, match=r"no column 'z'; its columns are x, name, y"):
        list(ParquetDataset(path, columns=["z"]))


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        ([("x", ">=", 17)], list(range(17, 40))),
        ([[("x", "<", 3)], [("name", "in", ["n30", "n31"])]], [0, 1, 2, 30, 31]),
        (pc.field("x").isin([0, 16, 32]), [0, 16, 32]),
        ([("y", "==", 1000.0)], []),
    ],
)
def test_filters_choose_rows_whose_positions_stay_known(
    tmp_path: Path, filters: Any, kept: list[int]
) -> None:
    path = numbers(tmp_path / "a", 0, 40)
    dataset = ParquetDataset(path, columns=["y"], filters=filters)
    assert [row["y"] * 2 for row in dataset] == kept
    current = dataset.next_pass(provenance=True)
    assert [int(i) for run in dataset.open(current) for i in run.ids()] == kept


def test_row_groups_without_a_match_are_not_read(tmp_path: Path) -> None:
    path = Path(
        numbers(tmp_path / "a", 0, 40, compression="none", use_dictionary=False, write_page_checksum=True)
    )
    start = pq.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset
    damaged = bytearray(path.read_bytes())
    damaged[start + 40 : start + 60] = b"\xff" * 20  # inside the first row group
    path.write_bytes(damaged)
    assert [row["x"] for row in ParquetDataset(path, filters=[("x", ">", 35)])] == [36, 37, 38, 39]
    with pytest.raises(DataLossError, match=r"a'.*the file is damaged"):
        list(ParquetDataset(path))


def test_rows_are_decoded_some_at_a_time_where_columns_that_are_read_are_wide(tmp_path: Path) -> None:
    images = list(np.zeros((200, 8192)))  # 64 KiB a row
    columns = {"label": np.arange(200), "image": images, "imagery": np.arange(200)}
    path = written(tmp_path / "a", columns, 200, use_dictionary=False)

    def runs(names: list[str], filters: Any = None) -> list[int]:
        return [len(run) for run in ParquetDataset(path, names, filters).source.read_splits(path, [0])]

    assert runs(["label"]) == [200]
    assert runs(["imagery"]) == [200]
    assert sum(runs(["label", "image"])) == 200
    assert max(runs(["label", "image"])) < 100
    assert runs(["label"], [("imagery", "<", 150)]) == [150]


def test_row_groups_are_decoded_ahead_in_their_order_and_in_bounded_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parquet, "_BEGUN_BYTES", 32)
    monkeypatch.setattr(parquet, "_PART_BYTES", 12)
    sizes = dict(enumerate([5, 5, 5, 20, 12, 12, 12, 40, 1, 33, 6, 6, 6]))
    begun: list[int] = []
    ended: list[int] = []

    def batches(part: list[int]) -> Iterator[Any]:
        yield from part
        ended.extend(part)

    def begin(part: list[int]) -> Iterator[Any]:
        begun.extend(part)
        return batches(part)

    order, newest = [], []
    for group in parquet._read_ahead(sizes, list(sizes), begin):
        order.append(group)
        held = [sizes[each] for each in begun if each not in ended]
        assert sum(held) <= 32 or len(held) == 1
        newest.append(begun[-1])
    assert order == list(sizes)
    assert newest == [2, 2, 3, 4, 5, 6, 6, 7, 8, 9, 12, 12, 12]


@pytest.fixture
def one_group_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_PART_BYTES", 1)


@pytest.mark.usefixtures("one_group_a_part")
@pytest.mark.parametrize("filters", [None, [("y", ">=", 15.0)]])
def test_parts_that_are_decoded_ahead_keep_order_and_positions(tmp_path: Path, filters: Any) -> None:
    dataset = ParquetDataset(numbers(tmp_path / "a", 0, 95), ["x"], filters)
    runs = list(dataset.open(dataset.next_pass(provenance=True)))
    expected = list(range(30 if filters else 0, 95))
    assert [int(x) for run in runs for x in run.gather()[0]] == expected
    assert [int(number) for run in runs for number in run.ids()] == expected
    assert len(runs) == (7 if filters else 10)


@pytest.mark.usefixtures("one_group_a_part")
def test_damage_in_a_part_that_is_decoded_ahead_is_told_at_its_place(tmp_path: Path) -> None:
    path = Path(
        numbers(tmp_path / "a", 0, 40, compression="none", use_dictionary=False, write_page_checksum=True)
    )
    start = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    damaged = bytearray(path.read_bytes())
    damaged[start + 40 : start + 60] = b"\xff" * 20
    path.write_bytes(damaged)
    rows = iter(ParquetDataset([path, numbers(tmp_path / "b", 40, 5)]))
    assert [next(rows)["x"] for _ in range(10)] == list(range(10))
    with pytest.raises(DataLossError, match=r"a'.*the file is damaged"):
        next(rows)
    assert [row["x"] for row in rows] == list(range(40, 45))


@pytest.mark.usefixtures("one_group_a_part")
def test_an_iterator_that_is_dropped_leaves_no_file_open_and_no_memory(tmp_path: Path) -> None:
    path = written(tmp_path / "a", {"x": np.arange(400_000)}, 50_000)

    def is_held() -> bool:
        files = {os.path.realpath(f"/proc/self/fd/{file}") for file in os.listdir("/proc/self/fd")}
        return path in files or pa.total_allocated_bytes() > before

    before = pa.total_allocated_bytes()
    rows = iter(ParquetDataset(path))
    assert next(rows)["x"] == 0
    assert is_held()
    del rows
    end = time.monotonic() + 60
    while is_held():  # lets Arrow's threads finish
        assert time.monotonic() < end
        threading.Event().wait(0.01)


def test_filters_that_fit_no_column_are_told(tmp_path: Path) -> None:
    path = numbers(tmp_path / "a", 0, 3)
    with pytest.raises(InvalidArgumentError, match="filters do not fit"):
        list(ParquetDataset(path, filters=[("nothing", ">", 1)]))
    with pytest.raises(InvalidArgumentError, match="filters do not fit"):
        list(ParquetDataset(path, filters=[("x", ">", "text")]))
    with pytest.raises(InvalidArgumentError, match="filters must be"):
        ParquetDataset(path, filters=[("x", "about", 1)])


def test_a_null_needs_a_default(tmp_path: Path) -> None:
    path = written(tmp_path / "a", {"x": pa.array([1, None, 3]), "t": pa.array(["a", None, "c"])})
    with pytest.raises(DataLossError, match=r"column 'x' has a null at row 1.*defaults=\{'x': \.\.\.\}"):
        list(ParquetDataset(path))
    rows = list(ParquetDataset(path, defaults={"x": -1, "t": "none"}))
    assert [(row["x"], row["t"]) for row in rows] == [(1, b"a"), (-1, b"none"), (3, b"c")]
    with pytest.raises(InvalidArgumentError, match="its default 'many' is not"):
        list(ParquetDataset(path, defaults={"x": "many", "t": ""}))
    with pytest.raises(InvalidArgumentError, match="no column 'z'"):
        list(ParquetDataset(path, defaults={"z": 1}))


def test_columns_that_no_array_holds_are_refused_by_name(tmp_path: Path) -> None:
    path = written(tmp_path / "a", {"x": [1, 2], "s": [{"a": 1}, {"a": 2}], "l": [[1], [2, 3]]})
    with pytest.raises(InvalidArgumentError, match=r"column 's' is struct.*columns="):
        list(ParquetDataset(path))
    with pytest.raises(
        InvalidArgumentError, match=r"column 'l' has lists of different lengths, first at row 1"
    ):
        list(ParquetDataset(path, columns=["x", "l"]))
    assert [row["x"] for row in ParquetDataset(path, columns=["x"])] == [1, 2]


def test_files_of_another_schema_are_refused_and_the_next_file_follows(tmp_path: Path) -> None:
    paths = [
        written(tmp_path / name, {"x": values}) for name, values in (("a", [1]), ("b", [2.0]), ("c", [3]))
    ]
    iterator = iter(ParquetDataset(paths))
    assert next(iterator)["x"] == 1
    with pytest.raises(InvalidArgumentError, match=r"b'.*column 'x' is .*float64.*int64"):
        next(iterator)
    assert next(iterator)["x"] == 3


@pytest.mark.parametrize("policy", ["FILE", "AUTO", "DATA"])
@pytest.mark.parametrize("hosts", [1, 2, 3])
def test_each_row_reaches_one_host_by_every_policy(tmp_path: Path, policy: str, hosts: int) -> None:
    paths = [numbers(tmp_path / "a", 0, 45), numbers(tmp_path / "b", 45, 18)]
    dataset = ParquetDataset(paths)
    options = wb.data.Options()
    options.experimental_distribute.auto_shard_policy = wb.data.AutoShardPolicy[policy]
    dataset = dataset.with_options(options)
    parts = [[int(row["x"]) for row in auto_shard(dataset, hosts, host).dataset] for host in range(hosts)]
    assert sorted(x for part in parts for x in part) == list(range(63))
    assert all(parts)


def test_row_groups_are_dealt_in_turn_over_files(tmp_path: Path) -> None:
    paths = [numbers(tmp_path / "a", 0, 25), numbers(tmp_path / "b", 25, 20)]
    parts = [[int(row["x"]) for row in auto_shard(ParquetDataset(paths), 2, host).dataset] for host in (0, 1)]
    assert parts == [[*range(10), *range(20, 25), *range(35, 45)], [*range(10, 20), *range(25, 35)]]
    half = auto_shard(ParquetDataset(paths), 2, 1).dataset
    assert [int(row["x"]) for row in auto_shard(half, 2, 1).dataset] == list(range(25, 35))
    with pytest.raises(
        InvalidArgumentError, match=r"5 row groups of 2 file\(s\) cannot be divided among 6 hosts"
    ):
        list(auto_shard(ParquetDataset(paths), 6, 0).dataset)


def test_the_explanation_names_file_and_row(tmp_path: Path) -> None:
    paths = [numbers(tmp_path / "a", 0, 20), numbers(tmp_path / "b", 20, 20)]
    model = wb.explain_sharding(ParquetDataset(paths).batch(10), wb.data.Shape(hosts=2))
    assert model.policy == "AUTO→FILE"
    assert (model.elements, model.duplicates, model.dropped) == (40, 0, 0)
    assert model.files == (tuple(paths), tuple(paths))
    assert model.labels[(1 << 32) + 7] == "b:7"
    off = wb.explain_sharding(ParquetDataset(paths).batch(10), wb.data.Shape(hosts=2), policy="OFF")
    assert off.duplicates == 40


def test_a_pipeline_of_parquet_travels(tmp_path: Path) -> None:
    path = numbers(tmp_path / "a", 0, 40)
    dataset = ParquetDataset(path, filters=pc.field("x") > 35).map(lambda row: row["x"])
    assert list(pickle.loads(cloudpickle.dumps(dataset))) == [36, 37, 38, 39]


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no file .*missing"):
        list(ParquetDataset(tmp_path / "missing"))
    with pytest.raises(NotFoundError, match=r"is a folder; name its files"):
        list(ParquetDataset(tmp_path))
    (tmp_path / "text").write_bytes(b"no parquet at all")
    with pytest.raises(DataCorruption, match=r"text'.*no Parquet file"):
        list(ParquetDataset(tmp_path / "text"))
    (tmp_path / "empty").touch()
    with pytest.raises(DataCorruption, match=r"empty'.*no Parquet file"):
        list(ParquetDataset(tmp_path / "empty"))
    with pytest.raises(InvalidArgumentError, match="the list of files is empty"):
        ParquetDataset([]).element_spec


def test_damage_is_told_or_harmless_wherever_it_is(tmp_path: Path) -> None:
    good = Path(numbers(tmp_path / "good", 0, 20, write_page_checksum=True)).read_bytes()
    expected = list(ParquetDataset(tmp_path / "good"))
    bad = tmp_path / "bad"
    told = 0
    for cut in range(0, len(good), 7):
        bad.write_bytes(good[:cut])
        with pytest.raises(DataLossError, match="bad'"):
            list(ParquetDataset(bad))
    for place in range(0, len(good), 3):
        bad.write_bytes(good[:place] + bytes([good[place] ^ 0x21]) + good[place + 1 :])
        try:
            read = list(ParquetDataset(bad))
        except (DataLossError, InvalidArgumentError) as error:
            told += "bad'" in str(error)
        else:
            # The footer has no checksum, so names, statistics and the like may have changed; the values in pages have
            # not.
            assert [list(row.values()) for row in read] == [
                list(row.values()) for row in expected
            ] or place > len(good) // 2
    assert told > len(good) // 12
