"""DescribedVariable: the part of a variable that placements use: its description and its placement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.distribute.variables.aggregation import VariableAggregation, VariableSynchronization
from workbench.distribute.variables.variable_description import VariableDescription
from workbench.distribute.variables.variable_like import VariableLike

if TYPE_CHECKING:
    from workbench.distribute.described_strategy import DescribedStrategy
    from workbench.runtime.replica.env import ReplicaEnv


class DescribedVariable(VariableLike):
    """A variable without its values; `Variable` adds these.

    Attributes:
      description: The part of it that travels.
      placement: The `Placement` of its values, None for a plain variable; untyped, because that is built on this class.
      plain_device: The device of a plain variable, "" for those of strategies.
    """

    description: VariableDescription
    placement: Any
    plain_device: str

    def own_component(self, env: ReplicaEnv) -> Any:
        """The component of the replica that the calling thread runs.

        Raises:
          NotImplementedError: in this class; `Variable` has components.
        """
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The name with output number, such as "w:0"."""
        return f"{self.description.name}:0"

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions."""
        return self.description.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.description.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.description.shape))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of its elements."""
        return self.description.dtype

    @property
    def trainable(self) -> bool:
        """Whether training should change it."""
        return self.description.trainable

    @property
    def synchronization(self) -> VariableSynchronization:
        """ON_WRITE or ON_READ; AUTO for a plain variable."""
        return self.description.synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """How values of several replicas are combined."""
        return self.description.aggregation

    @property
    def strategy(self) -> DescribedStrategy | None:
        """The strategy in whose scope it was created, or None.

        Raises:
          NotImplementedError: in this class; `Variable` knows its strategy.
        """
        raise NotImplementedError
