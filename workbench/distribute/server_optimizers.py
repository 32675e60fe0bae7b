"""`wb.distribute.server_optimizers`: optimizers whose steps the parameter servers compute.

A function on a worker sends gradients. The server of a variable, or of a shard, applies each step as soon as it
arrives, and keeps the optimizer's state (momenta, accumulators) beside the variable. Each step is applied once.

With a `FunctionOptimizer`, you write the step as a function of arrays.

>>> optimizer = Adam(0.01)
>>> def step(x, y):  # doctest: +SKIP
...     gradient = loss_gradient(w.read_value(), x, y)
...     apply_gradients(optimizer, [(gradient, w)], max_staleness=8)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from workbench.arguments import count
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.servers.function_optimizer import FunctionOptimizer
from workbench.distribute.servers.on_servers import OnServers
from workbench.distribute.servers.sharded_variable import ShardedVariable
from workbench.distribute.servers.update_rules import SGD, Adagrad, Adam, rule_fields
from workbench.distribute.variables.checked_values import checked_slices, checked_update
from workbench.distribute.variables.variable import Variable
from workbench.errors import InvalidArgumentError

__all__ = ["SGD", "Adagrad", "Adam", "FunctionOptimizer", "SlotState", "apply_gradients"]


def apply_gradients(
    optimizer: SGD | Adagrad | Adam | FunctionOptimizer,
    grads_and_vars: Iterable[tuple[Any, Any]],
    max_staleness: int | None = None,
) -> int:
    """Makes parameter servers apply an optimizer's step; call it in the notebook or in a scheduled function.

    Args:
      optimizer: The optimizer.
      grads_and_vars: Pairs of a gradient and a variable on parameter servers, whole or in shards. A gradient is an
        array of the variable's shape, IndexedSlices of some rows, in which duplicates add up, or None, which is
        skipped.
      max_staleness: Skip a step if its variable, or the shard, has had more updates than this since this function, or
        the notebook, last read it; None applies all.

    Returns:
      The number of steps that were skipped as too stale.

    Raises:
      ValueError: if a shape differs.
      TypeError: if the variable's dtype is not floating, or cannot hold the gradient; or if an argument is not an
        optimizer or not a pair.
      InvalidArgumentError: if it is not a variable on parameter servers, or an index is out of range; if a user's step
        returns another shape; if `max_staleness` is negative.
      NotFinite: with `wb.debugging.enable_check_numerics()`, if a variable or its optimizer state would not be finite;
        the variable, or the shard, is unchanged.
      UnknownError: if a user's step raises; the message names server, variable and update, and the variable, or the
        shard, is unchanged.
    """
    if not isinstance(optimizer, SGD | Adagrad | Adam | FunctionOptimizer):
        raise TypeError(
            f"apply_gradients takes an optimizer of wb.distribute.server_optimizers, got {optimizer!r:.80}; its "
            f"FunctionOptimizer makes a step of a function"
        )
    most = max_staleness
    if most is not None:
        most = count(most, "max_staleness", 0, otherwise=", or None to take all")
    rule = optimizer if isinstance(optimizer, FunctionOptimizer) else rule_fields(optimizer)
    checked = [
        (_checked(gradient, variable), variable)
        for gradient, variable in _pairs(grads_and_vars)
        if gradient is not None
    ]
    parts: dict[Any, list[tuple[Variable, Any]]] = {}  # one per strategy
    for gradient, variable in checked:
        shards = (
            variable.by_shard(gradient) if isinstance(variable, ShardedVariable) else [(variable, gradient)]
        )
        parts.setdefault(variable.strategy, []).extend(shards)
    left_out = 0
    for of_strategy in parts.values():
        if of_strategy:
            # Checked before, so the variables are on parameter servers.
            placement: Any = of_strategy[0][0].placement
            left_out += placement.step_all(rule, of_strategy, most)
    return left_out


def _pairs(given: Any) -> Iterator[tuple[Any, Any]]:
    if not isinstance(given, Iterable):
        raise TypeError(f"apply_gradients takes pairs (gradient, variable), got {given!r:.80}")
    for pair in given:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(
                f"apply_gradients takes pairs (gradient, variable), got {type(pair).__name__}: {pair!r:.80}"
            )
        yield pair[0], pair[1]


def _checked(gradient: Any, variable: Any) -> Any:
    """The gradient in the variable's dtype, with each row once."""
    _parts(variable, "apply_gradients")
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


class SlotState:
    """The optimizer state of some variables on servers, for `wb.Checkpoint(..., slots=SlotState(...))`.

    Momenta and accumulators then continue where they were, even on another number of servers or shards. A variable
    that has had no step has their initial values.

    Args:
      optimizer: The argument of `apply_gradients`.
      variables: Variables on parameter servers, whole or in shards, with different names.

    Raises:
      InvalidArgumentError: if one is not a variable on parameter servers, or two have the same name.
    """

    def __init__(self, optimizer: SGD | Adagrad | Adam | FunctionOptimizer, variables: Sequence[Any]) -> None:
        self._optimizer = optimizer
        self._variables = {variable.name.removesuffix(":0"): variable for variable in variables}
        if len(self._variables) < len(variables):
            raise InvalidArgumentError(
                "SlotState: two of the variables have the same name; name them differently"
            )
        for variable in variables:
            _parts(variable, "SlotState")

    def __repr__(self) -> str:
        return f"SlotState({self._optimizer!r}, of {', '.join(self._variables) or 'no variable'})"

    def state_dict(self) -> dict[str, dict[str, Any]]:
        """The state to save.

        Returns:
          Name of a variable -> "steps", the number of its steps (the most of its shards), and "slots", by name, each an
          array of the variable's shape and dtype.
        """
        state: dict[str, dict[str, Any]] = {}
        for name, variable in self._variables.items():
            parts = _parts(variable, "SlotState")
            placement: Any = parts[0].placement
            found = placement.slots(dict(self._optimizer.slots), parts)
            whole = (
                slots[0] if len(slots) == 1 else np.concatenate(slots)
                for slots in zip(*(slots for _, slots in found), strict=True)
            )
            state[name] = {
                "steps": max(steps for steps, _ in found),
                "slots": dict(zip(self._optimizer.slots, whole, strict=True)),
            }
        return state

    def load_state_dict(self, state: dict[str, dict[str, Any]]) -> None:
        """Sends a state from `state_dict` to the servers.

        Raises:
          NotFinite: with `wb.debugging.enable_check_numerics()`, if it contains a NaN or an infinity.
        """
        for name, variable in self._variables.items():
            parts = _parts(variable, "SlotState")
            kept = [np.asarray(state[name]["slots"][slot]) for slot in self._optimizer.slots]
            shares = [[slot] for slot in kept]
            if len(parts) > 1:
                ends = np.cumsum([len(part) for part in parts])[:-1]
                shares = [np.split(slot, ends) for slot in kept]
            placement: Any = parts[0].placement
            placement.set_slots(
                dict(self._optimizer.slots),
                int(state[name]["steps"]),
                [(part, [share[number] for share in shares]) for number, part in enumerate(parts)],
            )


def _parts(variable: Any, what: str) -> list[Variable]:
    """The variable itself, or its shards."""
    parts = variable.variables if isinstance(variable, ShardedVariable) else [variable]
    if not all(isinstance(part, Variable) and isinstance(part.placement, OnServers) for part in parts):
        raise InvalidArgumentError(
            f"{what} needs variables on parameter servers, got {variable!r}; create it in the scope of a "
            f"ParameterServerStrategy"
        )
    return parts
