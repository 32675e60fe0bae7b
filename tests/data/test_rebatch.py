"""The arithmetic of splitting, and the stages that apply it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.data import Dataset, ParquetDataset, TensorSpec, batch_sizes_for_worker, compute_batch_size
from workbench.data.rebatch import even_bounds, scheduled_sizes
from workbench.data.stages.grouping.split import EvenSplit, Regroup
from workbench.errors import InvalidArgumentError

few = st.integers(1, 9)


@pytest.mark.parametrize(
    ("rows", "pieces", "sizes"),
    [(7, 4, [2, 2, 2, 1]), (3, 4, [1, 1, 1, 0]), (4, 3, [2, 2, 0]), (9, 4, [3, 3, 3, 0]), (0, 2, [0, 0])],
)
def test_the_even_split_gives_whole_pieces_until_none_are_left(
    rows: int, pieces: int, sizes: list[int]
) -> None:
    assert [stop - start for start, stop in even_bounds(rows, pieces)] == sizes


@given(rows=st.integers(0, 100), pieces=few)
def test_the_even_split_is_a_partition(rows: int, pieces: int) -> None:
    bounds = even_bounds(rows, pieces)
    assert len(bounds) == pieces
    assert [row for start, stop in bounds for row in range(start, stop)] == list(range(rows))


@pytest.mark.parametrize(
    ("batch", "replicas", "sizes"),
    [(7, 4, (2, 2, 2, 1)), (4, 3, (2, 1, 1)), (2, 3, (1, 1, 0)), (6, 3, (2, 2, 2))],
)
def test_the_schedule_gives_the_first_replicas_what_does_not_divide(
    batch: int, replicas: int, sizes: tuple[int, ...]
) -> None:
    assert scheduled_sizes(batch, replicas) == sizes


@given(batch=st.integers(0, 60), workers=st.integers(1, 4), replicas=st.integers(1, 4))
def test_workers_schedules_add_up_to_the_batch_in_every_step(batch: int, workers: int, replicas: int) -> None:
    schedules = [batch_sizes_for_worker(batch, workers, replicas, worker) for worker in range(workers)]
    assert all(sorted(s) == sorted(scheduled_sizes(batch, workers * replicas)) for s in schedules)
    for step in range(workers):
        assert sum(sum(s[step * replicas : (step + 1) * replicas]) for s in schedules) == batch


def test_a_negative_batch_or_no_replica_is_refused() -> None:
    for rows, replicas in ((-1, 2), (4, 0)):
        says = f"a batch of {rows} rows cannot be divided among {replicas} replicas; both must be positive"
        with pytest.raises(InvalidArgumentError, match=says):
            scheduled_sizes(rows, replicas)


def same(x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    ("dataset", "size"),
    [
        (Dataset.range(10).batch(4), 4),
        (Dataset.range(10).batch(4).shuffle(2).take(2).skip(1).repeat().prefetch(1).cache().shard(2, 0), 4),
        (Dataset.range(10).batch(4).filter(lambda x: x.sum() > 3), 4),
        (Dataset.range(10).batch(4).map(same), -1),
        (Dataset.range(10).batch(5, drop_remainder=True).map(same), 5),
        (Dataset.range(10).batch(2).batch(3), 3),
        (Dataset.range(10).batch(4).concatenate(Dataset.range(8).batch(4)), 4),
        (Dataset.range(10).batch(4).concatenate(Dataset.range(8).batch(2)), -1),
        (Dataset.zip((Dataset.range(10).batch(4), Dataset.range(8).batch(4))), 4),
        (Dataset.from_tensors(np.zeros((3, 2))), 3),
        (Dataset.range(9).window(3).flat_map(lambda w: w.batch(3)), -1),
    ],
)
def test_batch_sizes_are_detected_through_stages_that_keep_batches(dataset: Dataset, size: int) -> None:
    assert compute_batch_size(dataset) == size


@pytest.mark.parametrize("dataset", [Dataset.range(3), Dataset.range(6).batch(2).unbatch()])
def test_scalars_have_no_batch_size(dataset: Dataset) -> None:
    with pytest.raises(InvalidArgumentError, match="batch the dataset first"):
        compute_batch_size(dataset)


@given(
    n=st.integers(0, 40),
    batch=few,
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=4).filter(any),
    drop=st.booleans(),
)
def test_regrouping_keeps_every_row_in_order(n: int, batch: int, sizes: list[int], drop: bool) -> None:
    got = [x.tolist() for x in Dataset.range(n).batch(batch).with_stage(Regroup(tuple(sizes), drop))]
    rows = [row for group in got for row in group]
    assert rows == list(range(len(rows)))
    whole = got if drop else got[:-1]
    assert [len(group) for group in whole] == [sizes[i % len(sizes)] for i in range(len(whole))]
    assert len(rows) == n or (drop and n - len(rows) < max(sizes))


@pytest.mark.parametrize(
    ("rows", "sizes", "groups"),
    [
        (3, (1, 0), [1, 0, 1, 0, 1, 0]),
        (3, (2, 0), [2, 0, 1]),
        (5, (2, 0, 1), [2, 0, 1, 2, 0]),
        (4, (0, 2), [0, 2, 0, 2, 0]),
        (2, (2, 0, 0), [2, 0, 0]),
    ],
)
def test_batches_without_rows_follow_the_last_rows(
    rows: int, sizes: tuple[int, ...], groups: list[int]
) -> None:
    """As TensorFlow's rebatch, which makes them before it asks for more rows."""
    assert [len(group) for group in Dataset.range(rows).batch(2).with_stage(Regroup(sizes))] == groups


@pytest.mark.parametrize("mapped", [False, True])
def test_pieces_keep_dtype_and_trailing_dimensions_also_when_empty(mapped: bool) -> None:
    batches = Dataset.from_tensor_slices((np.zeros((3, 2), np.uint8), ["a", "b", "c"])).batch(2)
    batches = batches.map(lambda x, y: (x, y)) if mapped else batches
    for split in (EvenSplit(4), Regroup((1, 0, 1))):
        for x, y in batches.with_stage(split):
            assert x.dtype == np.uint8
            assert x.shape[1:] == (2,)
            assert y.dtype == object
            assert len(x) == len(y)


def test_unknown_dimensions_are_zero_in_parts_of_size_zero_only() -> None:
    """As TensorFlow's rebatch; parts that were left empty by a short batch keep those of their step."""
    rows = Dataset.range(1, 5).map(lambda x: np.full(x, x)).padded_batch(2, drop_remainder=True)
    assert [part.shape for part in rows.rebatch([1, 0, 1])] == [
        *[(1, 2), (0, 0), (1, 2)],
        *[(1, 4), (0, 0), (1, 4)],
    ]
    assert [part.shape for part in rows.with_stage(EvenSplit(3))] == [
        *[(1, 2), (1, 2), (0, 2)],
        *[(1, 4), (1, 4), (0, 4)],
    ]


def test_regrouping_asks_for_the_elements_of_a_pass_once() -> None:
    once = iter(range(100, 104))
    batches = Dataset.from_generator(lambda: once, output_signature=TensorSpec((), np.int64)).batch(1)
    assert [part.tolist() for part in batches.with_stage(Regroup((1, 0)))][::2] == [
        [100],
        [101],
        [102],
        [103],
    ]

    def refuses(x: Any) -> Any:
        raise AssertionError("called with a made-up value")

    assert list(Dataset.range(0).map(refuses).batch(2).rebatch([2, 0])) == []


def test_static_batch_dimensions_stay_known_only_where_they_divide() -> None:
    def spec(batch: int, stage: Any) -> Any:
        return Dataset.range(9).batch(batch, True).with_stage(stage).element_spec

    assert spec(4, EvenSplit(2)) == TensorSpec((2,), np.int64)
    assert spec(4, EvenSplit(3)) == TensorSpec((None,), np.int64)
    assert spec(4, Regroup((2, 2))) == TensorSpec((2,), np.int64)
    assert spec(4, Regroup((2, 1, 1))) == TensorSpec((None,), np.int64)
    assert spec(4, Regroup((3,))) == TensorSpec((None,), np.int64)
    assert spec(4, Regroup((3,), drop_remainder=True)) == TensorSpec((3,), np.int64)


def test_contiguous_pieces_of_arrays_in_memory_are_views() -> None:
    rows = np.zeros((8, 3))
    batches = Dataset.from_tensor_slices(rows).batch(4)
    for stage in (EvenSplit(2), Regroup((2, 2))):
        assert all(np.shares_memory(piece, rows) for piece in batches.with_stage(stage))


def test_regrouping_into_nothing_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="positive"):
        list(Dataset.range(4).batch(2).with_stage(Regroup((0, 0))))


def test_scalars_are_refused_when_the_stage_is_made() -> None:
    with pytest.raises(InvalidArgumentError, match=r"rebatch cuts along the first dimension, .* batch first"):
        Dataset.range(4).rebatch(2)
    with pytest.raises(InvalidArgumentError, match="batches of 0 rows"):  # the requested rows come first
        Dataset.range(4).rebatch(0)


@pytest.mark.parametrize("sizes", [2, [2, 0]])
def test_files_may_be_missing_where_the_stage_is_made(sizes: Any, tmp_path: Path) -> None:
    rows = ParquetDataset(str(tmp_path / "rows.parquet")).batch(4).rebatch(sizes)
    pa.parquet.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "rows.parquet")
    assert next(part["a"].tolist() for part in rows) == [1, 2]
