"""Nested structures: tuples, lists, dicts, named tuples and dataclasses registered with optree.

A thin layer over `optree`. `None` is part of the structure, not a leaf: a function that returns None on
every replica returns None. Other parts that are the same everywhere can register as nodes without
children in namespace "workbench".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optree

Spec = optree.PyTreeSpec


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Spec]:
    """Returns the leaves of `tree`, left to right, and its structure."""
    return optree.tree_flatten(tree, is_leaf, namespace="workbench")


def unflatten(spec: Spec, leaves: list[Any]) -> Any:
    """Puts `leaves` into the structure `spec`."""
    return optree.tree_unflatten(spec, leaves)


def map(fn: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Applies `fn` to the leaves of `tree` (and of `rest`, which must have its structure)."""
    return optree.tree_map(fn, tree, *rest, namespace="workbench")
