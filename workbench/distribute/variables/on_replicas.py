"""Variables with a component on every replica: mirrored ones, which are equal, and sync-on-read ones, which differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import tree
from workbench.backends.users_line import users_line
from workbench.communicators.core.options import Reduction
from workbench.distribute import contexts
from workbench.distribute.arrays.as_array import Array, as_operand
from workbench.distribute.arrays.host_reduce import reduce_components, require_reducible
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.arrays.reduce_op import ReduceOp
from workbench.distribute.values.distributed_values import Mirrored, PerReplica
from workbench.distribute.variables import programs, traced_merge
from workbench.distribute.variables.aggregation import VariableAggregation, VariableSynchronization
from workbench.distribute.variables.checked_values import checked_update
from workbench.distribute.variables.pieces import Piece
from workbench.distribute.variables.placement import Placement, UpdateProgram, added, again_if_lost
from workbench.distribute.variables.programs import Update

if TYPE_CHECKING:
    from workbench.distribute.described_strategy import DescribedStrategy
    from workbench.distribute.variables.described_variable import DescribedVariable
    from workbench.runtime.replica.env import ReplicaEnv

_NONE, _SUM, _MEAN = VariableAggregation.NONE, VariableAggregation.SUM, VariableAggregation.MEAN


class OnReplicas(Placement):
    """Mirrored variables: every replica has a component; all get the same updates, so they stay equal."""

    by_replica = True

    def place(self, variable: DescribedVariable, array: Array, forgotten: Sequence[str]) -> None:
        """See `Placement.place`."""
        strategy = self.strategy
        # On TPUs, tracing turns the NumPy arrays into rows.
        library = strategy.library if strategy.devices[0].kind != "TPU" else "numpy"
        strategy.run_internal(programs.create, (variable.description.key, array, forgotten, library))

    def common_value(self, variable: DescribedVariable) -> Array:
        """See `Placement.common_value`."""
        env = contexts.merging_env()
        if env is not None:
            return traced_merge.read_component(env, variable.description.key, 0)
        return self.components(variable, [0])[0]

    def components(self, variable: DescribedVariable, ranks: Sequence[int] | None = None) -> list[Array]:
        """See `Placement.components`."""
        return again_if_lost(lambda: self._components(variable, ranks))

    def _components(self, variable: DescribedVariable, ranks: Sequence[int] | None) -> list[Array]:
        contexts.require_cross_replica(self.strategy, "reading a variable")
        handle = self.strategy.run_internal(programs.read_variable, (variable.description.key,))
        return handle.values() if ranks is None else [handle.value(rank) for rank in ranks]

    def pieces(self, variable: DescribedVariable) -> tuple[Piece, ...]:
        """The whole value, on each replica."""
        ranks = tuple(range(self.strategy.num_replicas_in_sync))
        return (Piece(variable.description.key, ranks, (0,) * variable.ndim, variable.shape),)

    def update_from_parts(self, variable: DescribedVariable, how: Update, value: PerReplica) -> None:
        """See `Placement.update_from_parts`."""
        # As in TensorFlow, each component gets its own part, whatever the aggregation.
        env = contexts.merging_env()
        if env is not None:
            _update_own(env, variable, how, value.own_component(env))
        else:
            handle = value.handle_for(self.strategy.group)
            program = (users_line(), _update_own, variable, how, handle)
            with self.strategy.taking(handle) as check:
                self.strategy.run_internal(programs.update_at_line, program, check=check)

    def put(self, variable: DescribedVariable, how: Update, array: Array | IndexedSlices) -> None:
        """See `Placement.put`."""
        env, key = contexts.merging_env(), variable.description.key
        if env is not None:
            programs.update(env, key, how, array)
        else:
            program = (users_line(), programs.update, key, how, array)
            with self.strategy.taking(added(how, array)) as check:
                self.strategy.run_internal(programs.update_at_line, program, check=check)

    def run_update(
        self,
        program: UpdateProgram,
        fn: Callable[..., Any],
        own: tuple[Any, Any],
        group: bool,
        ranks: Sequence[int] | None = None,
    ) -> Any:
        """Runs the function on all or some replicas; each leaf of the result is a `Mirrored`."""
        runtime = self.strategy.group
        prepared = runtime.prepare(program, user_function=fn)
        if ranks is not None:
            together = _grouped if group else tuple
            with self.strategy.taking(own) as check:
                made = runtime.run(prepared, *own, ranks=ranks, check=check)
            return tree.map(lambda leaf: together([leaf.value(rank) for rank in ranks]), made)
        with self.strategy.taking(own) as check:
            result = runtime.run(prepared, *own, wrap=Mirrored, check=check)
        return result if group else tree.map(lambda leaf: leaf.values, result)

    def reseed(
        self, variables: Sequence[DescribedVariable], lost: Sequence[int], survivors: Sequence[int]
    ) -> None:
        """Copies a survivor's components; a sync-on-read variable with SUM continues with zero."""
        entries = [(variable.description.key, _policy(variable)) for variable in variables]
        self.strategy.run_collective(programs.reseed, (entries, survivors[0], list(lost)))

    def update_together(
        self, env: ReplicaEnv, variable: DescribedVariable, how: Update, value: Any, site: str
    ) -> None:
        """Updates every component with the combined values, or with its own if there is no aggregation."""
        programs.update(env, variable.description.key, how, self._aggregated(env, variable, how, value, site))

    def update_here(self, env: ReplicaEnv, variable: DescribedVariable, how: Update, value: Any) -> None:
        """See `Placement.update_here`."""
        _update_own(env, variable, how, value)

    def call_update(self, env: ReplicaEnv, call: Callable[[], Any]) -> Any:
        """See `Placement.call_update`."""
        return call()

    def rank_here(self, env: ReplicaEnv) -> Any:
        """See `Placement.rank_here`."""
        return env.rank

    def reduced(self, env: ReplicaEnv, array: Array, op: str, site: str) -> Array:
        """See `Placement.reduced`."""
        combined: Array = self.strategy.all_reduce_arrays(env.communicator, [array], Reduction(op, site))[0]
        return combined


class SyncOnRead(OnReplicas):
    """Sync-on-read variables: each replica updates its own component alone; reading aggregates them."""

    def common_value(self, variable: DescribedVariable) -> Array:
        """See `Placement.common_value`."""
        aggregation = variable.aggregation
        if aggregation is _NONE:
            raise ValueError(
                f"variable {variable.name!r} is ON_READ with aggregation NONE: its components have no common value; "
                f"look at them with strategy.local_results(variable), or create it with aggregation SUM, MEAN or "
                f"ONLY_FIRST_REPLICA"
            )
        if aggregation not in (_SUM, _MEAN):
            return super().common_value(variable)
        op = ReduceOp[aggregation.name]
        env = contexts.merging_env()
        if env is not None:
            total: Array = traced_merge.reduce(env, op, variable, None)
            return total
        return np.asarray(reduce_components(op, self.components(variable), None))

    def components(self, variable: DescribedVariable, ranks: Sequence[int] | None = None) -> list[Array]:
        """The components, read without retries, because a component is lost with its replica."""
        return self._components(variable, ranks)

    def pieces(self, variable: DescribedVariable) -> tuple[Piece, ...]:
        """Empty, because the value is computed from the components."""
        return ()

    def part_of(self, variable: DescribedVariable, how: Update, value: Any) -> Any:
        """See `Placement.part_of`."""
        if variable.aggregation is not _SUM:
            return value
        if how != "assign":
            raise ValueError(
                f"{how} on variable {variable.name!r} outside of replica functions: ON_READ with SUM, it would count "
                f"once per replica; add in a replica function, or assign the new total"
            )
        require_reducible(variable.dtype, f"{how} on variable {variable.name!r}, ON_READ with SUM,")
        # The components must add up to the value; integers are truncated, as in TensorFlow.
        share = as_operand(value, variable.dtype) / self.strategy.num_replicas_in_sync
        return share.astype(variable.dtype)

    def update_together(
        self, env: ReplicaEnv, variable: DescribedVariable, how: Update, value: Any, site: str
    ) -> None:
        """Updates only this replica's component."""
        _update_own(env, variable, how, value)


def placement_of(strategy: DescribedStrategy, synchronization: VariableSynchronization) -> Placement:
    """The placement of variables with a component on each replica."""
    on_read = synchronization is VariableSynchronization.ON_READ
    return SyncOnRead(strategy) if on_read else OnReplicas(strategy)


def _update_own(env: ReplicaEnv, variable: DescribedVariable, how: Update, value: Any) -> None:
    """Updates one replica's component with its own value."""
    programs.update(env, variable.description.key, how, checked_update(variable, how, value))


def _grouped(components: Sequence[Any]) -> Any:
    return Mirrored(components) if len(components) > 1 else components[0]


def _policy(variable: DescribedVariable) -> str:
    on_read = variable.synchronization is VariableSynchronization.ON_READ
    return "zero" if on_read and variable.aggregation is _SUM else "copy"
