"""Collections of Dask as sources: values, partitions dealt to hosts, and where they are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import get_worker

import workbench as wb
from workbench.data import Dataset, Options, TensorSpec, auto_shard, from_dask
from workbench.errors import DataLossError, InvalidArgumentError
from workbench.runtime.partitions import Held


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two hosts with a worker process each."""
    with wb.connect(replicas=2, hosts=2, processes=True, replace=True) as connected:
        yield connected


def ints(dataset: Any) -> list[int]:
    return [int(x) for x in dataset]


def noted(folder: Path, block: Any) -> Any:
    """Leaves a file for each time that a block is computed; Dask tries it without rows first."""
    if len(block):
        number = len(list(folder.iterdir()))
        (folder / f"{int(block[0])}.{number}").touch()
    return block


def array_of(folder: Path, chunks: int = 4) -> Any:
    return da.arange(16, chunks=16 // chunks).map_blocks(
        lambda block: noted(folder, block), dtype=np.int64, meta=np.empty(0, np.int64)
    )


def test_rows_of_an_array_come_block_by_block() -> None:
    values = np.arange(24, dtype=np.float32).reshape(8, 3)
    dataset = from_dask(da.from_array(values, chunks=(3, 3)))
    assert dataset.element_spec == TensorSpec((3,), np.float32)
    assert len(dataset) == 8
    np.testing.assert_array_equal(list(dataset), values)
    assert [batch.shape for batch in dataset.batch(5)] == [(5, 3), (3, 3)]


def test_a_pass_computes_each_block_once_when_it_comes_to_it(tmp_path: Path) -> None:
    elements = iter(from_dask(array_of(tmp_path)))
    assert [int(next(elements)) for _ in range(5)] == [0, 1, 2, 3, 4]
    assert len(list(tmp_path.iterdir())) == 2
    assert ints(elements) == list(range(5, 16))
    assert len(list(tmp_path.iterdir())) == 4


def test_an_array_whose_rows_are_cut_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"array\.rechunk\(\{1: -1\}\)"):
        from_dask(da.zeros((4, 4), chunks=(2, 2)))
    with pytest.raises(InvalidArgumentError, match="scalar"):
        from_dask(da.zeros((4, 4)).sum())


def test_lengths_that_are_unknown_are_found_out_by_reading() -> None:
    array = da.arange(10, chunks=5)
    dataset = from_dask(array[array > 3])
    assert dataset.cardinality() == wb.data.UNKNOWN_CARDINALITY
    assert ints(dataset) == [4, 5, 6, 7, 8, 9]


def test_rows_of_a_data_frame_are_dicts_of_columns() -> None:
    frame = pd.DataFrame({"x": range(5), "name": list("abcde"), "y": [0.5, None, 1.5, 2.0, 2.5]})
    dataset = from_dask(dd.from_pandas(frame, npartitions=2))
    assert dataset.element_spec == {
        "x": TensorSpec((), np.int64),
        "name": TensorSpec((), "string"),
        "y": TensorSpec((), np.float64),
    }
    rows = list(dataset)
    assert [(int(row["x"]), row["name"]) for row in rows] == [(i, b"abcde"[i : i + 1]) for i in range(5)]
    assert np.isnan(rows[1]["y"])
    assert [
        batch["x"].tolist() for batch in from_dask(dd.from_pandas(frame, npartitions=2), ["x"]).batch(4)
    ] == [
        [0, 1, 2, 3],
        [4],
    ]


def test_a_null_in_a_data_frame_needs_a_default() -> None:
    frame = dd.from_pandas(pd.DataFrame({"name": ["a", None, "c"]}), npartitions=1)
    with pytest.raises(DataLossError, match="column 'name' has a null at row 1"):
        list(from_dask(frame))
    assert [row["name"] for row in from_dask(frame, defaults={"name": "?"})] == [b"a", b"?", b"c"]


def test_items_of_a_bag_are_elements() -> None:
    bag = db.from_sequence([{"x": i, "t": str(i)} for i in range(5)], npartitions=3)
    dataset = from_dask(bag)
    assert dataset.element_spec == {"x": TensorSpec((), np.int32), "t": TensorSpec((), "string")}
    assert [(int(row["x"]), row["t"]) for row in dataset] == [(i, b"%d" % i) for i in range(5)]
    empty = from_dask(bag.filter(lambda row: row["x"] > 9))
    with pytest.raises(InvalidArgumentError, match="bag is empty"):
        empty.element_spec
    assert list(empty) == []


def test_other_things_are_refused() -> None:
    series = dd.from_pandas(pd.DataFrame({"x": [1]}), npartitions=1)["x"]
    for value in (series, dask.delayed(1), [1], np.zeros(3)):
        with pytest.raises(TypeError, match=r"dask\.array, dask\.dataframe or dask\.bag"):
            from_dask(value)


@pytest.mark.parametrize("hosts", [1, 2, 3])
def test_partitions_are_dealt_to_hosts_and_each_is_computed_once(tmp_path: Path, hosts: int) -> None:
    dataset = from_dask(array_of(tmp_path))
    parts = [ints(auto_shard(dataset, hosts, host).dataset) for host in range(hosts)]
    assert parts[0][:8] == [[*range(8)], [0, 1, 2, 3, 8, 9, 10, 11], [0, 1, 2, 3, 12, 13, 14, 15]][hosts - 1]
    assert sorted(x for part in parts for x in part) == list(range(16))
    assert len(list(tmp_path.iterdir())) == 4
    model = wb.explain_sharding(dataset.batch(4), wb.data.Shape(hosts=hosts))
    assert (model.policy, model.reason) == ("AUTO→FILE", "source reads partitions of Dask")
    assert (model.elements, model.duplicates, model.dropped) == (16, 0, 0)
    assert "partition 3:0" in model.labels.values()


def test_fewer_partitions_than_hosts_are_told() -> None:
    dataset = from_dask(da.arange(6, chunks=3))
    with pytest.raises(
        InvalidArgumentError, match=r"2 partition\(s\) of Dask cannot be divided among 3 hosts"
    ):
        auto_shard(dataset, 3, 0)
    options = Options()
    options.experimental_distribute.auto_shard_policy = "DATA"  # type: ignore[assignment]
    parts = [ints(auto_shard(dataset.with_options(options), 3, host).dataset) for host in range(3)]
    assert parts == [[0, 3], [1, 4], [2, 5]]


def test_what_a_worker_holds_is_read_there_without_a_copy_and_elsewhere_from_that_worker(
    cluster: Any,
) -> None:
    client = cluster.client
    addresses = list(client.scheduler_info()["workers"])
    future = client.submit(np.arange, 4, 8, workers=addresses[:1])
    part = Held(future.key, client.scheduler.address, future)

    def read(part: Held) -> tuple[bool, list[int]]:
        value = part.read()
        return value is get_worker().data.get(part.key), value.tolist()

    # A task of its own kind, so that Held fetches the partition there, rather than Dask.
    future.result(timeout=60)
    plain = Held(part.key, part.scheduler)
    found = [client.submit(read, plain, workers=[address], pure=False).result(60) for address in addresses]
    assert found == [(True, [4, 5, 6, 7]), (False, [4, 5, 6, 7])]
    assert ints(from_dask(client.persist(da.arange(8, chunks=4)))) == list(range(8))


def test_replicas_read_the_partitions_of_a_persisted_collection_on_the_host_that_has_them(
    cluster: Any,
) -> None:
    client = cluster.client
    hosts = [device.worker for device in cluster.devices]
    # The second host has the first two partitions, which would otherwise go to one host each.
    blocks = {
        ("held", number): client.submit(
            np.arange,
            4 * number,
            4 * number + 4,
            workers=[hosts[1 - number // 2]],
            allow_other_workers=False,
            pure=False,  # otherwise the held value comes from the same call in another test
        )
        for number in range(4)
    }
    persisted = da.Array(blocks, "held", ((4, 4, 4, 4),), np.int64)
    strategy = wb.MirroredStrategy(list(cluster.devices))
    distributed = strategy.distribute_dataset(from_dask(persisted).batch(4))
    steps = [[part.tolist() for part in strategy.local_results(step)] for step in distributed]
    first = [x for step in steps for x in step[0]]
    second = [x for step in steps for x in step[1]]
    assert sorted(first + second) == list(range(16))
    strategy.group.close()
    assert sorted(first) == list(range(8, 16))
    assert sorted(second) == list(range(8))


def test_data_frames_and_bags_are_read_where_they_are_persisted(cluster: Any) -> None:
    frame = dd.from_pandas(pd.DataFrame({"x": range(6)}), npartitions=2)
    held = cluster.client.persist(frame)
    assert [int(row["x"]) for row in from_dask(held)] == list(range(6))
    assert all(isinstance(part, Held) for part in from_dask(held).source.parts)  # type: ignore[attr-defined]
    bag = cluster.client.persist(db.from_sequence(range(6), npartitions=2))
    strategy = wb.MirroredStrategy(list(cluster.devices))
    seen = [
        int(x)
        for step in strategy.distribute_dataset(from_dask(bag).batch(2))
        for part in strategy.local_results(step)
        for x in part
    ]
    strategy.group.close()
    assert sorted(seen) == list(range(6))


def test_what_is_computed_from_a_persisted_collection_is_to_be_persisted(cluster: Any) -> None:
    held = cluster.client.persist(da.arange(8, chunks=4))
    with pytest.raises(InvalidArgumentError, match=r"persist it, too: collection\.persist\(\)"):
        from_dask(held + 1)


def test_lazy_partitions_are_computed_by_the_replicas_hosts(cluster: Any, tmp_path: Path) -> None:
    strategy = wb.MirroredStrategy(list(cluster.devices))
    dataset: Dataset = from_dask(array_of(tmp_path))
    steps = list(strategy.distribute_dataset(dataset.batch(4)))
    seen = [int(x) for step in steps for part in strategy.local_results(step) for x in part]
    strategy.group.close()
    assert sorted(seen) == list(range(16))
    assert len(list(tmp_path.iterdir())) == 4
