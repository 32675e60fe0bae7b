"""Makes distributed values of the notebook's values, and splits them into such values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from workbench import tree
from workbench.arguments import function
from workbench.distribute.value_context import ValueContext
from workbench.distribute.values.distributed_values import DistributedValues, PerReplica, is_distributed
from workbench.distribute.values.large_trees import bring


def values_from_function(value_fn: Callable[[ValueContext], Any], replicas: int) -> Any:
    """Calls `value_fn` once per replica, in order; returns its structure with a `PerReplica` for each leaf.

    Raises:
      ValueError: if it returns different structures for different replicas.
    """
    function(value_fn, "value_fn")
    flat = [flatten_distributed(value_fn(ValueContext(rank, replicas))) for rank in range(replicas)]
    spec = flat[0][1]
    for rank, (_, other) in enumerate(flat):
        if other != spec:
            raise ValueError(
                f"value_fn returned structure {spec} for replica 0 and {other} for replica {rank}; return the same "
                f"structure for all"
            )
    columns = zip(*[leaves for leaves, _ in flat], strict=True)
    return tree.unflatten(spec, [PerReplica(column) for column in columns])


def parts_of(value: Any, replicas: int) -> tuple[Any, ...]:
    """The components of a distributed value; for a structure, one per replica; `(value,)` for all other values."""
    if isinstance(value, DistributedValues):
        return tuple(value.values)
    leaves, spec = flatten_distributed(value)
    if value is None or (len(leaves) == 1 and leaves[0] is value):
        return (value,)
    bring(leaves)
    parts = [_for_each(leaf, replicas) for leaf in leaves]
    return tuple(tree.unflatten(spec, [part[rank] for part in parts]) for rank in range(replicas))


def _for_each(leaf: Any, replicas: int) -> Sequence[Any]:
    """Each replica's value of a leaf: its component, or one for all, such as a variable with a single copy."""
    if isinstance(leaf, DistributedValues) and len(leaf.values) == replicas:
        return leaf.values
    return (leaf,) * replicas


def flatten_distributed(value: Any) -> tuple[list[Any], tree.Spec]:
    """Leaves and structure of `value`, with variables as leaves; elsewhere they are parts of the structure."""
    return tree.flatten(value, is_leaf=is_distributed)


def require_no_none(value: Any, leaves: Sequence[Any], what: str) -> None:
    """Refuses a structure in which replicas have returned None.

    Args:
      value: The structure.
      leaves: Its leaves, without None.
      what: The subject of the error's sentence.

    Raises:
      ValueError: if it is or contains None.
    """
    if len(leaves) == 1 and leaves[0] is value:
        return
    parts, _ = tree.flatten(value, is_leaf=lambda part: part is None or is_distributed(part))
    if len(parts) > len(leaves):
        place = next(number for number, part in enumerate(parts) if part is None)
        at = "" if value is None else f" as value {place + 1} of {len(parts)}"
        raise ValueError(
            f"{what} needs distributed values, got None{at}; let the replica function return a value on each replica, "
            f"or leave it out of the structure"
        )
