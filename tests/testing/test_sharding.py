"""Checks of who reads what; they need no cluster."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from workbench import data
from workbench.data.sharding.model import Shape
from workbench.testing import assert_every_element_once, assert_sharding

TEN = data.Dataset.from_tensor_slices(np.arange(10))


def test_an_uneven_split_still_reads_every_element_once() -> None:
    assert_every_element_once(TEN.batch(4), 2)
    assert_every_element_once(TEN.shuffle(10, seed=1).batch(4), Shape(2, 2), policy="DATA")


def test_dropped_elements_are_counted() -> None:
    with pytest.raises(AssertionError, match="2 of 10 elements reach no replica; drop_remainder=True"):
        assert_every_element_once(TEN.batch(4, drop_remainder=True), 2)


def test_elements_that_are_read_twice_are_named_with_their_readers() -> None:
    text = "10 elements too many are read: element 0 by replica 0 in step 0 and replica 1 in step 0; .*; …"
    with pytest.raises(AssertionError, match=text):
        assert_every_element_once(TEN.batch(4), Shape(2, 1), policy="OFF")


def test_what_cannot_be_followed_is_not_taken_for_granted() -> None:
    endless = TEN.repeat().batch(4)

    with pytest.raises(AssertionError, match="is unknown: only the first 1,000 steps were looked at"):
        assert_every_element_once(endless, 2)


def test_counts_rows_and_policy_are_compared() -> None:
    assert_sharding(TEN.batch(4), 2, counts=(5, 5), rows=[(2, 2), (2, 2), (1, 1)])
    assert_sharding(TEN.batch(4), Shape(2, 1), policy_used="DATA")
    with pytest.raises(AssertionError) as caught:
        assert_sharding(TEN.batch(4), 2, policy_used="FILE", counts=[6, 4], rows=[(4, 0)])

    first, second, third, *shown = str(caught.value).splitlines()
    assert first == "policy: expected FILE, found DATA"
    assert second == "rows per replica: expected [6, 4], found [5, 5]"
    assert third == "rows per step and replica: expected [[4, 0]], found [[2, 2], [2, 2], [1, 1]]"
    assert shown[0].startswith("DistributedDataset: policy AUTO→DATA")


def test_files_are_compared_by_host_and_name(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"part-{number}.txt").write_text(f"{number}a\n{number}b\n", encoding="utf-8")
    lines = data.TextLineDataset([str(tmp_path / f"part-{number}.txt") for number in range(3)]).batch(2)

    assert_sharding(
        lines, Shape(2, 1), policy_used="FILE", files=[["part-2.txt", "part-0.txt"], ["part-1.txt"]]
    )
    with pytest.raises(AssertionError, match="files per host: expected"):
        assert_sharding(lines, Shape(2, 1), files=[["part-0.txt"], ["part-1.txt"]])
