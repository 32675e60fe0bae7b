"""VariableComponent: one replica's part of a variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.backends.users_line import users_line
from workbench.distribute import contexts
from workbench.distribute.arrays.as_array import Array, describe
from workbench.distribute.variables import programs, traced_merge
from workbench.distribute.variables.checked_values import checked_update
from workbench.distribute.variables.placement import added
from workbench.distribute.variables.programs import Update
from workbench.distribute.variables.variable_like import VariableLike
from workbench.errors import TracingError
from workbench.runtime.replica.env import current_env

if TYPE_CHECKING:
    from workbench.distribute.variables.described_variable import DescribedVariable
    from workbench.runtime.replica.env import ReplicaEnv


class VariableComponent(VariableLike):
    """The component of one replica, for reading or updating it alone; `strategy.local_results(variable)` returns them.

    Attributes:
      variable: Its variable.
      rank: The replica.
    """

    __slots__ = ("rank", "variable")

    def __init__(self, variable: DescribedVariable, rank: int) -> None:
        self.variable = variable
        self.rank = rank

    @property
    def name(self) -> str:
        """The variable's name for replica 0, such as "w:0"; for others with the replica, such as "w/replica_1:0"."""
        base = self.variable.description.name
        return f"{base}:0" if self._traced_own or self.rank == 0 else f"{base}/replica_{self.rank}:0"

    @property
    def device(self) -> str:
        """Full name of its device."""
        strategy = self.variable.strategy
        if strategy is None:
            return self.variable.plain_device
        env = current_env()
        if self._traced_own and env is not None:
            return env.device.string  # raises, because it differs by replica
        device: str = self.variable.placement.component_device(self.variable, self.rank)
        return device

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions."""
        return self.variable.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of its elements."""
        return self.variable.dtype

    @property
    def trainable(self) -> bool:
        """Whether training should change it."""
        return self.variable.trainable

    def _array(self) -> Array:
        placement = self.variable.placement
        env = current_env()
        if placement is None or (env is None and not placement.by_replica):
            whole: Array = self.variable._array()
            return whole
        if env is None:
            own: Array = placement.components(self.variable, [self.rank])[0]
            return own
        if placement.by_replica and not self._traced_own:
            if contexts.merging_env() is not None:
                return traced_merge.read_component(env, self.variable.description.key, self.rank)
            self._require_own(env)
        return programs.component(env, self.variable.description.key)

    def _update(self, how: Update, value: Any) -> None:
        """Changes only this component."""
        array = checked_update(self.variable, how, value)
        placement = self.variable.placement
        env = current_env()
        if placement is None or not placement.by_replica:
            if env is not None and not contexts.in_cross_replica_context():
                raise RuntimeError(
                    f"one replica cannot update {self.name!r} alone, because all replicas share it; call {how} "
                    f"of the variable itself, on all replicas"
                )
            getattr(self.variable, how)(array)
            return
        key = self.variable.description.key
        if env is None:
            program = (users_line(), programs.update, key, how, array)
            strategy = placement.strategy
            with strategy.taking(added(how, array)) as check:
                strategy.run_internal(programs.update_at_line, program, ranks=[self.rank], check=check)
        else:
            if not self._traced_own:
                if contexts.merging_env() is not None:
                    traced_merge.update_component(env, key, self.rank, how, array)
                    return
                self._require_own(env)
            programs.update(env, key, how, array)

    @property
    def _traced_own(self) -> bool:
        """Whether it belongs to the replica that represents all while a program is traced."""
        return not isinstance(self.rank, int)

    def _identity(self) -> tuple[Any, ...]:
        return (self.variable.description.key, self.rank)

    def _require_own(self, env: ReplicaEnv) -> None:
        if env.traced:
            raise TracingError(
                f"{self.name!r} is the component of replica {self.rank}, and a traced replica function runs once for "
                f"all replicas; use the variable itself, which is each replica's own component there"
            )
        if env.rank != self.rank:
            raise RuntimeError(
                f"replica {env.rank} cannot use {self.name!r}, the component of replica {self.rank}; use the variable "
                f"itself, which is each replica's own component there"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return VariableComponent, (self.variable, self.rank)

    def __repr__(self) -> str:
        if self.variable.strategy is None:
            return f"<Variable {self.name!r} {describe(self.variable._array())}>"
        extent = ",".join(map(str, self.shape))
        return f"<Variable {self.name!r} {self.dtype.name}[{extent}] on {self.device}>"
