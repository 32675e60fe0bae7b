"""Collectives of traced functions against NumPy: every operation, dtype and shape, in one process and in two."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import workbench as wb
from tests.tpu.conftest import REPLICAS, by_replica
from workbench.communicators import Reduction
from workbench.distribute import get_replica_context
from workbench.errors import InvalidArgumentError

DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int32", "int64", "uint8", "complex64"]


def parts(dtype: str, shape: tuple[int, ...]) -> list[Any]:
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    rng = np.random.default_rng(7)
    return [rng.integers(0, 5, shape).astype(kind) for _ in range(REPLICAS)]


def wide(arrays: list[Any]) -> Any:
    return np.stack([a.astype(np.complex128 if a.dtype.kind == "c" else np.float64) for a in arrays])


@pytest.mark.parametrize("dtype", DTYPES)
def test_sum_and_mean_keep_the_rules_of_dtypes(spread: Any, dtype: str) -> None:
    arrays = parts(dtype, (3, 2))

    def both(x: Any) -> Any:
        ctx = get_replica_context()
        return ctx.all_reduce("SUM", x), ctx.all_reduce("MEAN", x)

    total, mean = (spread.local_results(value) for value in spread.run(both, (by_replica(spread, *arrays),)))

    expected = wide(arrays).sum(axis=0)
    for part in total:
        assert part.dtype == arrays[0].dtype
        np.testing.assert_array_equal(part.astype(expected.dtype), expected)
    for part in mean:
        assert part.dtype == (np.float64 if arrays[0].dtype.kind in "biu" else arrays[0].dtype)
        np.testing.assert_allclose(part.astype(wide(arrays).dtype), wide(arrays).mean(axis=0), rtol=1e-2)


def test_truth_values_are_no_numbers(spread: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="all_reduce needs numbers, got dtype bool"):
        spread.run(lambda x: get_replica_context().all_reduce("SUM", x), (np.ones(3, bool),))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (2, 0, 3), (5, 3)])
def test_any_shape_is_combined(spread: Any, shape: tuple[int, ...]) -> None:
    arrays = parts("float32", shape)

    result = spread.run(lambda x: get_replica_context().all_reduce("SUM", x), (by_replica(spread, *arrays),))

    np.testing.assert_array_equal(spread.local_results(result)[1], np.sum(arrays, axis=0))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gathered_arrays_are_in_replica_order(spread: Any, axis: int) -> None:
    arrays = parts("int32", (2, 3))

    result = spread.run(lambda x: get_replica_context().all_gather(x, axis), (by_replica(spread, *arrays),))

    for part in spread.local_results(result):
        np.testing.assert_array_equal(part, np.concatenate(arrays, axis=axis))


def test_bfloat16_accumulates_in_float32(spread: Any) -> None:
    value = np.array([256.0, 1.0], ml_dtypes.bfloat16)
    arrays = [np.full(3, value[min(rank, 1)], ml_dtypes.bfloat16) for rank in range(REPLICAS)]

    result = spread.run(lambda x: get_replica_context().all_reduce("SUM", x), (by_replica(spread, *arrays),))

    assert float(spread.local_results(result)[0][0]) == 260  # 259, rounded once


def test_structures_are_combined_leaf_by_leaf(spread: Any) -> None:
    def step(x: Any) -> Any:
        return get_replica_context().all_reduce("SUM", {"a": x, "b": (x * 2, [np.float32(1)])})

    result = spread.run(step, (by_replica(spread, *np.arange(4, dtype=np.float32)),))

    assert [
        float(spread.local_results(leaf)[0]) for leaf in (result["a"], *result["b"][:1], result["b"][1][0])
    ] == [
        6,
        12,
        4,
    ]


def test_the_other_operations_of_a_communicator(spread: Any) -> None:
    def step(x: Any) -> Any:
        communicator = get_replica_context()._env.communicator
        return (
            communicator.all_reduce([x], Reduction("min"))[0],
            communicator.all_reduce([x], Reduction("max"))[0],
            communicator.all_reduce([x + 1], Reduction("prod"))[0],
            communicator.broadcast(x, 2),
            communicator.reduce_scatter(x + np.arange(8, dtype=np.float32), "sum"),
        )

    results = spread.run(step, (by_replica(spread, *np.arange(4, dtype=np.float32)),))
    least, most, product, sent, scattered = (spread.local_results(value) for value in results)

    assert [float(part[1]) for part in (least, most, product, sent)] == [0, 3, 24, 2]
    np.testing.assert_array_equal(np.concatenate(scattered), 4 * np.arange(8) + 6)


def test_an_unknown_operation_is_refused(spread: Any) -> None:
    with pytest.raises(ValueError, match="SUM"):
        spread.run(lambda x: get_replica_context().all_reduce("XOR", x), (np.float32(1),))


def test_inputs_are_not_changed(spread: Any) -> None:
    mine = np.ones(16, np.float32)
    value = by_replica(spread, *[mine] * REPLICAS)

    spread.run(lambda x: get_replica_context().all_reduce("SUM", x) + x, (value,))

    assert (mine == 1).all()
    assert all((part == 1).all() for part in spread.local_results(value))


def test_indexed_slices_come_and_go(spread: Any) -> None:
    rows = [
        wb.IndexedSlices(np.full((1, 2), rank, np.float32), np.array([rank % 2]), (3, 2)) for rank in range(4)
    ]

    def step(rows: Any) -> Any:
        return get_replica_context().all_reduce("MEAN", rows)

    result = spread.local_results(spread.run(step, (by_replica(spread, *rows),)))

    np.testing.assert_array_equal(result[1].dense(), [[0.5, 0.5], [1, 1], [0, 0]])
    assert result[1].indices.tolist() == [0, 1, 0, 1]


def test_indexed_slices_are_concatenated(spread: Any) -> None:
    def step(x: Any) -> Any:
        rows = wb.IndexedSlices(x[None], np.array([0], np.int32), (2, 1))
        total = get_replica_context().all_reduce("SUM", rows)
        return total.values, total.indices

    values, indices = spread.run(step, (by_replica(spread, *np.arange(4, dtype=np.float32)[:, None]),))

    np.testing.assert_array_equal(spread.local_results(values)[3], [[0], [1], [2], [3]])
    np.testing.assert_array_equal(spread.local_results(indices)[3], [0, 0, 0, 0])
