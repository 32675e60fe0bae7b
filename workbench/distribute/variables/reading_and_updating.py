"""Reading and updating a variable outside of replica functions, and the checks of new values everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from workbench.backends.from_gpu import fetched
from workbench.backends.numpy import view
from workbench.backends.users_line import apply_at_users_line, users_line
from workbench.debugging import numerics
from workbench.distribute import contexts
from workbench.distribute.arrays.as_array import (
    Array,
    as_array,
    as_operand,
    describe,
    is_python_number,
    namespace_of,
)
from workbench.distribute.arrays.host_reduce import reduce_components
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.arrays.reduce_op import ReduceOp
from workbench.distribute.values.distributed_values import Mirrored, PerReplica
from workbench.distribute.variables import central_programs, programs, traced_merge
from workbench.distribute.variables.aggregation import VariableAggregation, VariableSynchronization
from workbench.distribute.variables.programs import Update
from workbench.distribute.variables.scatter import SCATTERS
from workbench.errors import InvalidArgumentError, ReplicaLost
from workbench.runtime.replica.env import current_env

if TYPE_CHECKING:
    from workbench.distribute.described_strategy import DescribedStrategy
    from workbench.distribute.variables.described_variable import DescribedVariable
    from workbench.runtime.replica.env import ReplicaEnv

# Rows of several replicas, concatenated, have no meaning for these: which of two would win?
_NOT_AGGREGATED = frozenset(("scatter_min", "scatter_max", "scatter_update"))
T = TypeVar("T")
_NONE, _SUM, _MEAN = VariableAggregation.NONE, VariableAggregation.SUM, VariableAggregation.MEAN


def checked_update(variable: DescribedVariable, how: Update, value: Any) -> Array | IndexedSlices:
    """`value` as an array of the variable's dtype and shape, not to be written to; rows for scatter updates.

    Raises:
      NotImplementedError: For a scatter update that this variable does not have.
      ValueError: If the shape differs.
      TypeError: If the variable's dtype cannot hold it without losing its kind.
      InvalidArgumentError: If it is not finite, where that is checked.
    """
    env = current_env()
    if how in SCATTERS:
        require_scatter(variable, how)
        rows = checked_slices(variable, how, value, traced=env is not None and env.traced)
        if numerics.thread.place:
            numerics.check(rows.values, f"{how} of variable {variable.name!r}")
        return rows
    array = as_array(value) if env is None else as_operand(value)
    if numerics.thread.place:
        numerics.check(array, f"{how} of variable {variable.name!r}")
    if array.shape != variable.shape:
        raise ValueError(
            f"{how} on variable {variable.name!r}: the value has shape {array.shape}, the variable {variable.shape}; "
            f"give an array of the variable's shape (np.broadcast_to, np.full or reshape make one)"
        )
    if array.dtype == variable.dtype:
        return array
    if not np.can_cast(array.dtype, variable.dtype, "same_kind"):
        raise TypeError(
            f"{how} on variable {variable.name!r}: a value of {array.dtype.name} does not fit {variable.dtype.name}; "
            f"convert it with value.astype(np.{variable.dtype.name}), or create the variable with that dtype"
        )
    return apply_at_users_line()(array.astype, variable.dtype)  # type: ignore[no-any-return]


def require_scatter(variable: DescribedVariable, how: str) -> None:
    """Refuses scatter updates that the reference does not have.

    Raises:
      NotImplementedError: For ON_READ variables; and for minimum, maximum and update with aggregation SUM or MEAN.
    """
    if variable.strategy is None:
        return
    if variable.synchronization is VariableSynchronization.ON_READ:
        raise NotImplementedError(
            f"{how} on variable {variable.name!r}: ON_READ variables take no scatter updates; write "
            f"v.assign(v + rows.dense()) in the replica function, or create the variable ON_WRITE"
        )
    summed = variable.aggregation in (VariableAggregation.SUM, VariableAggregation.MEAN)
    if summed and how in _NOT_AGGREGATED:
        raise NotImplementedError(
            f"{how} on variable {variable.name!r} with aggregation {variable.aggregation.name}: rows of several "
            f"replicas cannot be added up for it; use aggregation NONE or ONLY_FIRST_REPLICA"
        )


def checked_slices(variable: DescribedVariable, how: str, value: Any, traced: bool) -> IndexedSlices:
    """`value` with values of the variable's dtype, one row per index.

    Args:
      variable: The variable to change.
      how: The method, for messages.
      value: IndexedSlices whose values have shape `indices.shape + variable.shape[1:]`, or are a scalar.
      traced: Whether a program is being traced, where nobody can look at indices.

    Raises:
      TypeError: If it is no IndexedSlices, its indices are no integers, or the variable's dtype cannot hold the values.
      ValueError: If shapes do not fit.
      InvalidArgumentError: If an index is outside of the variable.
    """
    where = f"{how} on variable {variable.name!r}"
    if not isinstance(value, IndexedSlices):
        raise TypeError(
            f"{where} needs wb.IndexedSlices(values, indices), got {type(value).__name__}; to change the whole "
            f"variable use assign, assign_add or assign_sub"
        )
    if not variable.shape:
        raise ValueError(f"{where}: the variable is a scalar, it has no rows")
    values, indices = as_operand(value.values), as_operand(value.indices)
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{where}: indices must be integers, got {describe(indices)}")
    wanted = (*indices.shape, *variable.shape[1:])
    if values.shape == ():
        values = namespace_of(values).broadcast_to(values, wanted)
    if tuple(values.shape) != wanted:
        raise ValueError(
            f"{where}: {indices.size} indices of a variable of shape {variable.shape} need values of shape {wanted}, "
            f"got {tuple(values.shape)}"
        )
    if values.dtype != variable.dtype:
        if not np.can_cast(values.dtype, variable.dtype, "same_kind"):
            raise TypeError(
                f"{where}: values of {values.dtype.name} do not fit {variable.dtype.name}; convert them with "
                f"values.astype(np.{variable.dtype.name})"
            )
        values = apply_at_users_line()(values.astype, variable.dtype)
    if not traced:
        _require_inside(where, np.asarray(view(fetched(indices))), variable.shape[0])
    return IndexedSlices(values, indices, variable.shape)


def _require_inside(where: str, indices: Array, rows: int) -> None:
    outside = np.flatnonzero((indices < 0) | (indices >= rows))
    if outside.size:
        first = int(outside[0])
        raise InvalidArgumentError(f"{where}: indices[{first}] = {indices.flat[first]} is not in [0, {rows})")


def read_across(variable: DescribedVariable) -> Array:
    """The common value of a variable, outside of replica functions.

    Raises:
      ValueError: If it is an ON_READ variable with aggregation NONE, whose components have no common value.
    """
    strategy = _strategy(variable, "reading a variable")
    if strategy.holder is not None:
        return again_if_lost(lambda: central_programs.read(strategy, variable))
    key, aggregation = variable.description.key, variable.aggregation
    on_read = variable.synchronization is VariableSynchronization.ON_READ
    if on_read and aggregation is _NONE:
        raise ValueError(
            f"variable {variable.name!r} is ON_READ with aggregation NONE: its components have no common value; look "
            f"at them with strategy.local_results(variable), or create it with aggregation SUM, MEAN or "
            f"ONLY_FIRST_REPLICA"
        )
    env = contexts.merging_env()
    if env is not None:
        if on_read and aggregation in (_SUM, _MEAN):
            total: Array = traced_merge.reduce(env, ReduceOp[aggregation.name], variable, None)
            return total
        return traced_merge.read_component(env, key, 0)
    if on_read and aggregation in (_SUM, _MEAN):
        op = ReduceOp.SUM if aggregation is _SUM else ReduceOp.MEAN
        return np.asarray(reduce_components(op, read_components(variable), None))
    return read_components(variable, [0])[0]


def read_components(variable: DescribedVariable, ranks: Sequence[int] | None = None) -> list[Array]:
    """The components of all replicas, or of `ranks`, outside of replica functions.

    Raises:
      ReplicaLost: If a replica is lost meanwhile and with it what a sync-on-read variable had there.
    """
    strategy = _strategy(variable, "reading a variable")

    def read() -> list[Array]:
        handle = strategy.run_internal(programs.read_variable, (variable.description.key,))
        return handle.values() if ranks is None else [handle.value(rank) for rank in ranks]

    on_read = variable.synchronization is VariableSynchronization.ON_READ
    return read() if on_read else again_if_lost(read)


def again_if_lost(read: Callable[[], T]) -> T:
    """What `read` gives, which may be asked twice: a replica that is lost meanwhile gets a copy from the others.

    The step of which the loss is an error would have changed something; reading does not.
    """
    try:
        return read()
    except ReplicaLost:
        return read()


def update_own(env: ReplicaEnv, variable: DescribedVariable, how: Update, value: Any) -> None:
    """Updates the component of one replica with its own value."""
    programs.update(env, variable.description.key, how, checked_update(variable, how, value))


def create_components(strategy: DescribedStrategy, variable: DescribedVariable, array: Any) -> None:
    """Gives a new variable its components, or one that was lost new ones."""
    forgotten = strategy.kept.take_forgotten()
    if strategy.holder is not None:
        central_programs.create(strategy, variable, array, forgotten)
    else:
        # On TPUs tracing makes rows of them.
        library = strategy.library if strategy.devices[0].kind != "TPU" else "numpy"
        strategy.run_internal(programs.create, (variable.description.key, array, forgotten, library))
    strategy.kept.add(variable)


def cross_replica_update(variable: DescribedVariable, how: Update, value: Any) -> None:
    """Updates all components from outside of replica functions.

    Raises:
      ValueError: If the shape differs, or an ON_READ variable with SUM is to be added to.
    """
    strategy = _strategy(variable, how)
    key, aggregation = variable.description.key, variable.aggregation
    env = contexts.merging_env()
    on_read = variable.synchronization is VariableSynchronization.ON_READ and strategy.holder is None
    if how in SCATTERS:
        require_scatter(variable, how)
    if isinstance(value, PerReplica):
        if strategy.holder is not None:
            value = _aggregated(variable, how, value, env)
        elif env is not None:
            update_own(env, variable, how, value.own_component(env))
            return
        else:
            # As in the reference: whatever the aggregation, each component gets its own part.
            handle = value.handle_for(strategy.group)
            strategy.run_internal(programs.update_at_line, (users_line(), update_own, variable, how, handle))
            return
    if isinstance(value, Mirrored):
        value = value.values[0]
    if on_read and aggregation is _SUM:
        if how != "assign":
            raise ValueError(
                f"{how} on variable {variable.name!r} outside of replica functions: ON_READ with SUM, it would count "
                f"once per replica; add in a replica function, or assign the new total"
            )
        # The components shall add up to the value; integers are cut off, as in the reference.
        share = as_operand(value) / strategy.num_replicas_in_sync
        value = share.astype(variable.dtype)
    array = checked_update(variable, how, value)
    if env is None and how == "assign" and variable not in strategy.kept:
        create_components(strategy, variable, array)
        return
    if strategy.holder is not None:
        central_programs.update_from_notebook(strategy, variable, how, array)
        return
    if env is not None:
        programs.update(env, key, how, array)
    else:
        strategy.run_internal(programs.update_at_line, (users_line(), programs.update, key, how, array))


def _aggregated(variable: DescribedVariable, how: Update, value: PerReplica, env: ReplicaEnv | None) -> Any:
    if env is not None and variable.aggregation in (_SUM, _MEAN):
        return traced_merge.reduce(env, ReduceOp[variable.aggregation.name], value, None)
    components = value.values
    if variable.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
        return components[0]
    if variable.aggregation is _NONE:
        raise ValueError(
            f"{how} on variable {variable.name!r} with a PerReplica: aggregation NONE does not say how its components "
            f"become one value; reduce it first, strategy.reduce('SUM' or 'MEAN', value, axis=None)"
        )
    if is_python_number(components[0]):
        components = tuple(as_array(part) for part in components)
    return reduce_components(ReduceOp[variable.aggregation.name], components, None)


def _strategy(variable: DescribedVariable, what: str) -> DescribedStrategy:
    strategy = variable.strategy
    assert strategy is not None
    contexts.require_cross_replica(strategy, what)
    return strategy
