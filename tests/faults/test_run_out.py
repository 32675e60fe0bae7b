"""Row 15: hosts that run out of data at different steps. Those that have none get empty batches, and nobody hangs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.faults.conftest import no_hang
from workbench.data import Dataset, InputContext, TextLineDataset
from workbench.distribute import get_replica_context


@pytest.fixture(scope="module", params=[1, 2], ids=["a replica per host", "two replicas per host"])
def hosts(request: pytest.FixtureRequest) -> Iterator[wb.Cluster]:
    """Two hosts."""
    with wb.connect(hosts=2, replicas_per_host=request.param, replace=True) as cluster:
        yield cluster


@pytest.fixture
def strategy(hosts: wb.Cluster) -> Iterator[Any]:
    """A strategy on all of their replicas."""
    made = wb.MultiWorkerMirroredStrategy()
    yield made
    made.group.close()


def _sum_and_rows(batch: Any) -> tuple[Any, int]:
    """A training step: a collective that either all replicas reach, or none."""
    total = get_replica_context().all_reduce("SUM", np.array([batch.sum(), len(batch)]))
    return total, len(batch)


def _trained(strategy: Any, dataset: Any, steps: int | None = None) -> tuple[list[int], list[list[int]]]:
    """For each step, the rows of all replicas together, and those of each; each step has a collective."""
    together, each = [], []
    for batch in itertools.islice(dataset, steps):
        total, rows = strategy.run(_sum_and_rows, args=(batch,))
        together.append(int(strategy.local_results(total)[0][1]))
        each.append([int(count) for count in strategy.local_results(rows)])
    return together, each


@pytest.mark.parametrize("mapped", [False, True], ids=["in memory", "mapped"])
@pytest.mark.parametrize("batches", [(7, 8), (8, 7), (0, 3), (5, 0)])
def test_row_15_a_host_with_fewer_batches_gets_empty_ones(
    strategy: Any, batches: tuple[int, int], mapped: bool
) -> None:
    per_host = strategy.num_replicas_in_sync // 2

    def make(context: InputContext) -> Dataset:
        data = Dataset.range(3 * per_host * batches[context.input_pipeline_id]).batch(3)
        return data.map(lambda x: x) if mapped else data

    with no_hang():
        together, each = _trained(strategy, strategy.distribute_datasets_from_function(make))

    assert len(together) == max(batches)
    assert sum(together) == 3 * per_host * sum(batches)
    for host, count in enumerate(batches):
        rows = [sum(step[host * per_host : (host + 1) * per_host]) for step in each]
        assert rows == [3 * per_host] * count + [0] * (max(batches) - count)


def test_row_15_an_endless_host_goes_on_beside_one_that_has_ended(strategy: Any) -> None:
    def make(context: InputContext) -> Dataset:
        data = Dataset.range(4).batch(2)
        return data.repeat() if context.input_pipeline_id else data.map(lambda x: x)

    with no_hang():
        together, each = _trained(strategy, strategy.distribute_datasets_from_function(make), steps=12)

    assert len(together) == 12
    assert all(step[0] == 0 and step[-1] == 2 for step in each[4:])


@pytest.mark.parametrize("policy", ["FILE", "DATA", "OFF"])
def test_row_15_a_host_whose_file_is_empty_waits_for_nothing(
    strategy: Any, policy: str, tmp_path: Path
) -> None:
    (tmp_path / "0.txt").write_text("")
    (tmp_path / "1.txt").write_text("".join(f"{row}\n" for row in range(20)))
    options = wb.data.Options()
    options.experimental_distribute.auto_shard_policy = wb.data.AutoShardPolicy[policy]
    lines = TextLineDataset([str(tmp_path / "0.txt"), str(tmp_path / "1.txt")])
    data = lines.map(np.int64).batch(4).with_options(options)
    with no_hang():
        together, each = _trained(strategy, strategy.distribute_dataset(data))

    assert sum(together) == (40 if policy == "OFF" else 20)
    if policy == "FILE":
        first_host = slice(strategy.num_replicas_in_sync // 2)
        assert all(sum(step[first_host]) == 0 for step in each)


def test_row_15_no_data_at_all_is_the_end_at_once(strategy: Any, tmp_path: Path) -> None:
    with no_hang():
        assert list(strategy.distribute_dataset(Dataset.range(0).batch(4))) == []
        assert list(strategy.distribute_dataset(Dataset.range(8).filter(lambda x: x < 0).batch(4))) == []


def test_row_15_a_replica_without_rows_weighs_nothing_in_a_sum_over_all(strategy: Any) -> None:
    """The advice of `explain_sharding`: a sum divided by the number of all rows is right also in a last, short step."""

    def mean(batch: Any) -> Any:
        total, rows = get_replica_context().all_reduce("SUM", (batch.sum(), np.float64(len(batch))))
        return total / rows

    data = Dataset.range(9).map(np.float64).batch(8)
    with no_hang():
        means = [
            float(strategy.local_results(strategy.run(mean, args=(batch,)))[0])
            for batch in strategy.distribute_dataset(data)
        ]

    assert means == [3.5, 8.0]


@pytest.mark.parametrize("kind", ["lists", "any shape"])
def test_row_15_lists_are_gathered_whose_length_a_host_without_data_cannot_know(
    strategy: Any, kind: str
) -> None:
    per_host = strategy.num_replicas_in_sync // 2

    def rows(step: int) -> Any:
        return [[row] * (step + 2) for row in range(2 * per_host * step, 2 * per_host * (step + 1))]

    def make(context: InputContext) -> Dataset:
        steps = [rows(step) for step in range(3 * context.input_pipeline_id)]

        def read() -> Iterator[Any]:
            for row in itertools.chain(*steps):
                yield row, b"row %d" % row[0]

        shapes = {"output_shapes": ((None,), ())} if kind == "lists" else {}
        return Dataset.from_generator(read, output_types=(np.int64, object), **shapes).batch(2)

    def together(lists: Any, texts: Any) -> Any:
        context = get_replica_context()
        return context.all_gather((lists, texts), axis=0), context.all_gather(lists, axis=0)

    with no_hang():
        for step, batch in enumerate(strategy.distribute_datasets_from_function(make)):
            (lists, texts), alone = strategy.run(together, args=batch)
            for value in (*lists.values, *alone.values, strategy.gather(batch[0], axis=0)):
                assert value.tolist() == rows(step)
            for value in texts.values:
                assert value.tolist() == [b"row %d" % row[0] for row in rows(step)]
    assert step == 2
