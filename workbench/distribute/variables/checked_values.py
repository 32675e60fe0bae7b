"""Checks new values of variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.backends.conversion import conversion, holds
from workbench.backends.numpy import dtype_text
from workbench.backends.users_line import apply_at_users_line
from workbench.debugging import numerics
from workbench.debugging.dump.recording import thread as dump_thread
from workbench.distribute.arrays.as_array import Array, as_array, as_operand, namespace_of
from workbench.distribute.arrays.host_reduce import require_reducible
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.variables.aggregation import VariableAggregation, VariableSynchronization
from workbench.distribute.variables.programs import Update
from workbench.distribute.variables.scatter import SCATTERS
from workbench.distribute.variables.scatter_operands import fitted, integers, on_host
from workbench.errors import InvalidArgumentError
from workbench.runtime.replica.env import current_env

if TYPE_CHECKING:
    from workbench.distribute.variables.described_variable import DescribedVariable

# Concatenated rows of several replicas have no meaning for these updates: with equal indices, which would win?
_NOT_AGGREGATED = frozenset(("scatter_min", "scatter_max", "scatter_update"))
# Updates without arithmetic, which accept bools and strings.
_REPLACING = frozenset(("assign", "scatter_update"))


def checked_update(variable: DescribedVariable, how: Update, value: Any) -> Array | IndexedSlices:
    """Converts `value` to a read-only array of the variable's dtype and shape; to rows for scatter updates.

    Args:
      variable: The variable.
      how: The operation, such as "assign_add".
      value: An array, a number, nested lists, or `IndexedSlices` for scatter updates.

    Raises:
      NotImplementedError: for a scatter update that this variable does not have.
      ValueError: if the shape differs, or the variable's dtype cannot hold an array's kind or numbers.
      TypeError: if the dtype cannot hold a Python number.
      InvalidArgumentError: if it is not finite and that is checked, or the variable's dtype has no such arithmetic.
    """
    env = current_env()
    if how not in _REPLACING:
        require_reducible(variable.dtype, f"{how} on variable {variable.name!r}")
    if how in SCATTERS:
        require_scatter(variable, how)
        rows = checked_slices(variable, how, value, traced=env is not None and env.traced)
        if numerics.thread.place:
            numerics.check(rows.values, f"{how} of variable {variable.name!r}")
        _dump(variable, how, rows.values)
        return rows
    array = (as_array if env is None else as_operand)(value, variable.dtype)
    if numerics.thread.place:
        numerics.check(array, f"{how} of variable {variable.name!r}")
    _dump(variable, how, array)
    if array.shape != variable.shape:
        raise ValueError(
            f"{how} on variable {variable.name!r}: the value has shape {array.shape}, the variable {variable.shape}; "
            f"give an array of the variable's shape (np.broadcast_to, np.full or reshape make one)"
        )
    if array.dtype == variable.dtype:
        return array
    if not holds(variable.dtype, array):
        # TensorFlow distinguishes a Python number of another kind and an array of another dtype.
        refusal = InvalidArgumentError if hasattr(value, "dtype") else TypeError
        raise refusal(
            f"{how} on variable {variable.name!r}: a value of {dtype_text(array.dtype)} does not fit "
            f"{dtype_text(variable.dtype)}; {conversion(variable.dtype)}, or create the variable with its dtype"
        )
    return apply_at_users_line()(array.astype, variable.dtype)  # type: ignore[no-any-return]


def _dump(variable: DescribedVariable, how: Update, value: Any) -> None:
    if (recording := dump_thread.recording) is not None:
        recording.add(how, (value,), name=variable.name)


def require_scatter(variable: DescribedVariable, how: str) -> None:
    """Refuses scatter updates that TensorFlow does not have.

    Raises:
      NotImplementedError: for ON_READ variables; and for minimum, maximum and update with aggregation SUM or MEAN.
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
    """Converts the values of `value` to the variable's dtype, with one row per index.

    Args:
      variable: The variable to change.
      how: The method, for messages.
      value: IndexedSlices whose values have shape `indices.shape + variable.shape[1:]`, or are a scalar.
      traced: Whether a program is being traced, when indices cannot be read.

    Raises:
      TypeError: if it is not IndexedSlices, its indices are not integers, or the dtype cannot hold the values.
      ValueError: if shapes do not match.
      InvalidArgumentError: if an index is out of range.
    """
    where = f"{how} on variable {variable.name!r}"
    if not isinstance(value, IndexedSlices):
        raise TypeError(
            f"{where} needs wb.IndexedSlices(values, indices), got {type(value).__name__}; to change the whole "
            f"variable use assign, assign_add or assign_sub"
        )
    if not variable.shape:
        raise ValueError(f"{where}: the variable is a scalar, it has no rows")
    values, indices = as_operand(value.values, variable.dtype), integers(value.indices, where)
    wanted = (*indices.shape, *variable.shape[1:])
    if values.shape == ():
        values = namespace_of(values).broadcast_to(values, wanted)
    if tuple(values.shape) != wanted:
        raise ValueError(
            f"{where}: {indices.size} indices of a variable of shape {variable.shape} need values of shape {wanted}, "
            f"got {tuple(values.shape)}"
        )
    values = fitted(values, variable.dtype, where)
    if not traced:
        _require_inside(where, on_host(indices), variable.shape[0])
    return IndexedSlices(values, indices, variable.shape)


def checked_rows(variable: Any, indices: Any) -> Array:
    """Checks indices of rows to read.

    Raises:
      TypeError: if they are not integers.
      ValueError: if the variable is a scalar.
      InvalidArgumentError: if one is out of range.
    """
    where = f"sparse_read of variable {variable.name!r}"
    if not variable.shape:
        raise ValueError(f"{where}: the variable is a scalar, it has no rows")
    wanted = integers(indices, where)
    env = current_env()
    if env is None or not env.traced:
        wanted = on_host(wanted)
        _require_inside(where, wanted, variable.shape[0])
    return wanted


def _require_inside(where: str, indices: Array, rows: int) -> None:
    outside = np.flatnonzero((indices < 0) | (indices >= rows))
    if outside.size:
        first = int(outside[0])
        raise InvalidArgumentError(f"{where}: indices[{first}] = {indices.flat[first]} is not in [0, {rows})")
