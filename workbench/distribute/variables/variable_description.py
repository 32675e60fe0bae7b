"""VariableDescription: the part of a variable that is sent to replicas."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from workbench.distribute.strategy_description import StrategyDescription
from workbench.distribute.variables.aggregation import VariableAggregation, VariableSynchronization
from workbench.errors import CaptureError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VariableDescription:
    """The part of a variable that travels: everything but its values. Descriptions with the same key are equal.

    The description of a plain variable does not travel; pickling it raises CaptureError.

    Attributes:
      key: Name of its components in the replicas' stores, unique.
      strategy: The strategy of the variable, or None for a plain one.
      name: The user's name for it.
      shape: Its shape.
      dtype: Its dtype.
      trainable: Whether training should change it.
      synchronization: AUTO for plain variables, else ON_WRITE or ON_READ.
      aggregation: How values of several replicas are combined.
      constrained: Whether it has a constraint, which does not travel.
      server: The parameter server that holds it, if its strategy has such servers.
    """

    key: str
    strategy: StrategyDescription | None
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    trainable: bool
    synchronization: VariableSynchronization
    aggregation: VariableAggregation
    constrained: bool = False
    server: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        if self.strategy is None:
            raise CaptureError(
                f"The variable '{self.name}:0' was created outside of strategy.scope(): it lives in this process only "
                f"and a replica function cannot use it; create it inside: with strategy.scope(): wb.Variable(...)"
            )
        return VariableDescription, tuple(getattr(self, field.name) for field in fields(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VariableDescription) and other.key == self.key

    def __repr__(self) -> str:
        return self.key  # shown by the error for a function that creates a new variable in each step

    def __hash__(self) -> int:
        return hash(self.key)
