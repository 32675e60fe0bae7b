"""Numbers of `reduce` and `gather`, checked against NumPy on all components at once."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from workbench.distribute import PerReplica, ReduceOp, get_strategy
from workbench.distribute.arrays.host_reduce import as_axis, gather_components, reduce_components
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.arrays.reduce_op import as_reduce_op, collective_name
from workbench.errors import InvalidArgumentError

SUM, MEAN = ReduceOp.SUM, ReduceOp.MEAN


@given(
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=5),
    width=st.integers(1, 3),
    dtype=st.sampled_from(["float64", "int32", "uint8"]),
    seed=st.integers(0, 99),
)
def test_reducing_the_batch_equals_reducing_all_rows_at_once(
    sizes: list[int], width: int, dtype: str, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    parts = [generator.integers(0, 9, (rows, width)).astype(dtype) for rows in sizes]
    together = np.concatenate(parts)
    np.testing.assert_array_equal(reduce_components(SUM, parts, 0), together.sum(0, dtype=dtype))
    if len(together):
        mean = reduce_components(MEAN, parts, 0)
        np.testing.assert_allclose(mean, together.mean(0), rtol=1e-12)
        assert mean.dtype == np.float64
    np.testing.assert_array_equal(gather_components(parts, 0), together)


@given(
    hnp.arrays(np.float32, (3, 2, 4), elements=st.floats(-8, 8, width=32)),
    st.sampled_from([(0, 1), (-1,), (1, 0)]),
)
def test_several_axes_are_reduced_together(stacked: Any, axes: tuple[int, ...]) -> None:
    shifted = tuple(axis + 1 if axis >= 0 else axis for axis in axes)
    np.testing.assert_allclose(
        reduce_components(MEAN, list(stacked), axes), stacked.mean((0, *shifted)), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_summed_in_float32(dtype: Any) -> None:
    parts = [np.array([1.0], dtype)] + [np.array([0.001], dtype)] * 100
    total = reduce_components(SUM, parts, None)
    assert total.dtype == np.dtype(dtype)
    assert float(total[0]) == pytest.approx(1.1, abs=0.01)  # adding one by one in 16 bits would stop at 1


def test_the_mean_of_integers_is_float64_and_a_sum_wraps_around() -> None:
    assert reduce_components(MEAN, [np.int8(1), np.int8(2)], None) == 1.5
    assert reduce_components(SUM, [np.int8(100), np.int8(100)], None) == -56


def test_components_are_not_changed() -> None:
    parts = [np.ones(3), np.ones(3)]
    result = reduce_components(SUM, parts, None)
    result[0] = 9
    gathered = gather_components(parts[:1], 0)
    gathered[0] = 9
    assert all((part == 1).all() for part in parts)


def test_a_tensor_comes_back_as_a_tensor() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    result = reduce_components(SUM, [torch.ones(2), torch.ones(2)], None)
    assert isinstance(result, torch.Tensor)
    assert result.tolist() == [2, 2]


def test_sparse_rows_are_concatenated() -> None:
    rows = [IndexedSlices(np.ones((1, 2)), np.array([1]), (3, 2)) for _ in range(2)]
    total = reduce_components(SUM, rows, None)
    assert total.indices.tolist() == [1, 1]
    np.testing.assert_array_equal(total.dense(), [[0, 0], [2, 2], [0, 0]])
    np.testing.assert_array_equal(reduce_components(MEAN, rows, None).dense(), [[0, 0], [1, 1], [0, 0]])
    with pytest.raises(InvalidArgumentError, match="replica 1"):
        reduce_components(SUM, [rows[0], IndexedSlices(np.ones((1, 2)), np.array([0]), (4, 2))], None)


@pytest.mark.parametrize(
    ("parts", "axis", "says"),
    [
        ([np.ones(2), np.ones(3)], None, "axis=0"),
        ([np.ones(2), np.ones(2)], 1, "axis 1 is out of range"),
        ([np.float64(1), np.float64(2)], 0, "axis=None for scalars"),
        ([np.ones(2, bool)] * 2, None, "dtype bool"),
        ([np.ones(1, np.int32), np.ones(1)], None, "replica 1 has float64"),
        ([np.ones((2, 2)), np.ones((1, 2))], 1, "after reducing axis 1"),
    ],
)
def test_what_cannot_be_reduced_is_explained(parts: list[Any], axis: int | None, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        reduce_components(SUM, parts, axis)


@pytest.mark.parametrize(
    ("parts", "axis", "says"),
    [
        ([np.float64(1)] * 2, 0, "np.newaxis"),
        ([np.ones(2)] * 2, 1, "out of range"),
        ([np.ones((1, 2)), np.ones((1, 3))], 0, "replica 1 has float64"),
        ([np.ones(1), np.ones(1, np.int32)], 0, "one dtype"),
    ],
)
def test_what_cannot_be_gathered_is_explained(parts: list[Any], axis: int, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        gather_components(parts, axis)


@pytest.mark.parametrize("axis", ["0", 1.0, True, (0, None)])
def test_an_axis_is_an_integer(axis: Any) -> None:
    with pytest.raises(TypeError, match="axis must be"):
        as_axis(axis)


@pytest.mark.parametrize("spelling", ["sum", "Sum", "SUM", "sUm", ReduceOp.SUM])
def test_reductions_are_named_in_any_letter_case(spelling: Any) -> None:
    assert as_reduce_op(spelling) is ReduceOp.SUM
    assert collective_name(spelling) == "sum"


@pytest.mark.parametrize("wrong", ["MAX", None, 3, ["sum"]])
def test_an_unknown_reduction_is_refused(wrong: Any) -> None:
    for parse in (as_reduce_op, collective_name):
        with pytest.raises(ValueError, match="'SUM' or 'MEAN'"):
            parse(wrong)


def test_an_ordinary_value_counts_once_per_replica(local: Any) -> None:
    rows = np.array([1.0, 2.0])
    assert local.reduce("MEAN", rows, axis=None) is rows
    assert local.reduce("SUM", rows, axis=0) == 6
    assert get_strategy().reduce("SUM", rows, axis=None) is rows
    with pytest.raises(ValueError, match="distributed value"):
        local.reduce("SUM", rows, axis=None)


def test_structures_are_reduced_leaf_by_leaf(local: Any) -> None:
    value = {"a": PerReplica((1.0, 2.0)), "b": (PerReplica((np.ones(2), np.ones(2))),)}
    result = local.reduce("SUM", value, axis=None)
    assert result["a"] == 3
    assert result["b"][0].tolist() == [2, 2]


def test_a_component_without_elements_along_the_axis_may_have_other_dimensions() -> None:
    parts = [np.zeros((0, 0)), np.ones((2, 3)), np.zeros((0, 4)), np.full((1, 3), 2.0)]
    assert gather_components([np.zeros(0), *parts], 0).tolist() == [[1, 1, 1], [1, 1, 1], [2, 2, 2]]
    assert gather_components(parts, 0).tolist() == [[1, 1, 1], [1, 1, 1], [2, 2, 2]]
    assert gather_components([part.T for part in parts], -1).shape == (3, 3)
    assert gather_components([np.zeros((0, 4)), np.zeros((0, 2))], 0).shape == (0, 4)
    with pytest.raises(InvalidArgumentError, match="replica 1 has float64"):
        gather_components([*parts, np.ones((1, 2))], 0)
    with pytest.raises(InvalidArgumentError, match="one dtype"):
        gather_components([np.ones(2), np.zeros(0, np.float32)], 0)
