"""Scatter updates: IndexedSlices change some rows of a variable (as tf.Variable.scatter_add and its relatives)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from workbench.backends.from_gpu import fetched
from workbench.backends.numpy import view
from workbench.backends.users_line import apply_at_users_line
from workbench.distribute.arrays.as_array import Array, as_operand, describe, namespace_of
from workbench.distribute.arrays.gather import all_reduce_slices
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.variables.aggregation import VariableAggregation, VariableSynchronization
from workbench.errors import InvalidArgumentError

if TYPE_CHECKING:
    from workbench.distribute.variables.variable import Variable
    from workbench.runtime.replica.env import ReplicaEnv

Scatter = Literal[
    "scatter_add",
    "scatter_sub",
    "scatter_mul",
    "scatter_div",
    "scatter_min",
    "scatter_max",
    "scatter_update",
]
SCATTERS = frozenset(get_args(Scatter))
# How NumPy and JAX call them.
_UFUNCS = {
    "scatter_add": np.add,
    "scatter_sub": np.subtract,
    "scatter_mul": np.multiply,
    "scatter_div": np.divide,
    "scatter_min": np.minimum,
    "scatter_max": np.maximum,
}
_AT = {
    "scatter_add": "add",
    "scatter_sub": "subtract",
    "scatter_mul": "multiply",
    "scatter_div": "divide",
    "scatter_min": "min",
    "scatter_max": "max",
    "scatter_update": "set",
}
# Rows of several replicas, concatenated, have no meaning for these: which of two would win?
_NOT_AGGREGATED = frozenset(("scatter_min", "scatter_max", "scatter_update"))


def require_scatter(variable: Variable, how: str) -> None:
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


def checked_slices(variable: Variable, how: str, value: Any, traced: bool) -> IndexedSlices:
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
        values = values.astype(variable.dtype)
    if not traced:
        _require_inside(where, np.asarray(view(fetched(indices))), variable.shape[0])
    return IndexedSlices(values, indices, variable.shape)


def _require_inside(where: str, indices: Array, rows: int) -> None:
    outside = np.flatnonzero((indices < 0) | (indices >= rows))
    if outside.size:
        first = int(outside[0])
        raise InvalidArgumentError(f"{where}: indices[{first}] = {indices.flat[first]} is not in [0, {rows})")


def aggregated_slices(
    env: ReplicaEnv, how: VariableAggregation, rows: IndexedSlices, site: str
) -> IndexedSlices:
    """The rows that all replicas change, by a variable's aggregation; a collective."""
    if how is VariableAggregation.ONLY_FIRST_REPLICA:
        values = env.communicator.broadcast(rows.values, 0, site=site)
        return IndexedSlices(values, env.communicator.broadcast(rows.indices, 0, site=site), rows.dense_shape)
    return all_reduce_slices(env, rows, how.name.lower(), site, None)


def scattered(old: Array, how: str, rows: IndexedSlices) -> Array:
    """A new array: `old` after a scatter update; rows that occur twice count twice."""
    xp = namespace_of(old)
    if hasattr(old, "at"):  # JAX, also while it is tracing
        changed: Array = getattr(old.at[rows.indices], _AT[how])(rows.values)
        return changed
    new = np.array(fetched(old))
    values, indices = (np.asarray(view(fetched(part))) for part in (rows.values, rows.indices))
    if how == "scatter_update":
        new[indices] = values
    elif how == "scatter_div" and new.dtype.kind in "iu":
        new = _divided(new, indices, values)
    else:
        apply_at_users_line()(_UFUNCS[how].at, new, indices, values)
    # CuPy has only some of these for repeated indices, so rows of variables on a GPU are changed on the host.
    return new if xp is np else xp.asarray(new)


def _divided(new: Array, indices: Array, values: Array) -> Array:
    """Integers divided and cut off towards zero, as the reference does."""
    signs, sizes = np.sign(new), np.abs(new)
    np.multiply.at(signs, indices, np.sign(values))
    apply_at_users_line()(np.floor_divide.at, sizes, indices, np.abs(values))
    return signs * sizes
