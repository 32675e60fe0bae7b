"""Which number of a step's result has a course, and what it is like."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import numpy as np
import optree
import pytest

from workbench.runtime.comm.messages import RemoteLeaf
from workbench.runtime.driver.result_course import NumberLog, number_in

Both = namedtuple("Both", ["accuracy", "train_loss"])


def found_in(result: Any) -> tuple[str, int] | None:
    leaves, structure = optree.tree_flatten(
        result, is_leaf=lambda each: type(each) is RemoteLeaf, namespace="workbench"
    )
    return number_in(structure, [leaf if type(leaf) is RemoteLeaf else (leaf,) for leaf in leaves])


def course_of(*steps: tuple[int, list[float]]) -> Any:
    taken = [(number, [[(value,)] for value in values]) for number, values in steps]
    return NumberLog("loss", "train", 0).course(taken)


@pytest.mark.parametrize(
    ("result", "found"),
    [
        ({"accuracy": 0.5, "loss": 1.0}, ("loss", 1)),
        ({"metrics": {"Loss/train": np.float32(2)}, "step": 3}, ("Loss/train", 0)),
        (Both(0.5, np.array(2.0)), ("train_loss", 1)),
        (np.array([0.25]), ("", 0)),
        (math.nan, ("", 0)),
        ((1.0, 2.0), None),
        ((np.ones(3), 2.0), ("", 1)),
        ({"loss": "small"}, None),
        ({"loss": np.ones(4)}, None),
        (True, None),
        (1j, None),
        ({"loss": RemoteLeaf("torch.Tensor", "float32", (), 4)}, None),
        ({}, None),
    ],
)
def test_a_number_is_found_by_its_name_or_as_the_only_one(result: Any, found: Any) -> None:
    assert found_in(result) == found


def test_of_a_few_replicas_each_has_a_line() -> None:
    course = course_of((3, [1.0, 2.0]), (4, [3.0, 5.0]))
    assert course.steps == (3, 4)
    assert course.mean == (1.5, 4.0)
    assert course.replicas == ((1.0, 3.0), (2.0, 5.0))
    assert course.low == course.high == ()


def test_what_is_not_finite_is_none_and_so_is_its_mean() -> None:
    course = course_of((0, [1.0, math.nan]), (1, [math.inf, -math.inf]), (2, [1.0, 10**400]))
    assert course.mean == (None, None, None)
    assert course.replicas == ((1.0, None, 1.0), (None, None, None))


def test_of_many_replicas_the_spread_is_told() -> None:
    course = course_of((0, [float(rank) for rank in range(101)]))
    assert course.replicas == ()
    assert (course.low, course.mean, course.high) == ((10.0,), (50.0,), (90.0,))


def test_only_the_newest_steps_are_kept_and_those_done_again_count_once() -> None:
    log = NumberLog("loss", "train", 0)
    steps: list[tuple[int, list[Any]]] = [(k, [[(float(k),)]]) for k in range(100)]
    assert log.course(steps).steps == tuple(range(36, 100))
    assert log.course(steps) is log.course(steps)

    steps += [(98, [[(-1.0,)]]), (99, [None])]
    course = log.course(steps)
    assert course.steps[-3:] == (97, 98, 99)
    assert course.mean[-3:] == (97.0, -1.0, None)


def test_steps_of_another_number_of_replicas_are_left_out() -> None:
    log = NumberLog("loss", "train", 0)
    assert log.course([(0, [[(1.0,)], [(2.0,)]]), (1, [[(3.0,)]])]).steps == (1,)
