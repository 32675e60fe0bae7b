"""Nested structures: tuples, lists, dicts, named tuples and dataclasses registered with optree.

A thin layer over `optree`. `None` is part of the structure, not a leaf: a function that returns None on
every replica returns None. Other parts that are the same everywhere can register as nodes without
children in namespace "workbench".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import optree

Spec = optree.PyTreeSpec


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Spec]:
    """Returns the leaves of `tree`, left to right, and its structure."""
    return optree.tree_flatten(tree, is_leaf, namespace="workbench")


def learn(values: Iterable[Any]) -> bool:
    """Registers record classes as nodes with their fields as children: dataclasses and attrs classes.

    A class with TensorFlow's methods defines its own children: `__tf_flatten__(self)` returns metadata and components,
    and `__tf_unflatten__(metadata, components)` rebuilds the object.

    Args:
      values: Any values; those that are not records are ignored.

    Returns:
      Whether there was an unknown class.
    """
    found = {type(value) for value in values if _is_record(type(value))} - _learnt
    for kind in found:
        _learnt.add(kind)
        optree.register_pytree_node(kind, *_way_of(kind), namespace="workbench")
    return bool(found)


def is_learnt(spec: Spec) -> bool:
    """Whether a structure holds such a record; another process must learn its class first."""
    return spec.type in _learnt or any(is_learnt(child) for child in spec.children())


def flatten_records(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Spec]:
    """As `flatten`, with records of all classes as nodes, including new ones."""
    leaves, spec = flatten(tree, is_leaf)
    return flatten_records(tree, is_leaf) if learn(leaves) else (leaves, spec)


def is_record(value: Any) -> bool:
    """Whether a value is a record of a class that is a node."""
    return type(value) in _learnt


def parts(record: Any) -> dict[str, Any]:
    """The children of such a record, by field name, or "0", "1", ... if it defines them without names."""
    level = optree.tree_flatten_one_level(record, namespace="workbench")
    return dict(zip(map(str, level.entries), level.children, strict=True))


_learnt: set[type] = set()


def _is_record(kind: type) -> bool:
    if kind.__module__.partition(".")[0] == "workbench":  # optree's own objects are values, such as specs
        return False
    return (
        hasattr(kind, "__tf_flatten__") or hasattr(kind, "__attrs_attrs__") or dataclasses.is_dataclass(kind)
    )


def _way_of(kind: Any) -> tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]:
    """How to flatten and unflatten records of a class."""
    if hasattr(kind, "__tf_flatten__"):

        def components(record: Any) -> tuple[Any, Any]:
            metadata, parts = record.__tf_flatten__()
            return parts, metadata

        return components, kind.__tf_unflatten__
    described = getattr(kind, "__attrs_attrs__", None) or dataclasses.fields(kind)
    names = [field.name for field in described]

    def together(_: Any, parts: Any) -> Any:
        # Not by its constructor, which may not accept the values that pipelines put in.
        record = object.__new__(kind)
        for name, part in zip(names, parts, strict=True):
            object.__setattr__(record, name, part)
        return record

    return lambda record: ([getattr(record, name) for name in names], None, names), together


def unflatten(spec: Spec, leaves: list[Any]) -> Any:
    """Puts `leaves` into the structure `spec`."""
    return optree.tree_unflatten(spec, leaves)


def map(fn: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Applies `fn` to the leaves of `tree` (and of `rest`, which must have its structure)."""
    return optree.tree_map(fn, tree, *rest, namespace="workbench")
