"""What is said of arrays: figures, histogram, digest, whatever their size and dtype."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from workbench.backends.summary import BINS, MOST_IN_HISTOGRAM, spacing, summary

LARGE = (1 << 19) + 1234  # more than a chunk, and more than is summarized in one piece


def test_summary_leaves_out_what_is_not_finite() -> None:
    array = np.array([[1.0, 0.0, np.nan], [3.0, np.inf, -np.inf]], np.float32)
    found = summary(array)
    assert (found.shape, found.dtype) == ((2, 3), "float32")
    assert (found.zeros, found.nan, found.inf) == (1, 1, 2)
    assert (found.min, found.max) == (0.0, 3.0)
    assert found.mean == pytest.approx(4 / 3)
    assert found.l2 == pytest.approx(math.sqrt(10))
    assert found.sha256 == hashlib.sha256(array.tobytes()).hexdigest()


@pytest.mark.parametrize("array", [np.empty((0, 3)), np.array([np.nan]), np.array([])])
def test_summary_without_finite_elements(array: np.ndarray) -> None:
    found = summary(array)
    assert math.isnan(found.mean)
    assert math.isnan(found.max)
    assert found.l2 == 0.0


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float16, np.complex128, ml_dtypes.bfloat16])
def test_summary_of_every_kind(dtype: Any) -> None:
    found = summary(np.array([0, 1, 1]).astype(dtype)[::-1])
    assert found.mean == pytest.approx(2 / 3)
    assert found.zeros == 1


def test_the_first_element_that_is_not_finite_is_found() -> None:
    array = np.zeros((4, LARGE // 4), np.float32)
    assert summary(array).first_bad == -1
    array[3, 17], array[2, 5] = np.nan, -np.inf
    assert np.unravel_index(summary(array).first_bad, array.shape) == (2, 5)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, np.int32, np.uint8, np.complex64, ml_dtypes.bfloat16]
)
def test_chunks_of_a_large_array_come_to_the_figures_of_the_whole(dtype: Any) -> None:
    array = (np.random.default_rng(3).normal(40.0, 3.0, LARGE)).astype(dtype)
    wide = np.abs(array).astype(np.float64)
    found = summary(array)

    assert found.mean == pytest.approx(wide.mean(), rel=1e-5)
    assert found.std == pytest.approx(wide.std(), rel=1e-4)
    assert found.l2 == pytest.approx(np.linalg.norm(wide), rel=1e-5)
    assert (found.min, found.max) == (wide.min(), wide.max())
    assert found.zeros == np.count_nonzero(wide == 0)


def test_the_spread_of_large_values_that_hardly_differ_is_kept() -> None:
    array = np.float32(1000) + np.random.default_rng(3).integers(-1, 2, LARGE).astype(np.float32) / 1024
    assert summary(array).std == pytest.approx(array.astype(np.float64).std(), rel=1e-4)
    assert summary(np.full(LARGE, np.float32(0.1))).std == 0.0


def test_squares_that_overflow_are_added_up_in_double_precision() -> None:
    array = np.tile(np.array([1e30, -1e30], np.float32), LARGE // 2)
    assert summary(array).std == pytest.approx(1e30, rel=1e-5)


def test_a_histogram_counts_finite_elements_in_equal_bins() -> None:
    array = np.array([0.0, 0.1, BINS, np.nan, np.inf, BINS / 2])
    counts = summary(array).histogram
    assert (len(counts), counts[0], counts[BINS // 2], counts[-1], sum(counts)) == (BINS, 2, 1, 1, 4)


@pytest.mark.parametrize("array", [np.ones(5), np.zeros(0), np.array([np.nan, 2.0]), np.float32(3)])
def test_without_spread_there_is_no_histogram(array: Any) -> None:
    assert summary(array).histogram == ()


def test_the_histogram_of_the_widest_range_is_one() -> None:
    most = np.finfo(np.float64).max
    counts = summary(np.array([-most, 0.0, most])).histogram
    assert (counts[0], counts[BINS // 2], counts[-1]) == (1, 1, 1)


def test_of_a_large_array_the_histogram_counts_evenly_spaced_elements_of_all_columns() -> None:
    columns = np.tile(np.arange(BINS + 1, dtype=np.float32), (4 * MOST_IN_HISTOGRAM // BINS, 1))
    counts = summary(columns).histogram
    assert sum(counts) == -(-columns.size // spacing(columns.size)) <= 2 * MOST_IN_HISTOGRAM
    assert min(counts) > 0


@pytest.mark.parametrize("shape", [(LARGE,), (LARGE - 3,), (3, LARGE // 3)])
def test_digests_of_large_arrays_tell_every_single_bit_apart(shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    base = summary(array).sha256
    assert summary(array.copy()).sha256 == base
    seen = {base}
    for place in (0, 1, LARGE // 2, array.size - 1):
        for bit in (0, 13, 31):
            other = array.copy()
            other.reshape(-1).view(np.uint32)[place] ^= np.uint32(1 << bit)
            seen.add(summary(other).sha256)
    swapped = array.copy().reshape(-1)
    swapped[[5, 6]] = swapped[[6, 5]]
    signs = array.copy().reshape(-1)
    signs[[1, 3]] *= -1  # the highest bits of two words
    seen |= {summary(swapped).sha256, summary(signs).sha256}
    assert len(seen) == 15
