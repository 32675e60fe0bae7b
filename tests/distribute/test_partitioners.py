"""Partitioners beyond the recorded cases of tests/reference."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import workbench as wb

partitioners = wb.distribute.experimental.partitioners


def test_variables_without_rows_or_columns_have_no_size_to_divide() -> None:
    assert partitioners.FixedShardsPartitioner(3)((0, 4), np.float32) == [0, 1]
    # At least one, as in TensorFlow.
    assert partitioners.MinSizePartitioner(1, 5)((0, 4), np.float32) == [1, 1]
    assert partitioners.MaxSizePartitioner(1)((0, 4), np.float32) == [0, 1]
    assert partitioners.MaxSizePartitioner(1)((4, 0), np.float32) == [1, 1]


def test_a_negative_axis_counts_from_the_last() -> None:
    assert partitioners.FixedShardsPartitioner(2)((4, 6), np.float32, axis=-1) == [1, 2]
    assert partitioners.MinSizePartitioner(4, 4)((3, 6), np.float32, axis=-2) == [3, 1]
    assert partitioners.MaxSizePartitioner(16)((3, 8), np.float32, axis=-1) == [1, 8]


def test_texts_count_as_many_bytes_as_one_says() -> None:
    assert partitioners.MaxSizePartitioner(32, bytes_per_string=8)((8,), "string") == [2]
    assert partitioners.MinSizePartitioner(32, 9, bytes_per_string=8)((8,), object) == [2]


def test_a_partitioner_of_ones_own_is_a_subclass() -> None:
    class PerRow(partitioners.Partitioner):
        def __call__(self, shape: Any, dtype: Any, axis: int = 0) -> list[int]:
            return [size if dimension == axis else 1 for dimension, size in enumerate(shape)]

    assert PerRow()((3, 2), np.float32) == [3, 1]
    with pytest.raises(TypeError, match="abstract"):
        partitioners.Partitioner()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: partitioners.MinSizePartitioner(0),
            "min_shard_bytes must be an integer of at least 1, got 0",
        ),
        (
            lambda: partitioners.MaxSizePartitioner(8, -1),
            "max_shards must be an integer of at least 1, got -1",
        ),
        (lambda: partitioners.MaxSizePartitioner(8, bytes_per_string=0), "bytes_per_string must be"),
        (lambda: partitioners.FixedShardsPartitioner(2)((), np.float32), r"shape \(\) has no dimension 0"),
        (
            lambda: partitioners.FixedShardsPartitioner(2)((4,), np.float32, axis=1),
            "no dimension 1 to divide",
        ),
        (lambda: partitioners.FixedShardsPartitioner(2)((4,), np.float32, axis=-2), "no dimension -2"),
        (lambda: partitioners.FixedShardsPartitioner(2)((4, None), np.float32), "sizes of 0 and more"),
        (lambda: partitioners.MaxSizePartitioner(8)((-1, 4), np.float32), "sizes of 0 and more"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()


def test_a_partitioner_shows_its_settings() -> None:
    assert repr(partitioners.FixedShardsPartitioner(3)) == "FixedShardsPartitioner(num_shards=3)"
    assert repr(partitioners.MaxSizePartitioner(8)) == (
        "MaxSizePartitioner(max_shard_bytes=8, max_shards=None, bytes_per_string=16)"
    )


def test_they_are_found_under_both_names_whichever_is_used_first() -> None:
    code = (
        "import workbench as wb; wb.distribute.partitioners.FixedShardsPartitioner; "
        "assert wb.distribute.partitioners is wb.distribute.experimental.partitioners"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
