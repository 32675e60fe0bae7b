"""Variables in the spelling of TensorFlow 1: `get_variable`, and scopes in which they are local to their tower."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from workbench.backends.users_line import warn
from workbench.compat.modern_spelling import tell
from workbench.distribute.strategies.strategy import Strategy
from workbench.distribute.variables.aggregation import VariableAggregation, VariableSynchronization
from workbench.distribute.variables.variable import Variable


class _Thread(threading.local):
    """How reads combine the variables that this thread creates; None if they are mirrored."""

    aggregation: VariableAggregation | None = None


_thread = _Thread()


def get_variable(
    name: str,
    initializer: Any,
    *,
    shape: Sequence[int] = (),
    dtype: Any = None,
    trainable: bool = True,
) -> Variable:
    """A variable of the current scope (as tf.get_variable, but a used name creates another variable).

    Args:
      name: A name for readers; variables are not shared by name.
      initializer: The initial value, or a function that returns it for `shape`, such as `np.zeros`.
      shape: Shape of the variable, if `initializer` is a function.
      dtype: None for that of the initial value.
      trainable: Whether optimizers update it. Variables of `tower_local_var_scope` are not trainable.
    """
    value = initializer(tuple(shape)) if callable(initializer) else initializer
    local = _thread.aggregation
    if local is None:
        tell("get_variable(name, initializer)", "wb.Variable(value, name=name)")
        return Variable(value, name=name, dtype=dtype, trainable=trainable)
    return Variable(
        value,
        name=name,
        dtype=dtype,
        trainable=False,
        synchronization=VariableSynchronization.ON_READ,
        aggregation=local,
    )


@contextlib.contextmanager
def local_to_towers(strategy: Strategy, aggregation: str) -> Iterator[None]:
    """Makes `get_variable` create variables with independent components in the block.

    Args:
      strategy: The strategy whose scope contains the block.
      aggregation: How they are combined on reading, "SUM" or "MEAN".
    """
    outer = _thread.aggregation
    _thread.aggregation = VariableAggregation[aggregation]
    before = {variable.description.key for variable in strategy.variables}
    try:
        yield
    finally:
        _thread.aggregation = outer
    mirrored = [
        variable.name
        for variable in strategy.variables
        if variable.description.key not in before
        and variable.synchronization is not VariableSynchronization.ON_READ
    ]
    if mirrored:
        warn(
            f"tower_local_var_scope makes local what get_variable creates, and {', '.join(mirrored)} was made by "
            f"wb.Variable: it is mirrored. Use wb.compat.towers.get_variable, or give wb.Variable "
            f"synchronization='ON_READ' and aggregation={aggregation!r}",
            UserWarning,
        )
