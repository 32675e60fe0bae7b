"""What replicas compute for `wb.inspect`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workbench.backends.summary import Summary, summary
from workbench.ui.inspect.differences import gap_between
from workbench.ui.inspect.summaries import described


@pytest.mark.parametrize(
    "value", [1, 2.5, True, np.float32(3), np.zeros((0, 4)), np.ones((2, 3), np.complex64)]
)
def test_numbers_and_arrays_are_summarised(value: object) -> None:
    assert isinstance(described(value), Summary)


@pytest.mark.parametrize("value", ["text", b"bytes", object(), np.array([object()])])
def test_anything_else_is_described_by_its_type(value: object) -> None:
    assert described(value) == type(value).__name__


def test_the_largest_difference_is_that_of_the_values() -> None:
    assert gap_between(np.array([1.0, 2.0]), np.array([1.0, 2.5])).largest == 0.5
    assert gap_between(np.array([True]), np.array([False])).largest == 1.0
    assert gap_between(np.array([1j]), np.array([-1j])).largest == 2.0


def test_equal_nans_and_infinities_are_no_difference() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1.0])

    assert gap_between(values, values.copy()).largest == 0.0


def test_a_nan_on_one_side_only_is_infinitely_far() -> None:
    assert gap_between(np.array([np.nan]), np.array([1.0])).largest == math.inf


def test_arrays_of_different_shape_cannot_be_compared() -> None:
    assert math.isnan(gap_between(np.zeros(3), np.zeros(4)).largest)


def test_empty_arrays_do_not_differ() -> None:
    assert gap_between(np.zeros(0), np.zeros(0)).largest == 0.0


def test_arrays_that_are_not_contiguous_are_read_as_if_they_were() -> None:
    array = np.random.default_rng(0).normal(size=(70, 1000, 3)).astype(np.float32)

    for other in (array.T, array[::2], array[..., ::2], np.broadcast_to(array, (2, *array.shape))):
        assert summary(other) == summary(np.ascontiguousarray(other))


@pytest.mark.parametrize("turned", [False, True])
def test_of_huge_arrays_evenly_spaced_stretches_are_read(low_limits: None, turned: bool) -> None:
    array = np.arange(1 << 21, dtype=np.float64).reshape(1 << 10, 1 << 11)
    array = np.asfortranarray(array) if turned else array

    found = summary(array)

    assert found.read == 4 << 16
    assert (found.min, found.max) == (0, (24 << 16) + (1 << 16) - 1)
    assert summary(array, exact=True).max == (1 << 21) - 1
    assert summary(array, exact=True).read == 1 << 21


def test_all_of_an_array_up_to_the_limit_is_read(low_limits: None) -> None:
    array = np.ones(1 << 20, np.int8)

    assert summary(array).read == 1 << 20


def test_a_histogram_of_a_part_counts_nothing_beyond_what_was_read(low_limits: None) -> None:
    array = np.zeros(1 << 21)
    array[1 << 16 : 2 << 16] = 1e9  # not in the first of eight stretches
    array[0] = 1.0

    found = summary(array)

    assert found.max == 1.0
    assert 0 < sum(found.histogram) < 1 << 16


def test_the_largest_difference_of_long_arrays_is_found_wherever_it_is() -> None:
    array = np.zeros(200_001, np.float32)
    for place in (0, 65_535, 65_536, 200_000):
        other = array.copy()
        other[place] = 3

        assert gap_between(array, other).largest == 3.0
    assert gap_between(np.zeros((300, 400)).T, np.zeros((400, 300))).largest == 0.0


def test_places_of_differences_are_counted_across_pieces_and_stretches() -> None:
    array = np.zeros((4, 50_000), np.float32)
    other = array.copy()
    other[1, 40_000:] = 1
    other[3, 7] = -2

    assert gap_between(array, other, row=50_000) == (2.0, 10_001, 1, 3, 2)
    parts = [
        np.concatenate([each.reshape(-1)[1 << 16 : 2 << 16], each.reshape(-1)[2 << 16 : 3 << 16]])
        for each in (array, other)
    ]
    assert gap_between(*parts, row=50_000, numbers=[1, 2]) == (2.0, 10_001, 1, 3, 2)
    assert gap_between(np.float32(1), np.float32(3)) == (2.0, 1, 0, 0, 1)


def test_what_does_anything_when_asked_for_its_numbers_is_described_by_its_type() -> None:
    class Broken:
        def __array__(self, *_: object) -> np.ndarray:
            raise KeyError("no numbers")

    assert described(Broken()) == "Broken"
