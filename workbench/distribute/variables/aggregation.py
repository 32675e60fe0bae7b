"""How a variable's components are kept together: synchronization and aggregation."""

from __future__ import annotations

import enum
from typing import Any, TypeVar


class VariableSynchronization(enum.Enum):
    """When the components of a variable are synchronized (as tf.VariableSynchronization).

    AUTO means ON_WRITE. ON_WRITE: every update reaches all components. ON_READ: replicas update their own component;
    reading outside replica functions aggregates them. NONE: not allowed for variables of a strategy.
    """

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How values of several replicas are combined (as tf.VariableAggregation).

    NONE: not at all, each replica uses its own. SUM, MEAN: over replicas. ONLY_FIRST_REPLICA: that of replica 0.
    """

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


_Member = TypeVar("_Member", VariableSynchronization, VariableAggregation)


def member(kind: type[_Member], value: Any) -> _Member:
    """Converts `value`, a member of `kind` or its name in any letter case, to a member.

    Raises:
      ValueError: if it is neither.
    """
    if isinstance(value, kind):
        return value
    if isinstance(value, str) and value.upper() in kind.__members__:
        return kind[value.upper()]
    names = ", ".join(kind.__members__)
    raise ValueError(f"unknown {kind.__name__} {value!r}; use one of {names}")
