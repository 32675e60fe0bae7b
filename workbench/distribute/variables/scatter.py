"""Scatter updates: IndexedSlices change some rows of a variable (as tf.Variable.scatter_add and its relatives)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from workbench.backends.from_gpu import fetched
from workbench.backends.numpy import view
from workbench.backends.users_line import apply_at_users_line
from workbench.distribute.arrays.as_array import Array, namespace_of
from workbench.distribute.arrays.gather import all_reduce_slices
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.variables.aggregation import VariableAggregation

if TYPE_CHECKING:
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
# NumPy's and JAX's names for them.
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


def aggregated_slices(
    env: ReplicaEnv, how: VariableAggregation, rows: IndexedSlices, site: str
) -> IndexedSlices:
    """The changed rows of all replicas, combined by a variable's aggregation; a collective.

    Args:
      env: The replica.
      how: The aggregation of the variable.
      rows: The rows that this replica changes.
      site: The user's line, for errors and telemetry.
    """
    if how is VariableAggregation.ONLY_FIRST_REPLICA:
        values = env.communicator.broadcast(rows.values, 0, site=site)
        return IndexedSlices(values, env.communicator.broadcast(rows.indices, 0, site=site), rows.dense_shape)
    return all_reduce_slices(env, rows, how.name.lower(), site, None)


def scattered(old: Array, how: str, rows: IndexedSlices) -> Array:
    """Returns `old` after a scatter update, as a new array; repeated rows are applied each time.

    Args:
      old: The array before.
      how: The operation, such as "scatter_add".
      rows: Indices of the rows and their values.
    """
    xp = namespace_of(old)
    if hasattr(old, "at"):  # JAX, even while tracing
        changed: Array = getattr(old.at[rows.indices], _AT[how])(rows.values)
        return changed
    new = np.array(fetched(old))
    values, indices = (np.asarray(view(fetched(part))) for part in (rows.values, rows.indices))
    scatter_into(new, how, values, indices)
    # CuPy supports only some of these for repeated indices, so rows of variables on a GPU are changed on the host.
    return new if xp is np else xp.asarray(new)


def scatter_into(array: Array, how: str, values: Array, indices: Array) -> None:
    """Changes rows of a NumPy `array` in place; repeated rows are applied each time.

    Args:
      array: Shape `(rows, ...)`.
      how: The operation, such as "scatter_add".
      values: Shape `(n, ...)`.
      indices: Shape `(n,)`, int64: the row that each value belongs to.
    """
    if how == "scatter_update":
        array[indices] = values
    elif how == "scatter_div" and array.dtype.kind in "iu":
        array[...] = _divided(array, indices, values)
    else:
        apply_at_users_line()(_UFUNCS[how].at, array, indices, values)


def _divided(new: Array, indices: Array, values: Array) -> Array:
    """Integer division truncated towards zero, as in TensorFlow."""
    signs, sizes = np.sign(new), np.abs(new)
    np.multiply.at(signs, indices, np.sign(values))
    apply_at_users_line()(np.floor_divide.at, sizes, indices, np.abs(values))
    return signs * sizes
