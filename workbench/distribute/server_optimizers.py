"""`wb.distribute.server_optimizers`: optimizers whose steps the parameter servers make.

A function on a worker sends gradients; the server that holds a variable, or a shard of it, applies the step to it as
soon as it comes, and keeps what the optimizer remembers (momenta, accumulators) beside it. Each step counts once.

>>> optimizer = Adam(0.01)
>>> def step(x, y):  # doctest: +SKIP
...     gradient = loss_gradient(w.read_value(), x, y)
...     apply_gradients(optimizer, [(gradient, w)], max_staleness=8)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.servers.on_servers import OnServers
from workbench.distribute.servers.sharded_variable import ShardedVariable
from workbench.distribute.servers.update_rules import SGD, Adagrad, Adam, rule_fields
from workbench.distribute.variables.checked_values import checked_slices, checked_update
from workbench.distribute.variables.variable import Variable
from workbench.errors import InvalidArgumentError

__all__ = ["SGD", "Adagrad", "Adam", "apply_gradients"]


def apply_gradients(
    optimizer: SGD | Adagrad | Adam,
    grads_and_vars: Iterable[tuple[Any, Any]],
    max_staleness: int | None = None,
) -> int:
    """Has parameter servers make an optimizer's step with gradients; in the notebook, or in a scheduled function.

    Args:
      optimizer: Which step.
      grads_and_vars: Pairs of a gradient and a variable on parameter servers, whole or in shards. A gradient is an
        array of the variable's shape, IndexedSlices of some rows, whose duplicates add up, or None, which is passed
        over.
      max_staleness: A step is left out where its variable, or the shard, has had more updates than this since this
        function, or the notebook, has last read it; None takes all.

    Returns:
      How many steps were left out as too stale.

    Raises:
      ValueError: If a shape differs.
      TypeError: If the variable's dtype is not floating, or cannot hold the gradient.
      InvalidArgumentError: If it is no variable on parameter servers, or an index is outside of it.
    """
    rule = rule_fields(optimizer)
    checked = [
        (_checked(gradient, variable), variable)
        for gradient, variable in grads_and_vars
        if gradient is not None
    ]
    left_out = 0
    for gradient, variable in checked:
        parts = (
            variable.by_shard(gradient) if isinstance(variable, ShardedVariable) else [(variable, gradient)]
        )
        if parts:
            placement: Any = parts[0][0].placement  # of servers, as was checked
            left_out += placement.step_all(rule, parts, max_staleness)
    return left_out


def _checked(gradient: Any, variable: Any) -> Any:
    """The gradient with the variable's dtype; rows each once."""
    parts = variable.variables if isinstance(variable, ShardedVariable) else [variable]
    if not all(isinstance(part, Variable) and isinstance(part.placement, OnServers) for part in parts):
        raise InvalidArgumentError(
            f"apply_gradients needs variables on parameter servers, got {variable!r}; create it in the scope of a "
            f"ParameterServerStrategy"
        )
    if variable.dtype.kind != "f":
        raise TypeError(
            f"variable {variable.name!r} has dtype {variable.dtype.name}, and an optimizer's step needs a floating one"
        )
    if not isinstance(gradient, IndexedSlices):
        return checked_update(variable, "assign_sub", gradient)
    rows = checked_slices(variable, "scatter_sub", gradient, traced=False)
    indices = np.asarray(rows.indices).reshape(-1)
    values = np.asarray(rows.values).reshape(indices.size, *variable.shape[1:])
    once, places = np.unique(indices, return_inverse=True)
    if once.size == indices.size:
        return IndexedSlices(values, indices, variable.shape)
    total = np.zeros((once.size, *variable.shape[1:]), variable.dtype)
    np.add.at(total, places, values)
    return IndexedSlices(total, once, variable.shape)
