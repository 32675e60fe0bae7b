"""VariableDescription: what of a variable travels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.distribute.aggregation import VariableAggregation, VariableSynchronization
from workbench.distribute.strategy_description import StrategyDescription


@dataclass(frozen=True, slots=True, eq=False)
class VariableDescription:
    """What of a variable travels: everything but its values. Equal where the key is.

    Attributes:
      key: Name of its components in the replicas' stores, unique.
      strategy: Whose variable it is, or None for a plain one.
      name: The user's name for it.
      shape: Its shape.
      dtype: Its dtype.
      trainable: Whether training should change it.
      synchronization: AUTO for plain variables, else ON_WRITE or ON_READ.
      aggregation: How values of several replicas become one.
    """

    key: str
    strategy: StrategyDescription | None
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    trainable: bool
    synchronization: VariableSynchronization
    aggregation: VariableAggregation

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VariableDescription) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)
