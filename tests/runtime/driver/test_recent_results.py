"""Since when a result has been NaN, from the small results of the newest steps."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import optree
import pytest

from workbench.runtime.comm.messages import PickledLeaf, RemoteLeaf
from workbench.runtime.driver.recent_results import RecentResults

NAN = math.nan


def step(number: int, *values: Any, site: str = "a.py:1") -> Any:
    """A step whose result on each replica is one of `values`."""
    leaves = [[value if type(value) is RemoteLeaf else (value,)] for value in values]
    structures = [optree.tree_structure(0)] * len(leaves)
    return SimpleNamespace(number=number, site=site, name="step", leaves=leaves, structures=structures)


def recent(*steps: Any) -> RecentResults:
    results = RecentResults()
    for each in steps:
        results.add(each)
    return results


def test_it_began_after_the_last_step_in_which_the_result_was_finite() -> None:
    steps = [step(k, 1.0, NAN if k in (2, 5, 6, 7) else 1.0) for k in range(9)]
    results = recent(*steps)
    assert results.bad_since(steps[7], 0, 1) == (5, True)
    assert results.bad_since(steps[5], 0, 1) == (5, True)
    assert results.bad_since(steps[2], 0, 1) == (2, True)


def test_what_is_not_known_to_have_been_finite_before_is_told_apart() -> None:
    steps = [step(k, NAN) for k in range(3, 6)]
    assert recent(*steps).bad_since(steps[-1], 0, 0) == (3, False)
    assert RecentResults().bad_since(steps[-1], 0, 0) == (5, False)


def test_functions_and_places_are_told_apart() -> None:
    other = step(1, 1.0, site="a.py:9")
    bad = step(2, NAN)
    assert recent(step(0, NAN), other, bad).bad_since(bad, 0, 0) == (0, False)


def test_large_results_and_those_that_stayed_away_are_not_kept() -> None:
    large = step(0, np.ones(100))
    away = step(1, RemoteLeaf("numpy.ndarray", "float32", (), 8), site="a.py:2")
    many = step(2, 1.0, site="a.py:3")
    many.leaves = [[(1.0,)] * 5]
    results = recent(large, away, many)
    assert results.bad_since(step(3, NAN), 0, 0) == (3, False)
    assert not any(results._places.values())


def test_a_result_that_stays_away_later_ends_what_is_known() -> None:
    bad = step(2, NAN)
    results = recent(step(0, 1.0), step(1, RemoteLeaf("numpy.ndarray", "float32", (99,), 396)), bad)
    assert results.bad_since(bad, 0, 0) == (2, False)


def test_memory_is_bounded_in_steps_and_places() -> None:
    results = recent(*(step(k, 1.0, site=f"a.py:{k % 40}") for k in range(3000)))
    assert len(results._places) == 16
    endless = recent(*(step(k, 1.0) for k in range(3000)))
    assert [len(steps) for steps in endless._places.values()] == [1024]


def test_the_course_is_that_of_the_function_that_ran_in_most_of_the_newest_steps() -> None:
    train = [step(k, float(k), site="a.py:1") for k in range(20) if k % 5]
    look = [step(k, -1.0, site="a.py:9") for k in range(0, 20, 5)]
    course = recent(*sorted(train + look, key=lambda each: each.number)).course()
    assert course is not None
    assert course.steps == tuple(each.number for each in train)
    assert course.mean == course.steps

    later = recent(
        *(step(k, 1.0) for k in range(100)), *(step(k, 2.0, site="b.py:1") for k in range(100, 200))
    )
    newest = later.course()
    assert newest is not None
    assert set(newest.mean) == {2.0}


@pytest.mark.parametrize(
    "beside",
    [(np.ones(100),), RemoteLeaf("numpy.ndarray", "float32", (1000, 10), 40_000), PickledLeaf(b"." * 300)],
    ids=["array", "array that stays", "pickled"],
)
@pytest.mark.parametrize("key", ["loss", "a", None])
def test_a_number_beside_a_large_leaf_has_a_course(beside: Any, key: str | None) -> None:
    structure = optree.tree_structure((0, 1) if key is None else {key: 0, "b": 1})
    number_first = key != "loss"
    steps = []
    for k in range(5):
        row = [(float(k),), beside] if number_first else [beside, (float(k),)]
        each = step(k, 0.0)
        each.leaves, each.structures = [row, row], [structure] * 2
        steps.append(each)

    course = recent(*steps).course()

    assert course is not None
    assert (course.name, course.mean) == ("loss" if key == "loss" else "", (0.0, 1.0, 2.0, 3.0, 4.0))


def test_memory_is_bounded_in_bytes() -> None:
    def held(leaves: int, nbytes: int, replicas: int) -> int:
        row = [(1.0,), *[(np.ones(nbytes, np.uint8),)] * (leaves - 1)]
        structure = optree.tree_structure({"loss": 0, "others": [0] * (leaves - 1)})
        steps = [step(k, 1.0) for k in range(1200)]
        for each in steps:
            each.leaves, each.structures = [row] * replicas, [structure] * replicas
        results = recent(*steps)
        (kept,) = results._places.values()
        assert (results.course() is None) == (not kept)
        return len(kept)

    assert held(leaves=2, nbytes=8, replicas=64) == 1024
    assert held(leaves=3, nbytes=4096, replicas=1) == 122
    assert held(leaves=3, nbytes=4096, replicas=2) == 61
    assert held(leaves=20_000, nbytes=1, replicas=1) == 0


def test_without_a_number_there_is_no_course() -> None:
    assert RecentResults().course() is None
    assert recent(step(0, np.ones(3)), step(1, "text", site="b.py:1")).course() is None
