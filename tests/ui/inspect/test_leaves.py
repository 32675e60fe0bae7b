"""Leaves of nested structures, as `wb.inspect` goes through them."""

from __future__ import annotations

import collections
import itertools
from typing import Any

import numpy as np
import optree
import pytest

from workbench.ui.inspect.leaves import leaves_of

Pair = collections.namedtuple("Pair", "first second")


@pytest.mark.parametrize(
    "tree",
    [
        3,
        None,
        "text",
        {},
        [1, [2, 3], {"b": 1, "a": (4,)}],
        Pair(1, [2, None]),
        collections.OrderedDict(z=1, a=2),
        collections.defaultdict(list, {"x": [1, 2]}),
        collections.deque([1, (2,)]),
        {1: 2, "a": 3},
        np.zeros(3),
        {number: -number for number in range(2000)},
        {**{number: -number for number in range(2000)}, "a": 3},
    ],
)
def test_leaves_and_paths_are_those_of_the_library(tree: Any) -> None:
    paths, leaves, _ = optree.tree_flatten_with_path(tree)

    found = list(leaves_of(tree))

    assert [path for path, _ in found] == paths
    assert all(mine is theirs for (_, mine), theirs in zip(found, leaves, strict=True))


def test_a_list_inside_of_itself_is_a_leaf() -> None:
    tree: list[Any] = [1.0]
    tree.append([tree])

    assert [path for path, _ in leaves_of(tree)] == [(0,), (1, 0)]


def test_the_same_list_twice_is_no_circle() -> None:
    twice = [1, 2]

    assert [leaf for _, leaf in leaves_of([twice, twice])] == [1, 2, 1, 2]


def test_a_structure_of_any_depth_ends() -> None:
    tree: Any = 1
    for _ in range(100_000):
        tree = [tree]

    [(path, leaf)] = leaves_of(tree)

    assert len(path) == 64
    assert type(leaf) is list


def test_leaves_come_one_by_one() -> None:
    class Counting(dict[int, int]):
        """Not one of `optree`'s containers, so a leaf."""

    leaves = leaves_of([[number, Counting()] for number in range(10)])

    assert [leaf for _, leaf in itertools.islice(leaves, 3)] == [0, {}, 1]
    assert next(leaves)[0] == (1, 1)


def test_leaves_whose_repr_raises_are_leaves() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no text")

    assert [path for path, _ in leaves_of([Broken(), {"a": Broken()}])] == [(0,), (1, "a")]
