"""Merge functions in traced programs: instead of pausing the replicas, they become part of the program.

A merge function sees the components of all replicas. While it is traced, one replica represents all: its own component
is known, and those of others are gathered by collectives only if they are read. So every replica computes the same,
and no program has to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from workbench import tree
from workbench.communicators import Reduction
from workbench.distribute import contexts
from workbench.distribute.arrays.as_array import Array, as_operand, namespace_of
from workbench.distribute.arrays.gather import all_gather_leaf, all_reduce_slices
from workbench.distribute.arrays.host_reduce import Axis, check_axis, require_reducible
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.arrays.reduce_op import ReduceOp
from workbench.distribute.values.distributed_values import DistributedValues, PerReplica
from workbench.distribute.variables import programs
from workbench.errors import TracingError

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv


class TracedPerReplica(PerReplica):
    """One component per replica; only this replica's own is known.

    Attributes:
      own: The component of the traced replica.
    """

    __slots__ = ("_env", "own")

    def __init__(self, own: Any, env: ReplicaEnv) -> None:
        super().__init__(())
        self.own = own
        self._env = env

    @property
    def values(self) -> tuple[Any, ...]:
        """The components of all replicas, gathered."""
        if not self._components:
            self._components = _everyones(self._env, self.own)
        return self._components

    def __len__(self) -> int:
        return self._env.size

    def own_component(self, env: ReplicaEnv) -> Any:
        """The known component."""
        return self.own

    def component_text(self, rank: int) -> str:
        """A component in one line, without a number, because it is traced."""
        return f"{self.own!r}"


def run(
    strategy: contexts.EnteredStrategy,
    env: ReplicaEnv,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Calls a merge function while its replicas are traced; returns the result for the replica that represents all."""
    given_args, given_kwargs = _spread((args, kwargs), env)
    with contexts.cross_replica(strategy, "merge"):
        result = fn(strategy, *given_args, **given_kwargs)
    return _own_parts(result, env)


def update(
    program: Callable[..., Any], env: ReplicaEnv, args: tuple[Any, ...], kwargs: dict[str, Any], group: bool
) -> Any:
    """Runs an update program on the replica that represents all; see `StrategyExtended.update`."""
    own_args, own_kwargs = _own_parts((args, kwargs), env)
    result = program(env, *own_args, **own_kwargs)
    together = _spread(result, env)
    return together if group else tree.map(lambda leaf: leaf.values, together)


def own_component(value: Any, env: ReplicaEnv) -> Any:
    """This replica's component of a distributed value; other values unchanged."""
    return value.own_component(env) if isinstance(value, DistributedValues) else value


def reduce(env: ReplicaEnv, reduce_op: ReduceOp, value: Any, axis: Axis) -> Any:
    """As `reduce_components`, for the replicas' own components."""
    own = own_component(value, env)
    op = reduce_op.value.lower()
    if isinstance(own, IndexedSlices):
        if axis is not None:
            raise TracingError(
                "IndexedSlices cannot be reduced along an axis in a traced program; use axis=None"
            )
        return all_reduce_slices(env, own, op, "merge_call", None)
    array = as_operand(own)
    require_reducible(array.dtype, "reduce")
    if axis is not None:
        check_axis(array, axis)
        xp = env.xp  # all components have the same shape, so the mean of their means is the mean of all
        array = xp.sum(array, axis=axis, dtype=array.dtype) if op == "sum" else xp.mean(array, axis=axis)
    return env.communicator.all_reduce([array], Reduction(op, site="merge_call"))[0]


def gather(env: ReplicaEnv, value: Any, axis: int) -> Any:
    """As `gather_components`, for the replicas' own components."""
    return all_gather_leaf(env.communicator, own_component(value, env), axis, "merge_call", None)


def read_component(env: ReplicaEnv, key: str, rank: int) -> Array:
    """Replica `rank`'s component of a variable, on every replica."""
    found: Array = env.communicator.broadcast(programs.component(env, key), rank, site="merge_call")
    return found


def update_component(env: ReplicaEnv, key: str, rank: int, how: programs.Update, array: Any) -> None:
    """Updates only the component of replica `rank`."""
    old = programs.component(env, key)
    programs.update(env, key, how, array)
    env.store[key] = env.choose(env.rank == rank, programs.component(env, key), old)


def _everyones(env: ReplicaEnv, own: Any) -> tuple[Any, ...]:
    if isinstance(own, IndexedSlices):
        rows = zip(_everyones(env, own.values), _everyones(env, own.indices), strict=True)
        return tuple(IndexedSlices(values, indices, own.dense_shape) for values, indices in rows)
    if namespace_of(own) is not env.xp:
        return (own,) * env.size  # not traced, so the same on all replicas
    together = env.communicator.all_gather(own[None], 0, site="merge_call")
    return tuple(together[rank] for rank in range(env.size))


def _spread(value: Any, env: ReplicaEnv) -> Any:
    return tree.map(lambda leaf: TracedPerReplica(leaf, env), value)


def _own_parts(value: Any, env: ReplicaEnv) -> Any:
    return tree.map(lambda leaf: own_component(leaf, env), value)
