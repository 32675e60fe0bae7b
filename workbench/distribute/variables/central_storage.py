"""Variables of which one replica, the holder, keeps a single copy for all; what replicas run is in `central_programs`.

An update is computed by the holder, which writes the new value next to the old one; the others learn its place. In a
replica function they do so by collectives, elsewhere the notebook tells them. The old value stays for undoing.
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
from workbench.distribute.variables.placement import Placement, UpdateProgram, again_if_lost, alone
from workbench.distribute.variables.programs import Update

if TYPE_CHECKING:
    from workbench.distribute.described_strategy import DescribedStrategy
    from workbench.distribute.variables.aggregation import VariableSynchronization
    from workbench.distribute.variables.described_variable import DescribedVariable
    from workbench.runtime.replica.env import ReplicaEnv

_NONE = VariableAggregation.NONE


class CentralStorage(Placement):
    """One copy, with nothing to aggregate when it is read: ON_READ is as ON_WRITE."""

    by_replica = False

    @property
    def holder(self) -> int:
        """The replica that keeps the copy; another number, or another replica, after some were lost."""
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
        """The one copy, for each of them."""
        return [self.read(variable)] * (self.strategy.num_replicas_in_sync if ranks is None else len(ranks))

    def pieces(self, variable: DescribedVariable) -> tuple[Piece, ...]:
        """All of it, at the holder."""
        return (Piece(variable.description.key, (self.holder,), (0,) * variable.ndim, variable.shape),)

    def update_from_parts(self, variable: DescribedVariable, how: Update, value: PerReplica) -> None:
        """See `Placement.update_from_parts`."""
        self.update(variable, how, _combined(variable, how, value.values))

    def put(self, variable: DescribedVariable, how: Update, array: Array | IndexedSlices) -> None:
        """See `Placement.put`."""
        key = variable.description.key
        program = (users_line(), central_programs.update, key, how, array)
        self._announce({key: self._at_holder(programs.update_at_line, program)})

    def run_update(
        self,
        program: UpdateProgram,
        fn: Callable[..., Any],
        own: tuple[Any, Any],
        group: bool,
        ranks: Sequence[int] | None = None,
    ) -> Any:
        """By the holder alone; the others learn where what it has changed is."""
        runtime, holder = self.strategy.group, self.holder
        made, places = runtime.run(runtime.prepare(program, user_function=fn), *own, ranks=[holder])
        self._announce({key: place.value(holder) for key, place in places.items()})
        return alone(tree.map(lambda leaf: leaf.value(holder), made), group)

    def reseed(
        self, variables: Sequence[DescribedVariable], lost: Sequence[int], survivors: Sequence[int]
    ) -> None:
        """The holder keeps anew what a survivor can still read: the memory outlives the process that held it."""
        kinds = {variable.description.key: (variable.shape, variable.dtype) for variable in variables}
        arguments = (kinds, survivors[0], self.holder, self.strategy.library)
        self.strategy.run_collective(central_programs.reseed, arguments)

    def update_together(
        self, env: ReplicaEnv, variable: DescribedVariable, how: Update, value: Any, site: str
    ) -> None:
        """The one copy with what the values come to."""
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
        """The result, and where the values are that have changed."""
        before = central_programs.values(env)
        return call(), central_programs.changed(env, before)

    def rank_here(self, env: ReplicaEnv) -> Any:
        """That of the only one."""
        return 0

    def reduced(self, env: ReplicaEnv, array: Array, op: str, site: str) -> Array:
        """See `Placement.reduced`."""
        held: Array = env.communicator.reduce([array], op, self.holder, site=site)[0]
        return held

    def _announce(self, places: Mapping[str, Place]) -> None:
        """Tells the replicas that are not the holder where new values are."""
        if places:
            self._at_others(central_programs.follow_updates, (dict(places),))

    def _at_holder(self, program: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        holder = self.holder
        return self.strategy.run_internal(program, args, ranks=[holder]).value(holder)

    def _at_others(self, program: Callable[..., Any], args: tuple[Any, ...]) -> None:
        ranks = [rank for rank in range(self.strategy.num_replicas_in_sync) if rank != self.holder]
        if ranks:
            self.strategy.run_internal(program, args, ranks=ranks)


def placement_of(strategy: DescribedStrategy, synchronization: VariableSynchronization) -> Placement:
    """The placement of variables that one replica holds; where that is the only one, they are with it."""
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
