"""Elements of variables by their coordinates; expected values by TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import InvalidArgumentError


def _variable() -> Any:
    return wb.Variable(np.arange(6.0).reshape(3, 2))


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("scatter_nd_add", [[0, 11], [2, 3], [-1, 5]]),
        ("scatter_nd_sub", [[0, -9], [2, 3], [9, 5]]),
        ("scatter_nd_update", [[0, 10], [2, 3], [-5, 5]]),
        ("scatter_nd_max", [[0, 10], [2, 3], [4, 5]]),
        ("scatter_nd_min", [[0, 1], [2, 3], [-5, 5]]),
    ],
)
def test_elements_change(method: str, expected: Any) -> None:
    v = _variable()
    assert getattr(v, method)([[0, 1], [2, 0]], [10.0, -5.0]) is v
    np.testing.assert_array_equal(v.numpy(), expected)


def test_fewer_coordinates_name_slices_and_duplicates_count_twice() -> None:
    v = _variable().scatter_nd_add([[0], [0]], [[10.0, 1], [1, 1]])
    np.testing.assert_array_equal(v.numpy(), [[11, 3], [2, 3], [4, 5]])
    np.testing.assert_array_equal(v.gather_nd([[0], [2]]), [[11, 3], [4, 5]])
    np.testing.assert_array_equal(v.gather_nd([[[0, 1], [2, 0]]]), [[3, 4]])
    assert v.gather_nd([2, 1]) == 5


@pytest.mark.parametrize(
    ("value", "rows", "indices", "expected"),
    [
        (np.arange(8.0).reshape(2, 4), [[5.0, 6], [7, 8]], [[0, 1], [2, 3]], [[5, 6, 2, 3], [4, 5, 7, 8]]),
        ([1.0, 2, 3], [9.0, 8], [0, 2], [9, 2, 8]),
        (np.zeros((2, 2, 2)), np.ones((2, 1, 2)), [[1], [0]], [[[0, 0], [1, 1]], [[1, 1], [0, 0]]]),
        (np.zeros((2, 3)), [[1.0]], [[1]], [[0, 1, 0], [0, 0, 0]]),
    ],
)
def test_a_batch_changes_within_its_own_rows(value: Any, rows: Any, indices: Any, expected: Any) -> None:
    v = wb.Variable(value)
    assert v.batch_scatter_update(wb.IndexedSlices(np.asarray(rows, v.dtype), indices)) is v
    np.testing.assert_array_equal(v.numpy(), expected)


def test_variables_and_indices_without_elements() -> None:
    v = wb.Variable(np.zeros((3, 0)))
    assert v.scatter_nd_add([[0], [2]], np.zeros((2, 0))) is v
    assert v.scatter_nd_add(np.zeros((0, 2), np.int64), []).shape == (3, 0)
    assert v.gather_nd([[0], [2]]).shape == (2, 0)
    assert v.gather_nd(np.zeros((4, 0, 2), np.int64)).shape == (4, 0)
    with pytest.raises(InvalidArgumentError, match=r"outside of \(3, 0\)"):
        v.gather_nd([[0, 0]])


def test_an_empty_list_of_indices_changes_and_reads_nothing() -> None:
    v = _variable()
    v.batch_scatter_update(wb.IndexedSlices(np.zeros((0, 2)), []))
    v.scatter_add(wb.IndexedSlices(np.zeros((0, 2)), []))
    v.scatter_nd_add(np.zeros((0, 2)), [])
    np.testing.assert_array_equal(v.numpy(), np.arange(6.0).reshape(3, 2))
    assert v.gather_nd(np.zeros((0, 1))).shape == v.sparse_read([]).shape == (0, 2)


def test_numbers_do_not_become_elements_of_texts() -> None:
    v = wb.Variable(["a", "b"])
    with pytest.raises(TypeError, match=r"scatter_nd_update .*: values of float32 do not fit"):
        v.scatter_nd_update([[0]], [1.0])
    with pytest.raises(TypeError, match="values of float32 do not fit object; give texts"):
        v.scatter_update(wb.IndexedSlices([1.0], [0]))
    assert v.scatter_nd_update([[0]], ["c"]).numpy().tolist() == [b"c", b"b"]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda v: v.scatter_nd_add([[7]], [[1.0, 1]]), InvalidArgumentError, r"indices\[0\] = \[7\]"),
        (lambda v: v.gather_nd([[-1, 0]]), InvalidArgumentError, r"outside of \(3, 2\)"),
        (lambda v: v.scatter_nd_add([[0, 0, 0]], [1.0]), ValueError, "1 to 2 of them"),
        (lambda v: v.gather_nd(3), ValueError, "holds coordinates"),
        (lambda v: v.scatter_nd_add([[0]], [1.0]), ValueError, r"need values of shape \(1, 2\)"),
        (lambda v: v.scatter_nd_add([[0, 0]], [1j]), TypeError, "complex128 do not fit float64"),
        (lambda v: v.scatter_nd_add([[0.5]], [[1.0, 1]]), TypeError, "indices must be integers"),
        (lambda v: v.batch_scatter_update(3), TypeError, "needs wb.IndexedSlices"),
        (lambda v: v.batch_scatter_update(wb.IndexedSlices([1.0], 0)), ValueError, "at least one dimension"),
        (lambda v: v.batch_scatter_update(wb.IndexedSlices([[1.0]], [[2]])), InvalidArgumentError, "outside"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(call: Any, error: Any, text: str) -> None:
    v = _variable()
    with pytest.raises(error, match=text):
        call(v)
    np.testing.assert_array_equal(v.numpy(), np.arange(6.0).reshape(3, 2))


def test_a_strategys_variable_refuses_them_and_its_components_take_them(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable(np.zeros((2, 2)))
    with pytest.raises(NotImplementedError, match=r"scatter_nd_add of variable 'Variable:0'.*; use assign"):
        v.scatter_nd_add([[0, 1]], [1.0])
    with pytest.raises(NotImplementedError, match="batch_scatter_update"):
        v.batch_scatter_update(wb.IndexedSlices(np.ones((2, 1)), [[0], [1]]))
    strategy.extended.update(v, lambda part: part.scatter_nd_add([[0, 1]], [1.0]))
    assert v.numpy().tolist() == [[0, 1], [0, 0]]
    assert v.gather_nd([[0, 1], [1, 1]]).tolist() == [1, 0]
    assert (v.get_shape(), v.is_initialized()) == ((2, 2), True)
