"""Copies that differ, in words."""

from __future__ import annotations

import math

import pytest

from workbench.ui.inspect.apart_text import apart_text
from workbench.ui.inspect.differences import Gap
from workbench.ui.inspect.since_step import UNKNOWN, Since

SAME = Gap(0.0)


def sentence(contents: str, *gaps: Gap, since: Since = UNKNOWN, shape: tuple[int, ...] = (20, 64)) -> str:
    return apart_text(contents, gaps, since, shape, complete=True)[0]


@pytest.mark.parametrize(
    ("gap", "where"),
    [
        (Gap(0.5, 3, 8, 8, 1), ", in row 8 only"),
        (Gap(0.5, 3, 8, 12, 2), ", in rows 8 and 12 only"),
        (Gap(0.5, 9, 8, 12, 5), ", in rows 8 to 12 only"),
        (Gap(0.5, 9, 1, 18, 5), ", in 5 of 20 rows"),
        (Gap(0.5, 99, 0, 19, 20), ""),
    ],
)
def test_it_is_said_where_the_odd_one_differs(gap: Gap, where: str) -> None:
    since = Since(42, "at step 42", 42)
    told = sentence("aaba", SAME, SAME, gap, SAME, since=since)
    assert told == f"Replica 2 differs from the other 3 since step 42{where}"


def test_the_odd_one_is_named_whatever_it_is_compared_with() -> None:
    gap = Gap(1.0, 1, 0, 0, 1)
    assert sentence("baaa", SAME, gap, gap, gap).startswith("Replica 0 differs from the other 3")
    assert sentence("aabb", SAME, SAME, gap, gap).startswith("Replicas 2 and 3 differ from replicas 0 and 1")
    assert sentence("aaaabbbb", *[SAME] * 4, *[gap] * 4).startswith(
        "Replicas 4, 5, 6 and 1 more differ from replicas 0, 1, 2 and 1 more"
    )
    assert sentence("abc", SAME, gap, gap).startswith("All 3 copies differ")
    assert sentence("ab", SAME, gap).startswith("Both copies differ")


def test_what_is_not_known_is_not_said() -> None:
    gap = Gap(1.0, 1, 0, 0, 1)
    contents = "aab"
    between = Since(9, "between steps 3 and 9", 3)
    told, evidence = apart_text(contents, [SAME, SAME, gap], between, (20, 64), complete=False)
    assert told == "Replica 2 differs from the other 2, between steps 3 and 9"
    assert evidence == "the largest difference is 1.00; replicas 0 and 1 are equal"
    assert apart_text(contents, [], UNKNOWN, (3,), complete=False)[1].startswith(
        "their shapes or dtypes differ"
    )
    alike = apart_text(contents, [SAME, SAME, SAME], UNKNOWN, (3,), complete=True)
    assert alike[1].startswith("they differ in their bits alone")


def test_elements_of_vectors_are_called_so_and_nan_is_infinitely_far() -> None:
    gap = Gap(math.inf, 1, 2, 2, 1)
    assert (
        sentence("aab", SAME, SAME, gap, shape=(5,))
        == "Replica 2 differs from the other 2, in element 2 only"
    )
    assert "inf" in apart_text("aab", [SAME, SAME, gap], UNKNOWN, (5,), complete=True)[1]
