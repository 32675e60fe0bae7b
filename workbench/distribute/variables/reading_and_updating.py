"""Reading and updating a variable outside of replica functions, and the checks of new values everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from workbench.backends.users_line import apply_at_users_line, users_line
from workbench.debugging import numerics
from workbench.distribute import contexts
from workbench.distribute.arrays.as_array import Array, as_array, as_operand, is_python_number
from workbench.distribute.arrays.host_reduce import reduce_components
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.arrays.reduce_op import ReduceOp
from workbench.distribute.values.distributed_values import Mirrored, PerReplica
from workbench.distribute.variables import central_programs, programs, traced_merge
from workbench.distribute.variables.aggregation import VariableAggregation, VariableSynchronization
from workbench.distribute.variables.programs import Update
from workbench.distribute.variables.scatter import SCATTERS, checked_slices, require_scatter
from workbench.errors import ReplicaLost
from workbench.runtime.replica.env import current_env

if TYPE_CHECKING:
    from workbench.distribute.strategies.strategy import Strategy
    from workbench.distribute.variables.variable import Variable
    from workbench.runtime.replica.env import ReplicaEnv

T = TypeVar("T")
_NONE, _SUM, _MEAN = VariableAggregation.NONE, VariableAggregation.SUM, VariableAggregation.MEAN


def checked_update(variable: Variable, how: Update, value: Any) -> Array | IndexedSlices:
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


def read_across(variable: Variable) -> Array:
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
    env = traced_merge.merging_env()
    if env is not None:
        if on_read and aggregation in (_SUM, _MEAN):
            total: Array = traced_merge.reduce(env, ReduceOp[aggregation.name], variable, None)
            return total
        return traced_merge.read_component(env, key, 0)
    if on_read and aggregation in (_SUM, _MEAN):
        op = ReduceOp.SUM if aggregation is _SUM else ReduceOp.MEAN
        return np.asarray(reduce_components(op, read_components(variable), None))
    return read_components(variable, [0])[0]


def read_components(variable: Variable, ranks: Sequence[int] | None = None) -> list[Array]:
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


def update_own(env: ReplicaEnv, variable: Variable, how: Update, value: Any) -> None:
    """Updates the component of one replica with its own value."""
    programs.update(env, variable.description.key, how, checked_update(variable, how, value))


def cross_replica_update(variable: Variable, how: Update, value: Any) -> None:
    """Updates all components from outside of replica functions.

    Raises:
      ValueError: If the shape differs, or an ON_READ variable with SUM is to be added to.
    """
    strategy = _strategy(variable, how)
    key, aggregation = variable.description.key, variable.aggregation
    env = traced_merge.merging_env()
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
        strategy.keep(variable, array)
        return
    if strategy.holder is not None:
        central_programs.update_from_notebook(strategy, variable, how, array)
        return
    if env is not None:
        programs.update(env, key, how, array)
    else:
        strategy.run_internal(programs.update_at_line, (users_line(), programs.update, key, how, array))


def _aggregated(variable: Variable, how: Update, value: PerReplica, env: ReplicaEnv | None) -> Any:
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


def _strategy(variable: Variable, what: str) -> Strategy:
    strategy = variable.strategy
    assert strategy is not None
    contexts.require_cross_replica(strategy, what)
    return strategy
