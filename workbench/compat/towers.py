"""`wb.compat.towers`: the first generation of distribution strategies (tf.contrib.distribute of TensorFlow 1.8).

A tower is a replica, and a distribution a strategy. Operations run when they are called: an operation that a graph
program evaluates again in a session, such as the result of `update`, does not run again.
"""

from __future__ import annotations

from typing import Any

from workbench.compat.modern_spelling import tell
from workbench.compat.tower_context import TowerContext
from workbench.compat.tower_strategy import MirroredStrategy, distribution_of
from workbench.compat.tower_variables import get_variable
from workbench.distribute.default import get_replica_context, get_strategy

__all__ = ["MirroredStrategy", "TowerContext", "get_tower_context", "get_variable", "trainable_variables"]


def get_tower_context() -> TowerContext | None:
    """The context of the running tower function, None in cross-tower context (as tf.contrib.distribute).

    Outside all scopes, it is that of the default strategy, with one tower.
    """
    tell("get_tower_context()", "wb.distribute.get_replica_context()")
    context = get_replica_context()
    return None if context is None else TowerContext(context, distribution_of)


def trainable_variables() -> list[Any]:
    """The trainable variables of the caller's strategy, from its scope or tower function, in order of creation."""
    tell("trainable_variables()", "[variable for variable in strategy.variables if variable.trainable]")
    return [variable for variable in get_strategy().variables if variable.trainable]
