"""Reduces one value of any kind over the replicas of a strategy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.distribute import contexts
from workbench.distribute.arrays.host_reduce import (
    Axis,
    gather_components,
    reduce_components,
    require_dense,
    unreduced,
)
from workbench.distribute.arrays.reduce_op import ReduceOp
from workbench.distribute.values.distributed_values import DistributedValues, Mirrored, PerReplica
from workbench.distribute.values.large_trees import FEW, bring, together
from workbench.distribute.variables import traced_merge
from workbench.distribute.variables.variable import Variable

if TYPE_CHECKING:
    from workbench.distribute.described_strategy import DescribedStrategy


def reduce_leaf(strategy: DescribedStrategy, reduce_op: ReduceOp, value: Any, axis: Axis) -> Any:
    """Combines a distributed value, or an ordinary one, which every replica counts as having.

    Args:
      strategy: The strategy whose replicas have the components.
      reduce_op: The operation.
      value: A distributed value or an array.
      axis: Dimensions also to reduce within each component, or None.

    Raises:
      ValueError: for the SUM of an ordinary value without an axis over several replicas.
      InvalidArgumentError: for a value of a strategy with another number of replicas.
    """
    replicas = strategy.num_replicas_in_sync
    env = contexts.merging_env()
    if env is not None and (axis is not None or isinstance(value, DistributedValues)):
        return traced_merge.reduce(env, reduce_op, value, axis)
    if isinstance(value, DistributedValues):
        components = components_of(value, replicas)
    else:
        if axis is None:
            return unreduced(reduce_op, value, replicas)
        components = (value,) * replicas
    ops = strategy.cross_device_ops
    if ops is None or not ops.is_custom:
        return reduce_components(reduce_op, components, axis)
    if axis is not None:
        # A user's operation combines across replicas; this sums up each replica's own slices first.
        return reduce_components(reduce_op, components, axis)
    return ops.reduce(reduce_op, PerReplica(components), "CPU:0")


def reduce_leaves(
    strategy: DescribedStrategy, reduce_op: ReduceOp, leaves: Sequence[Any], axis: Axis
) -> list[Any]:
    """Applies `reduce_leaf` to each leaf; fetches and combines many similar leaves together.

    Args:
      strategy: The strategy whose replicas have the components.
      reduce_op: The operation.
      leaves: Distributed values or arrays.
      axis: Dimensions also to reduce within each component, or None.
    """
    ops = strategy.cross_device_ops
    custom = ops is not None and ops.is_custom
    if len(leaves) <= FEW or custom or contexts.merging_env() is not None:
        return [reduce_leaf(strategy, reduce_op, leaf, axis) for leaf in leaves]
    bring(leaves)
    components = {
        number: leaf.values_for(strategy.num_replicas_in_sync)
        for number, leaf in enumerate(leaves)
        if isinstance(leaf, (PerReplica, Mirrored))
    }
    found = together(lambda parts, inner: reduce_components(reduce_op, parts, inner), components, axis)
    return [
        found[number] if number in found else reduce_leaf(strategy, reduce_op, leaf, axis)
        for number, leaf in enumerate(leaves)
    ]


def gather_leaves(strategy: DescribedStrategy, leaves: Sequence[Any], axis: int) -> list[Any]:
    """The components of each leaf, concatenated; see `Strategy.gather`."""
    size, env = strategy.num_replicas_in_sync, contexts.merging_env()
    found: dict[int, Any] = {}
    if env is None:
        bring(leaves)
    if env is None and len(leaves) > FEW and type(axis) is int:
        values = (PerReplica, Mirrored)
        components = {n: leaf.values_for(size) for n, leaf in enumerate(leaves) if isinstance(leaf, values)}
        found = together(gather_components, components, axis)
    return [
        found[number] if number in found else _gathered(leaf, size, axis, env)
        for number, leaf in enumerate(leaves)
    ]


def _gathered(leaf: Any, size: int, axis: int, env: Any) -> Any:
    if not isinstance(leaf, DistributedValues):
        require_dense(leaf)
        return leaf
    if env is not None:
        return traced_merge.gather(env, leaf, axis)
    return gather_components(leaf.values_for(size), axis)


def components_of(value: DistributedValues, replicas: int) -> tuple[Any, ...]:
    """The component of each replica; a variable with a single component counts for each.

    Raises:
      InvalidArgumentError: if it has another number of components.
    """
    if isinstance(value, Variable) and value.placement is not None:
        return tuple(value.placement.components(value))
    return value.values_for(replicas)
