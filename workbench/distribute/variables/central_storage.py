"""Variables with a single copy, which one replica, the holder, keeps for all; its programs are in `central_programs`.

The holder computes updates and writes the new value next to the old one; the others get its place: by collectives in
replica functions, otherwise from the notebook. The old value stays, so that the update can be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench import tree
from workbench.backends.users_line import users_line
from workbench.distribute.arrays.as_array import Array, as_array, is_python_number
from workbench.distribute.arrays.host_reduce import reduce_components
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.arrays.reduce_op import ReduceOp
from workbench.distribute.values.distributed_values import PerReplica
from workbench.distribute.variables import central_programs, on_replicas, programs
from workbench.distribute.variables.aggregation import VariableAggregation
from workbench.distribute.variables.central_memory import Place
from workbench.distribute.variables.checked_values import checked_update
from workbench.distribute.variables.pieces import Piece
from workbench.distribute.variables.placement import Placement, UpdateProgram, added, again_if_lost, alone
from workbench.distribute.variables.programs import Update

if TYPE_CHECKING:
    from workbench.distribute.described_strategy import DescribedStrategy
    from workbench.distribute.variables.aggregation import VariableSynchronization
    from workbench.distribute.variables.described_variable import DescribedVariable
    from workbench.runtime.replica.env import ReplicaEnv

_NONE = VariableAggregation.NONE


class CentralStorage(Placement):
    """One copy, so reading does not aggregate, and ON_READ is the same as ON_WRITE."""

    by_replica = False

    @property
    def holder(self) -> int:
        """The replica that keeps the copy; its rank may change, or another one takes over, after a loss."""
        holder = self.strategy.holder
        assert holder is not None
        return holder

    def place(self, variable: DescribedVariable, array: Array, forgotten: Sequence[str]) -> None:
        """See `Placement.place`."""
        if array.dtype.hasobject:
            raise TypeError(
                f"variable {variable.description.name!r} is of dtype object (text, for example), which processes "
                f"cannot share in central storage; use numbers, or wb.MirroredStrategy"
            )
        key, library = variable.description.key, self.strategy.library
        place = self._at_holder(central_programs.hold, (key, array, forgotten, library))
        kind = (variable.shape, variable.dtype)
        self._at_others(central_programs.follow, (key, place, kind, forgotten, library))

    def common_value(self, variable: DescribedVariable) -> Array:
        """See `Placement.common_value`."""
        key = variable.description.key
        array: Array = again_if_lost(lambda: self._at_holder(programs.read_variable, (key,)))
        return array

    def components(self, variable: DescribedVariable, ranks: Sequence[int] | None = None) -> list[Array]:
        """The only copy, for each replica."""
        return [self.read(variable)] * (self.strategy.num_replicas_in_sync if ranks is None else len(ranks))

    def pieces(self, variable: DescribedVariable) -> tuple[Piece, ...]:
        """The whole value, at the holder."""
        return (Piece(variable.description.key, (self.holder,), (0,) * variable.ndim, variable.shape),)

    def update_from_parts(self, variable: DescribedVariable, how: Update, value: PerReplica) -> None:
        """See `Placement.update_from_parts`."""
        combined = _combined(variable, how, value.values)
        if variable in self.strategy.kept:
            self._put(variable, how, checked_update(variable, how, combined), value.handle)
        else:  # it was lost with all replicas
            self.update(variable, how, combined)

    def put(self, variable: DescribedVariable, how: Update, array: Array | IndexedSlices) -> None:
        """See `Placement.put`."""
        self._put(variable, how, array, added(how, array))

    def _put(
        self, variable: DescribedVariable, how: Update, array: Array | IndexedSlices, given: Any
    ) -> None:
        """As `put`, with a value that was computed from what the user gave."""
        key = variable.description.key
        program = (users_line(), central_programs.update, key, how, array)
        with self.strategy.taking(given) as check:
            place = self._at_holder(programs.update_at_line, program, check)
        self._announce({key: place})

    def run_update(
        self,
        program: UpdateProgram,
        fn: Callable[..., Any],
        own: tuple[Any, Any],
        group: bool,
        ranks: Sequence[int] | None = None,
    ) -> Any:
        """Runs the function on the holder; the others get the places of changed values."""
        runtime, holder = self.strategy.group, self.holder
        prepared = runtime.prepare(program, user_function=fn)
        with self.strategy.taking(own) as check:
            made, places = runtime.run(prepared, *own, ranks=[holder], check=check)
        self._announce({key: place.value(holder) for key, place in places.items()})
        return alone(tree.map(lambda leaf: leaf.value(holder), made), group)

    def reseed(
        self, variables: Sequence[DescribedVariable], lost: Sequence[int], survivors: Sequence[int]
    ) -> None:
        """Copies values that a survivor can still read to the holder; the memory outlives the process that held it."""
        kinds = {variable.description.key: (variable.shape, variable.dtype) for variable in variables}
        arguments = (kinds, survivors[0], self.holder, self.strategy.library)
        self.strategy.run_collective(central_programs.reseed, arguments)

    def update_together(
        self, env: ReplicaEnv, variable: DescribedVariable, how: Update, value: Any, site: str
    ) -> None:
        """Updates the only copy with the combined values."""
        if env.size > 1 and variable.aggregation is _NONE:
            checked_update(variable, how, value)
            raise ValueError(
                f"{how} on variable {variable.name!r} in a replica function: there is one copy for {env.size} "
                f"replicas, and aggregation NONE does not say how their values become one; create it with aggregation "
                f"SUM, MEAN or ONLY_FIRST_REPLICA"
            )
        array = self._aggregated(env, variable, how, value, site)
        central_programs.update_together(env, variable.description.key, how, array, self.holder)

    def update_here(self, env: ReplicaEnv, variable: DescribedVariable, how: Update, value: Any) -> None:
        """See `Placement.update_here`."""
        central_programs.update(env, variable.description.key, how, checked_update(variable, how, value))

    def call_update(self, env: ReplicaEnv, call: Callable[[], Any]) -> Any:
        """Returns the result and the places of changed values."""
        before = central_programs.values(env)
        return call(), central_programs.changed(env, before)

    def rank_here(self, env: ReplicaEnv) -> Any:
        """The rank of the only component."""
        return 0

    def reduced(self, env: ReplicaEnv, array: Array, op: str, site: str) -> Array:
        """See `Placement.reduced`."""
        held: Array = env.communicator.reduce([array], op, self.holder, site=site)[0]
        return held

    def _announce(self, places: Mapping[str, Place]) -> None:
        """Sends the places of new values to the replicas other than the holder."""
        if places:
            self._at_others(central_programs.follow_updates, (dict(places),))

    def _at_holder(
        self, program: Callable[..., Any], args: tuple[Any, ...], check: Callable[[], None] | None = None
    ) -> Any:
        holder = self.holder
        return self.strategy.run_internal(program, args, ranks=[holder], check=check).value(holder)

    def _at_others(self, program: Callable[..., Any], args: tuple[Any, ...]) -> None:
        ranks = [rank for rank in range(self.strategy.num_replicas_in_sync) if rank != self.holder]
        if ranks:
            self.strategy.run_internal(program, args, ranks=ranks)


def placement_of(strategy: DescribedStrategy, synchronization: VariableSynchronization) -> Placement:
    """The placement of variables that one replica holds; with only one replica, they are on it."""
    if strategy.holder is None:
        return on_replicas.placement_of(strategy, synchronization)
    return CentralStorage(strategy)


def _combined(variable: DescribedVariable, how: Update, components: tuple[Any, ...]) -> Any:
    """The notebook's values for all replicas, combined by the variable's aggregation."""
    if variable.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
        return components[0]
    if variable.aggregation is _NONE:
        raise ValueError(
            f"{how} on variable {variable.name!r} with a PerReplica: aggregation NONE does not say how its components "
            f"become one value; reduce it first, strategy.reduce('SUM' or 'MEAN', value, axis=None)"
        )
    if is_python_number(components[0]):
        components = tuple(as_array(part) for part in components)
    return reduce_components(ReduceOp[variable.aggregation.name], components, None)
