"""What replicas compute for `wb.inspect`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workbench.backends.summary import Summary
from workbench.ui.summaries import described, largest_difference


@pytest.mark.parametrize(
    "value", [1, 2.5, True, np.float32(3), np.zeros((0, 4)), np.ones((2, 3), np.complex64)]
)
def test_numbers_and_arrays_are_summarised(value: object) -> None:
    assert isinstance(described(value), Summary)


@pytest.mark.parametrize("value", ["text", b"bytes", object(), np.array([object()])])
def test_anything_else_is_described_by_its_type(value: object) -> None:
    assert described(value) == type(value).__name__


def test_the_largest_difference_is_that_of_the_values() -> None:
    assert largest_difference(np.array([1.0, 2.0]), np.array([1.0, 2.5])) == 0.5
    assert largest_difference(np.array([True]), np.array([False])) == 1.0
    assert largest_difference(np.array([1j]), np.array([-1j])) == 2.0


def test_equal_nans_and_infinities_are_no_difference() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1.0])

    assert largest_difference(values, values.copy()) == 0.0


def test_a_nan_on_one_side_only_is_infinitely_far() -> None:
    assert largest_difference(np.array([np.nan]), np.array([1.0])) == math.inf


def test_arrays_of_different_shape_cannot_be_compared() -> None:
    assert math.isnan(largest_difference(np.zeros(3), np.zeros(4)))


def test_empty_arrays_do_not_differ() -> None:
    assert largest_difference(np.zeros(0), np.zeros(0)) == 0.0
