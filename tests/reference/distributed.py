"""What the comparison needs to know of the library's values: which they are, and their components."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.reference.outcomes import Mismatch, Missing, api


def is_variable(value: Any) -> bool:
    """Whether `value` is a variable of the library."""
    return _is_a(value, "Variable")


def is_dataset(value: Any) -> bool:
    """Whether `value` is a dataset of the library."""
    return _is_a(value, "data.Dataset")


def is_sparse(value: Any) -> bool:
    """Whether `value` is a set of sparse rows."""
    return _is_a(value, "IndexedSlices")


def components(value: Any) -> tuple[Any, ...] | None:
    """The component of each replica, or None if `value` is not distributed."""
    if not _is_a(value, "distribute.DistributedValues"):
        return None
    return tuple(value.values)


def select(value: Any, replica: int, *, of: int) -> Any:
    """The tree `value` as replica `replica` has it.

    Raises:
      Mismatch: if it holds no distributed value, or one with another number of components than `of`.
    """
    found = []

    def pick(leaf: Any) -> Any:
        parts = components(leaf)
        if parts is None:
            return leaf
        if len(parts) != of:
            raise Mismatch(f"expected {of} components, got {len(parts)}: {leaf!r}")
        found.append(leaf)
        return parts[replica]

    picked = map_leaves(pick, value)
    if not found and not _is_empty(value):
        raise Mismatch(f"expected a value for each of {of} replicas, got {value!r}")
    return picked


def local_view(value: Any, replicas: slice) -> Any:
    """The tree `value` as one host sees it: its own component in place of each distributed value."""

    def pick(leaf: Any) -> Any:
        parts = components(leaf)
        if parts is None or is_variable(leaf):
            return leaf
        own = parts[replicas]
        return own[0] if len(own) == 1 else own

    return map_leaves(pick, value)


def map_leaves(fn: Any, tree: Any) -> Any:
    """`tree` with `fn` applied to everything in its tuples, lists and dicts."""
    if isinstance(tree, tuple):
        return tuple(map_leaves(fn, item) for item in tree)
    if isinstance(tree, list):
        return [map_leaves(fn, item) for item in tree]
    if isinstance(tree, dict):
        return {key: map_leaves(fn, item) for key, item in tree.items()}
    return fn(tree)


def densify(value: Any) -> Any:
    """`value` as a dense array if it is a set of sparse rows."""
    if not is_sparse(value):
        return value
    values = np.asarray(value.values)
    dense = np.zeros(tuple(int(n) for n in np.asarray(value.dense_shape)), values.dtype)
    np.add.at(dense, np.asarray(value.indices), values)
    return dense


def _is_empty(tree: Any) -> bool:
    return isinstance(tree, tuple | list | dict) and not tree


def _is_a(value: Any, name: str) -> bool:
    # Most values are arrays and numbers, and a class check would import its module for nothing.
    if not type(value).__module__.startswith("workbench"):
        return False
    try:
        return isinstance(value, api(name))
    except Missing:
        return False
