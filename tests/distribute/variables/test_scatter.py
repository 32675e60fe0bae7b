"""Scatter updates of variables, on both kinds of cluster; expected values by TensorFlow's rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.distribute import get_replica_context
from workbench.distribute.experimental import CentralStorageStrategy
from workbench.errors import InvalidArgumentError

ROWS = wb.IndexedSlices(np.float32([2, 4, 5]), [0, 2, 2])


def _own_rows() -> wb.IndexedSlices:
    """The rows that replica r updates: r and r + 1, with values r + 1 and r + 2."""
    r = get_replica_context().replica_id_in_sync_group
    return wb.IndexedSlices(np.float32([r + 1, r + 2]), np.array([r, r + 1]), (3,))


def _components(variable: Any) -> list[Any]:
    return [part.numpy().tolist() for part in variable.values]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("scatter_add", [8, 6, 15]),
        ("scatter_sub", [4, 6, -3]),
        ("scatter_mul", [12, 6, 120]),
        ("scatter_div", [3, 6, 0.3]),
        ("scatter_min", [2, 6, 4]),
        ("scatter_max", [6, 6, 6]),
        ("scatter_update", [2, 6, 5]),
    ],
)
def test_rows_change_on_every_component(strategy: Any, how: str, expected: list[float]) -> None:
    with strategy.scope():
        v = wb.Variable(np.float32([6, 6, 6]))
    plain = wb.Variable(np.float32([6, 6, 6]))
    for variable in (v, plain):
        assert getattr(variable, how)(ROWS) is variable
        np.testing.assert_allclose(variable.numpy(), np.float32(expected), rtol=1e-6)
    assert _components(v)[0] == _components(v)[1]


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        ("NONE", [[11, 12, 10], [10, 12, 13]]),
        ("SUM", [[11, 14, 13]] * 2),
        ("MEAN", [[10.5, 12, 11.5]] * 2),
        ("ONLY_FIRST_REPLICA", [[11, 12, 10]] * 2),
    ],
)
def test_aggregation_combines_the_rows_of_replicas(strategy: Any, aggregation: str, expected: Any) -> None:
    with strategy.scope():
        v = wb.Variable(np.full(3, 10, np.float32), aggregation=aggregation)
    strategy.run(lambda: v.scatter_add(_own_rows()))
    assert _components(v) == expected


def test_rows_of_a_row_may_be_arrays_or_one_number(strategy: Any) -> None:
    with strategy.scope():
        table = wb.Variable(np.zeros((3, 2), np.float32))
    table.scatter_update(wb.IndexedSlices(np.float32([[1, 2]]), [1]))
    table.scatter_add(wb.IndexedSlices(np.float32(3), [2, 2]))
    assert table.numpy().tolist() == [[0, 0], [1, 2], [6, 6]]


def test_whole_numbers_are_divided_towards_zero(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable(np.int32([-7, 7, 9]))
    v.scatter_div(wb.IndexedSlices(np.int32([2, -2, 2]), [0, 1, 1]))
    assert v.numpy().tolist() == [-3, -1, 9]


def test_each_component_gets_its_own_rows_outside_of_replica_functions(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable(np.zeros(3, np.float32), aggregation="SUM")
    v.scatter_add(strategy.run(_own_rows))
    assert _components(v) == [[1, 2, 0], [0, 2, 3]]
    v.values[1].scatter_sub(wb.IndexedSlices(np.float32([3]), [2]))
    assert _components(v) == [[1, 2, 0], [0, 2, 0]]


def test_an_update_function_scatters_its_component(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable(np.zeros(3, np.float32))
    strategy.extended.update(v, lambda part, rows: part.scatter_add(rows), args=(ROWS,))
    assert _components(v) == [[2, 0, 9]] * 2


def test_central_storage_scatters_its_one_copy(cluster: Any) -> None:
    central = CentralStorageStrategy()
    with central.scope():
        v = wb.Variable(np.zeros(3, np.float32), aggregation="SUM")
    v.scatter_add(ROWS)
    assert v.numpy().tolist() == [2, 0, 9]
    central.run(lambda: v.scatter_add(_own_rows()))
    assert v.numpy().tolist() == [3, 4, 12]
    central.group.close()


def test_a_failed_step_undoes_its_rows(strategy: Any) -> None:
    with strategy.scope():
        v = wb.Variable(np.zeros(3, np.float32))

    def fail() -> None:
        v.scatter_add(_own_rows())
        if get_replica_context().replica_id_in_sync_group:
            raise LookupError("after scattering")

    with pytest.raises(LookupError):
        strategy.run(fail)
    assert _components(v) == [[0, 0, 0]] * 2


@pytest.mark.parametrize(
    ("rows", "error", "text"),
    [
        (np.ones(3, np.float32), TypeError, "needs wb.IndexedSlices"),
        (
            wb.IndexedSlices(np.float32([1]), [3]),
            InvalidArgumentError,
            r"indices\[0\] = 3 is not in \[0, 3\)",
        ),
        (wb.IndexedSlices(np.float32([1]), [-1]), InvalidArgumentError, r"-1 is not in"),
        (wb.IndexedSlices(np.float32([1, 2]), [0]), ValueError, "need values of shape"),
        (wb.IndexedSlices(np.float32([1]), [0.5]), TypeError, "must be integers"),
        (wb.IndexedSlices(np.complex64([1]), [0]), TypeError, "do not fit float32"),
    ],
)
def test_rows_that_do_not_fit_are_refused(strategy: Any, rows: Any, error: type, text: str) -> None:
    with strategy.scope():
        v = wb.Variable(np.zeros(3, np.float32))
    with pytest.raises(error, match=text):
        v.scatter_add(rows)
    with pytest.raises(error, match=text):
        strategy.run(lambda: v.scatter_add(rows))
    assert _components(v) == [[0, 0, 0]] * 2


def test_what_the_reference_does_not_scatter_is_refused(strategy: Any) -> None:
    with strategy.scope():
        on_read = wb.Variable(np.zeros(3, np.float32), synchronization="ON_READ", aggregation="SUM")
        summed = wb.Variable(np.zeros(3, np.float32), aggregation="SUM")
        scalar = wb.Variable(0.0)
    for place in (lambda fn: fn(), strategy.run):
        with pytest.raises(NotImplementedError, match="ON_READ"):
            place(lambda: on_read.scatter_add(ROWS))
        with pytest.raises(NotImplementedError, match="aggregation SUM"):
            place(lambda: summed.scatter_min(ROWS))
    with pytest.raises(ValueError, match="scalar"):
        scalar.scatter_add(ROWS)


def test_jax_scatters_its_arrays(cluster: Any) -> None:
    pytest.importorskip("jax", reason="JAX is not installed: pip install -e '.[jax]'")
    strategy = wb.MirroredStrategy(["CPU:0", "CPU:1"], backend="jax")
    with strategy.scope():
        v = wb.Variable(np.full(3, 6, np.float32))
    v.scatter_mul(ROWS)
    v.scatter_sub(ROWS)
    assert v.numpy().tolist() == [10, 6, 111]
    strategy.group.close()
