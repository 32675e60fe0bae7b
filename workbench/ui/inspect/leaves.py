"""The leaves of nested structures, in order, created on request: there may be a million."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import optree

from workbench.distribute.servers.sharded_variable import ShardedVariable
from workbench.distribute.values.distributed_values import DistributedValues
from workbench.distribute.variables.component import VariableComponent

_DEEPEST: Final = 64
_LARGE: Final = 1_000

Path = tuple[Any, ...]


def leaves_of(tree: Any) -> Iterator[tuple[Path, Any]]:
    """Each leaf with its path, in the order of `optree`; distributed values and shards are leaves.

    A container inside itself is also a leaf, and so is one at a depth of more than 64.
    """
    open_nodes = [iter([((), tree)])]
    holders: list[int] = []  # containers whose children are separate values
    while open_nodes:
        for path, node in open_nodes[-1]:
            known = id(node) in holders or len(path) >= _DEEPEST
            children = None if known else _children(path, node)
            if children is None:
                yield path, node
                continue
            open_nodes.append(children)
            holders.append(id(node))
            break
        else:
            open_nodes.pop()
            if holders:
                holders.pop()


def _children(path: Path, node: Any) -> Iterator[tuple[Path, Any]] | None:
    """The children of a container; None if it is not one."""
    if isinstance(node, DistributedValues | VariableComponent):
        return None
    if isinstance(node, ShardedVariable):
        return (((*path, number), shard) for number, shard in enumerate(node.variables))
    if type(node) is dict and len(node) > _LARGE:  # `optree` would flatten it into several lists
        try:
            return (((*path, key), node[key]) for key in sorted(node))
        except TypeError:  # keys without an order
            pass
    if optree.tree_is_leaf(node, namespace="workbench"):
        return None
    level = optree.tree_flatten_one_level(node, namespace="workbench")
    return (((*path, entry), child) for entry, child in zip(level.entries, level.children, strict=True))
