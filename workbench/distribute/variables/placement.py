"""Placement: where the values of variables are, and how they are created, read, updated and restored.

All variables behave alike for the user. Placements hide the difference: a component on every replica
(`on_replicas.py`), or one copy that a replica holds for all (`central_storage.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from workbench import tree
from workbench.backends.numpy import STRING
from workbench.distribute import contexts
from workbench.distribute.arrays.as_array import Array, is_python_number
from workbench.distribute.arrays.gather import all_gather_leaf
from workbench.distribute.arrays.host_reduce import require_reducible
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.placement_log import places
from workbench.distribute.values.distributed_values import Mirrored, PerReplica, handed_over
from workbench.distribute.variables.aggregation import VariableAggregation, VariableSynchronization
from workbench.distribute.variables.checked_values import checked_update, require_scatter
from workbench.distribute.variables.pieces import Piece
from workbench.distribute.variables.programs import Update
from workbench.distribute.variables.scatter import SCATTERS, aggregated_slices
from workbench.distribute.variables.variable_like import VariableLike
from workbench.errors import ReplicaLost

if TYPE_CHECKING:
    from workbench.distribute.described_strategy import DescribedStrategy
    from workbench.distribute.variables.described_variable import DescribedVariable
    from workbench.runtime.replica.env import ReplicaEnv

T = TypeVar("T")
UpdateProgram = Callable[..., Any]
_NONE, _SUM = VariableAggregation.NONE, VariableAggregation.SUM
_FIRST = VariableAggregation.ONLY_FIRST_REPLICA


class Placement(ABC):
    """The placement of a strategy's variables.

    Its methods are called in the notebook, or on a replica, whose `env` they then take. A traced merge function counts
    as the notebook although it runs on the replicas: see `contexts.merging_env()`.

    Attributes:
      strategy: The strategy of the variables.
      by_replica: Whether each replica has its own component, which it can read and update alone.
    """

    by_replica: ClassVar[bool]

    def __init__(self, strategy: DescribedStrategy) -> None:
        self.strategy = strategy

    # -- in the notebook
    # ------------------------------------------------------------------------------------------------

    def create(self, variable: DescribedVariable, array: Array) -> None:
        """Sets the value of a new or lost variable."""
        self.place(variable, array, self.strategy.kept.take_forgotten())
        self.strategy.kept.add(variable)

    @abstractmethod
    def place(self, variable: DescribedVariable, array: Array, forgotten: Sequence[str]) -> None:
        """Places a new value.

        Args:
          variable: The variable.
          array: Its value.
          forgotten: Keys of variables that are no longer in use.
        """

    def read(self, variable: DescribedVariable) -> Array:
        """The common value of a variable.

        Raises:
          ValueError: if its components have none.
        """
        contexts.require_cross_replica(self.strategy, "reading a variable")
        return self.common_value(variable)

    @abstractmethod
    def common_value(self, variable: DescribedVariable) -> Array:
        """See `read`, which has checked that no replica function is running."""

    @abstractmethod
    def components(self, variable: DescribedVariable, ranks: Sequence[int] | None = None) -> list[Array]:
        """The value that each replica, or each of `ranks`, reads.

        Raises:
          ReplicaLost: if a replica is lost meanwhile, and with it a value that only it had.
        """

    def pieces(self, variable: DescribedVariable) -> tuple[Piece, ...]:
        """The pieces of a variable's value and their replicas; empty if the value is computed from all components."""
        return ()

    def update(self, variable: DescribedVariable, how: Update, value: Any) -> None:
        """Updates a variable with one value, or with one per replica.

        Args:
          variable: The variable.
          how: The operation, such as "assign_add".
          value: An array, a `Mirrored`, or a `PerReplica` with a value for each component.

        Raises:
          ValueError: if the shape differs, or the result has no meaning.
        """
        contexts.require_cross_replica(self.strategy, how)
        if how in SCATTERS:
            require_scatter(variable, how)
        if isinstance(value, PerReplica):
            self.update_from_parts(variable, how, value)
            return
        if isinstance(value, Mirrored):
            value = value.values[0]
        array = checked_update(variable, how, self.part_of(variable, how, value))
        lost = variable not in self.strategy.kept and contexts.merging_env() is None
        if lost and how == "assign" and not isinstance(array, IndexedSlices):
            self.create(variable, array)
        else:
            self.put(variable, how, array)

    @abstractmethod
    def update_from_parts(self, variable: DescribedVariable, how: Update, value: PerReplica) -> None:
        """Updates a variable with one value per replica, from the notebook.

        Args:
          variable: The variable.
          how: The operation, such as "assign_add".
          value: A component for each replica.
        """

    def part_of(self, variable: DescribedVariable, how: Update, value: Any) -> Any:
        """The value with which to update each component, so that the whole variable is updated with `value`.

        Args:
          variable: The variable.
          how: The operation, such as "assign_add".
          value: The update of the whole variable.
        """
        return value

    @abstractmethod
    def put(self, variable: DescribedVariable, how: Update, array: Array | IndexedSlices) -> None:
        """Updates a variable with a checked value.

        Args:
          variable: The variable.
          how: The operation, such as "assign_add".
          array: The value, of the variable's shape and dtype; rows for scatter updates.
        """

    def for_update(
        self, variable: DescribedVariable | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that `run_update` passes to a user's update function, where it runs, with the component.

        Args:
          variable: The variable, None for functions that update none.
          args: Arguments of the user's function.
          kwargs: Its keyword arguments.
        """
        own: tuple[tuple[Any, ...], dict[str, Any]] = handed_over((args, kwargs), self.strategy.group)
        return own

    @abstractmethod
    def run_update(
        self,
        program: UpdateProgram,
        fn: Callable[..., Any],
        own: tuple[Any, Any],
        group: bool,
        ranks: Sequence[int] | None = None,
    ) -> Any:
        """Runs a user's update function where the values are; see `StrategyExtended.update`.

        Args:
          program: The program for the replicas; it calls `call_update`.
          fn: The user's function, for messages.
          own: Positional and keyword arguments, with handles in place of distributed values.
          group: See `StrategyExtended.update`.
          ranks: The replicas that run it, if each has its own component; None for all.
        """

    @abstractmethod
    def reseed(
        self, variables: Sequence[DescribedVariable], lost: Sequence[int], survivors: Sequence[int]
    ) -> None:
        """Restores the components of replaced replicas.

        Args:
          variables: All variables, with any placement.
          lost: Ranks of the replicas without values.
          survivors: Ranks of the replicas that still have them; at least one.
        """

    # -- names and places
    # --------------------------------------------------------------------------------------------

    def kind(self, variable: DescribedVariable) -> str:
        """The kind of variable, in a word: "MirroredVariable", "SyncOnReadVariable", "CentralVariable"."""
        if self.strategy.description.parameter_device is not None:
            return "CentralVariable"
        on_read = variable.synchronization is VariableSynchronization.ON_READ
        return "SyncOnReadVariable" if on_read else "MirroredVariable"

    def whereabouts(self, variable: DescribedVariable) -> str:
        """The places of components in words, such as "on 2 replicas"."""
        central, count = self.strategy.description.parameter_device, self.strategy.num_replicas_in_sync
        return f"on {count} replicas" if central is None else f"on {central.short} for {count} replicas"

    def devices_in_words(self, variable: DescribedVariable) -> str:
        """The devices of components in words, such as "on CPU:0, CPU:1"."""
        return f"on {places(self.strategy.parameter_devices)}"

    def component_device(self, variable: DescribedVariable, rank: int) -> str:
        """Full name of a component's device."""
        return self.strategy.parameter_devices[rank].string

    def gather(self, variable: DescribedVariable, indices: Array) -> Array:
        """Reads rows of the common value, in the notebook."""
        rows: Array = self.read(variable)[indices]
        return rows

    # -- on a replica
    # -------------------------------------------------------------------------------------------------

    @abstractmethod
    def update_together(
        self, env: ReplicaEnv, variable: DescribedVariable, how: Update, value: Any, site: str
    ) -> None:
        """Updates a variable in a replica function; all replicas call it with their own values.

        Args:
          env: The replica.
          variable: The variable.
          how: The method.
          value: The value of this replica.
          site: Where the user called it.

        Raises:
          ValueError: if the shape differs, or the values of several replicas have no meaning for the variable.
        """

    @abstractmethod
    def update_here(self, env: ReplicaEnv, variable: DescribedVariable, how: Update, value: Any) -> None:
        """Updates, in an update function, only the component where the function runs.

        Args:
          env: The replica that runs the update function.
          variable: The variable.
          how: The operation, such as "assign_add".
          value: The value for the update.
        """

    @abstractmethod
    def call_update(self, env: ReplicaEnv, call: Callable[[], Any]) -> Any:
        """Calls a user's update function; returns the result for `run_update`."""

    @abstractmethod
    def rank_here(self, env: ReplicaEnv) -> Any:
        """The rank of the component that update functions on this replica get."""

    def _aggregated(
        self, env: ReplicaEnv, variable: DescribedVariable, how: Update, value: Any, site: str
    ) -> Array | IndexedSlices:
        """The replicas' values combined by the variable's aggregation, on all replicas or where needed."""
        array = checked_update(variable, how, value)
        aggregation = variable.aggregation
        if env.size == 1 or aggregation is _NONE:
            return array
        if isinstance(array, IndexedSlices):
            return aggregated_slices(env, aggregation, array, site)
        if aggregation is _FIRST:
            return _first(env, array, site)
        require_reducible(variable.dtype, f"aggregation {aggregation.name} of variable {variable.name!r}")
        if aggregation is _SUM and is_python_number(value):
            if env.traced:  # a Python number is the same on all replicas
                raise ValueError(_sum_of_number(variable, how, value, env.size))
            everyones = env.communicator.all_gather(array[np.newaxis], 0, site=site)
            if (everyones == everyones[0]).all():
                raise ValueError(_sum_of_number(variable, how, value, env.size))
            return np.asarray(everyones.sum(axis=0, dtype=array.dtype))
        return self.reduced(env, array, "sum" if aggregation is _SUM else "mean", site)

    @abstractmethod
    def reduced(self, env: ReplicaEnv, array: Array, op: str, site: str) -> Array:
        """The sum or mean of all replicas' arrays, where needed.

        Args:
          env: The replica.
          array: The array of this replica.
          op: "sum" or "mean".
          site: The user's line, for errors and telemetry.
        """


def _first(env: ReplicaEnv, array: Array, site: str) -> Array:
    """The array of replica 0."""
    if array.dtype == STRING:
        everyones: Array = all_gather_leaf(env.communicator, array[np.newaxis], 0, site, None)
        return everyones[:1].reshape(array.shape)
    first: Array = env.communicator.broadcast(array, 0, site=site)
    return first


def added(how: Update, array: Any) -> Any:
    """What an update adds to a variable, which must not count twice; nothing where it replaces the value."""
    return () if how == "assign" else array


def again_if_lost(read: Callable[[], T]) -> T:
    """Calls `read`, and repeats it once if a replica is lost, because the replica gets a copy from the others.

    A loss is an error for steps that change something; reading does not.
    """
    try:
        return read()
    except ReplicaLost:
        return read()


def alone(result: Any, group: bool) -> Any:
    """The leaves of an update function that ran once, in the form of `StrategyExtended.update`."""
    if group:
        return result
    leaves, spec = tree.flatten(result, lambda value: isinstance(value, VariableLike))
    return tree.unflatten(spec, [(leaf,) for leaf in leaves])


def _sum_of_number(variable: DescribedVariable, how: Update, value: Any, replicas: int) -> str:
    return (
        f"{how}({value!r}) on variable {variable.name!r} with aggregation SUM would add up the same number "
        f"{replicas} times; give an array, such as np.{variable.dtype.name}({value!r}), if you mean that, or use "
        f"aggregation MEAN or ONLY_FIRST_REPLICA"
    )
