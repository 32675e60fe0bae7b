"""Elements of a value as a heat map: which are shown, how they are pooled, and that few bytes travel."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.ui.conftest import Tags
from workbench.errors import FailedPreconditionError, InvalidArgumentError
from workbench.ui.inspect.elements import window_at
from workbench.ui.inspect.facts import inspected
from workbench.ui.inspect.values_source import ValuesSource
from workbench.ui.inspect.windows import MOST_CELLS, elements_of, pooled, window

CAP_BYTES = 64 * 1024


@pytest.fixture(scope="module")
def big(strategy: wb.MirroredStrategy) -> wb.distribute.PerReplica:
    """Per replica 3 × 400 × 500, with NaN in replica 1."""

    def step() -> Any:
        rank = wb.distribute.get_replica_context().replica_id_in_sync_group
        array = np.broadcast_to(np.arange(400.0)[:, None], (3, 400, 500)).copy()
        array[1] += rank
        if rank == 1:
            array[2, 17, 33] = np.nan
        return array

    return strategy.run(step)


def request(**parts: Any) -> dict[str, Any]:
    return {
        "kind": "elements",
        "value": 0,
        "replica": 0,
        "difference": False,
        "axes": [0, 1],
        "index": [0, 0],
        "extent": [None, None],
    } | parts


@pytest.mark.parametrize(
    ("shape", "elements", "axes", "index", "extent"),
    [
        ((4, 6), ..., (0, 1), (0, 0), (4, 6)),
        ((2, 4, 6), ..., (1, 2), (0, 0, 0), (4, 6)),
        ((2, 4, 6), np.s_[1, ..., 2], (-1, 1), (1, 0, 2), (1, 4)),
        ((2, 4, 6), np.s_[:, 3, 1:5], (0, 2), (0, 3, 1), (2, 4)),
        ((2, 4, 6), np.s_[-1, -2], (-1, 2), (1, 2, 0), (1, 6)),
        ((7,), np.s_[2:100], (-1, 0), (2,), (1, 5)),
        ((), ..., (-1, -1), (), (1, 1)),
        ((5, 5), np.s_[np.int64(3), 2], (-1, -1), (3, 2), (1, 1)),
    ],
)
def test_an_index_chooses_the_axes_and_places(
    shape: Any, elements: Any, axes: Any, index: Any, extent: Any
) -> None:
    found = window_at(shape, elements)

    assert (found.axes, found.index, found.extent) == (axes, index, extent)
    array = np.arange(math.prod(shape)).reshape(shape)
    expected = array[elements] if elements is not ... or array.ndim < 3 else array[0]
    assert elements_of(array, found).size == expected.size
    assert elements_of(array, found).reshape(-1).tolist() == np.asarray(expected).reshape(-1).tolist()


@pytest.mark.parametrize(
    ("shape", "elements", "what"),
    [
        ((2, 4, 6), np.s_[:, :, :], "leaves 3 axes"),
        ((2, 4), np.s_[2], "axis 0 has places 0 to 1, got 2"),
        ((2, 4), np.s_[0, ::2], "has a step"),
        ((2, 4), np.s_[0, 3:3], "is empty"),
        ((2, 4), np.s_[0, 0, 0], "more places than"),
        ((2, 4), "all", "axis 0 has places"),
    ],
)
def test_an_index_that_cannot_be_shown_is_refused(shape: Any, elements: Any, what: str) -> None:
    with pytest.raises(InvalidArgumentError, match=what):
        window_at(shape, elements)


@pytest.mark.parametrize("shape", [(1, 1), (1, 10**6), (10**6, 3), (70, 70), (2048, 4096), (257, 17)])
def test_what_is_shown_has_few_cells_and_covers_everything(shape: tuple[int, int]) -> None:
    found = window(shape)
    rows, columns = found.grid

    assert rows * columns <= MOST_CELLS
    assert max(rows, columns) <= 256
    assert rows * found.steps[0] >= shape[0] > (rows - 1) * found.steps[0]
    assert columns * found.steps[1] >= shape[1] > (columns - 1) * found.steps[1]


def test_a_cell_is_the_mean_of_its_elements() -> None:
    values = np.arange(30, dtype=np.float32).reshape(5, 6)

    cells = pooled(values, (2, 4))
    assert cells.shape == (3, 2)
    assert cells[0, 0] == values[:2, :4].mean()
    assert cells[2, 1] == values[4:, 4:].mean()
    np.testing.assert_array_equal(pooled(values, (1, 1)), values)


def test_pooling_never_loses_a_nan_or_an_infinity() -> None:
    values = np.zeros((64, 64))
    values[3, 5], values[3, 40], values[40, 5] = np.nan, np.inf, -np.inf
    values[40, 40:42] = np.inf, np.nan

    cells = pooled(values, (32, 32))
    assert np.isnan(cells[0, 0])
    assert cells[0, 1] == np.inf
    assert cells[1, 0] == -np.inf
    assert np.isnan(cells[1, 1])


def test_of_differences_the_largest_is_kept_with_its_sign() -> None:
    one, other = np.ones((4, 4)), np.ones((4, 4))
    one[0, 1], one[3, 0], one[3, 1] = 1.5, -2.0, 2.5
    one[0, 3] = other[0, 3] = np.nan  # equal
    one[2, 3] = other[2, 3] = np.inf
    other[3, 3] = np.nan

    cells = pooled(one, (2, 2), minus=other)
    assert cells[:, 0].tolist() == [0.5, -3.0]
    assert cells[0, 1] == 0
    assert np.isnan(cells[1, 1])


def test_axes_can_be_turned_round() -> None:
    array = np.arange(12).reshape(3, 4)

    assert elements_of(array, window((3, 4), axes=(1, 0))).tolist() == array.T.tolist()


def test_what_a_view_asks_for_is_moved_into_the_array() -> None:
    found = window((3, 4), axes=(0, 0), index=(7, -1), extent=(9, 9))

    assert (found.axes, found.index, found.extent) == ((0, 1), (2, 0), (1, 4))


def test_elements_of_the_replica_with_nan_are_shown(big: Any) -> None:
    found = wb.inspect(big, elements=np.s_[2, 10:20, 30:40])
    elements = found.elements

    assert elements is not None
    assert (elements.replica, elements.steps) == (1, (1, 1))
    assert elements.cells[7][3] == "nan"
    assert elements.cells[6][3] == 16.0
    text = repr(found)
    assert "big[2, 10:20, 30:40] of replica 1" in text
    assert "!" in text.splitlines()[-3]
    assert "big[2, 10:20, 30:40]" in Tags(found._repr_html_()).text


def test_large_slices_are_pooled_on_the_replica_and_few_bytes_come(big: Any) -> None:
    found = wb.inspect(big, elements=..., replica=0)
    elements = found.elements

    assert elements is not None
    assert elements.steps[0] * elements.steps[1] * MOST_CELLS >= 400 * 500
    assert not big.handle.is_here(0)
    source = ValuesSource(found.values, [big], inspected, elements)
    assert len(json.dumps(source.model(), allow_nan=False)) <= CAP_BYTES
    assert max(map(len, repr(found).splitlines())) <= 88


def test_the_difference_to_replica_0_is_computed_by_the_replicas(big: Any) -> None:
    elements = wb.inspect(big, elements=np.s_[1, :8, :8], difference=True).elements

    assert elements is not None
    assert (elements.replica, elements.difference) == (1, True)
    assert {cell for row in elements.cells for cell in row} == {1.0}


def test_elements_of_variables_and_of_values_in_the_notebook(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        w = wb.Variable(np.arange(6, dtype=np.float32).reshape(2, 3), name="w")

    assert wb.inspect(w, elements=...).elements.cells == ((0.0, 1.0, 2.0), (3.0, 4.0, 5.0))
    assert wb.inspect(np.array([1.0, np.inf]), elements=...).elements.cells == ((1.0, "inf"),)
    assert wb.inspect(3.5, elements=...).elements.cells == ((3.5,),)


@pytest.mark.parametrize(
    ("value", "options", "what"),
    [
        ([1.0, 2.0], {}, "structure of 2"),
        ("text", {}, "no elements: it is str"),
        (np.zeros((0, 3)), {}, "no elements: it is of shape"),
        (np.ones(3), {"replica": 4}, "has replicas -1, not 4"),
        (np.ones(3), {"difference": True}, "cannot be compared"),
    ],
)
def test_elements_that_are_not_there_are_refused(value: Any, options: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidArgumentError, match=what):
        wb.inspect(value, elements=..., **options)


def test_a_view_gets_elements_when_it_asks_for_them(big: Any) -> None:
    source = ValuesSource(wb.inspect(big).values, [big], inspected)
    assert source.model()["elements"] is None

    answer = source.answer(request(replica=1, axes=[2, 1], index=[2, 16, 32], extent=[4, 3], difference=True))
    assert answer is not None
    elements = answer["model"]["elements"]
    assert (elements["axes"], elements["extent"], elements["index"]) == ([2, 1], [4, 3], [2, 16, 32])
    assert elements["cells"][1][1] == "nan"
    assert source.model() == answer["model"]
    assert source.answer({"kind": "visible"}) is None


def test_figures_are_looked_up_again_when_a_view_asks_for_that(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        w = wb.Variable(np.zeros(3, np.float32), name="w")
    source = ValuesSource(wb.inspect(w).values, [w], inspected)
    w.assign(np.ones(3, np.float32))

    answer = source.answer({"kind": "again"})
    assert answer is not None
    assert answer["model"]["values"][0]["replicas"][0]["summary"]["mean"] == 1.0


@pytest.mark.parametrize(
    "wrong",
    [{"value": 7}, {"replica": 9}, {"axes": [0]}, {"index": ["x", 0]}, {"extent": None}, {"value": None}],
)
def test_requests_that_make_no_sense_are_refused(big: Any, wrong: dict[str, Any]) -> None:
    source = ValuesSource(wb.inspect(big).values, [big], inspected)

    with pytest.raises(InvalidArgumentError):
        source.answer(request(**wrong))


def test_a_view_does_not_keep_the_value(strategy: wb.MirroredStrategy) -> None:
    value = strategy.run(lambda: np.ones((2, 2)))
    source = ValuesSource(inspected(["v"], [value]), [value], inspected)
    del value

    with pytest.raises(FailedPreconditionError, match="v is gone"):
        source.answer(request())


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.bool_])
def test_whole_numbers_are_pooled_as_floats_are(dtype: Any) -> None:
    array = np.random.default_rng(0).integers(0, 100, (30, 41)).astype(dtype)

    np.testing.assert_allclose(pooled(array, (4, 5)), pooled(array.astype(np.float64), (4, 5)), rtol=1e-12)
