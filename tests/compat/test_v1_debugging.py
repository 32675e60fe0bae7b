"""Assertions with the arguments of TensorFlow 1.15; expected outcomes are those of `tf.compat.v1.debugging`, 2.21."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.compat.v1 import debugging
from workbench.errors import InvalidArgumentError

_DATA = ["seen", np.array([7, 8, 9, 10])]


@pytest.mark.parametrize(
    ("check", "operands"),
    [
        (debugging.assert_equal, (1, 2)),
        (debugging.assert_none_equal, (1, 1)),
        (debugging.assert_less, (2, 2)),
        (debugging.assert_less_equal, (3, 2)),
        (debugging.assert_greater, (2, 2)),
        (debugging.assert_greater_equal, (1, 2)),
        (debugging.assert_near, (1.0, 2.0, None, None)),
        (debugging.assert_positive, (0,)),
        (debugging.assert_negative, (0,)),
        (debugging.assert_non_negative, (-1,)),
        (debugging.assert_non_positive, (1,)),
    ],
)
def test_an_error_shows_message_and_data(check: Callable[..., None], operands: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^loss: .*; seen; data 1 int64\[4\] = \[7, 8, …\]$"):
        check(*operands, _DATA, 2, "loss", "name")
    with pytest.raises(InvalidArgumentError, match=r"^loss: ") as caught:
        check(*operands, message="loss")
    assert "seen" not in str(caught.value)


@pytest.mark.parametrize(
    ("check", "rank"),
    [(debugging.assert_rank, 2), (debugging.assert_rank_at_least, 2), (debugging.assert_rank_in, [0, 2])],
)
def test_ranks_take_the_same_arguments(check: Callable[..., None], rank: Any) -> None:
    with pytest.raises(ValueError, match=r"^loss: "):
        check([1.0], rank, _DATA, 2, "loss")


def test_old_names_of_arguments_are_taken() -> None:
    with pytest.raises(ValueError, match=r"^loss"):
        debugging.assert_all_finite([np.nan], "loss")
    with pytest.raises(ValueError, match=r"^loss"):
        debugging.assert_all_finite(x=[np.nan], message="loss")
    with pytest.raises(ValueError, match="one argument"):
        debugging.assert_all_finite([1.0], "loss", x=[1.0])
    assert debugging.assert_all_finite([1.0], "loss").tolist() == [1]
    with pytest.raises(ValueError, match=r"^loss: "):
        debugging.assert_scalar([1.0], "name", "loss")


@pytest.mark.parametrize(
    ("x", "non_decreasing", "strictly"),
    [
        ([1, 1, 2], True, False),
        ([1, 2, 3], True, True),
        ([3, 1], False, False),
        ([], True, True),
        ([[1, 2], [3, 2]], False, False),
        (5, True, True),
        ([1.0, np.nan], False, False),
    ],
)
def test_order_is_that_of_the_flat_array(x: Any, non_decreasing: bool, strictly: bool) -> None:
    assert debugging.is_non_decreasing(x) == non_decreasing
    assert debugging.is_strictly_increasing(x) == strictly


@pytest.mark.parametrize("x", [["a", "b"], [True, False]])
def test_order_is_one_of_numbers(x: Any) -> None:
    for check in (debugging.is_non_decreasing, debugging.is_strictly_increasing):
        with pytest.raises(TypeError, match="numbers with an order"):
            check(x)


def test_floats_are_told_apart() -> None:
    x = [1.0, np.nan, np.inf]

    assert debugging.is_finite(x).tolist() == [True, False, False]
    assert debugging.is_nan(x).tolist() == [False, True, False]
    assert debugging.is_inf(x).tolist() == [False, False, True]
    for check in (debugging.is_finite, debugging.is_nan, debugging.is_inf):
        for other in ([1], ["a"], [1j]):
            with pytest.raises(InvalidArgumentError, match="floating"):
                check(other)


def test_everything_of_today_is_there() -> None:
    assert set(wb.debugging.__all__) <= set(debugging.__all__)
