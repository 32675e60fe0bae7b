"""StrategyExtended: methods of a strategy for libraries; most programs do not need them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Any

from workbench import tree
from workbench.arguments import flag, function, several
from workbench.communicators.core.options import checked_options
from workbench.device_names import Device, resolve
from workbench.device_spec import DeviceSpec
from workbench.distribute import contexts
from workbench.distribute.arrays.reduce_op import ReduceOpLike, as_reduce_op
from workbench.distribute.function import checked_arguments
from workbench.distribute.replica.cross_device_ops import PAIRS, CrossDeviceOps, checked_pair, reduce_plain
from workbench.distribute.replica.reduce_leaf import components_of
from workbench.distribute.values.distributed_values import DistributedValues, PerReplica, select
from workbench.distribute.values.local_values import flatten_distributed
from workbench.distribute.variables import traced_merge
from workbench.distribute.variables.aggregation import VariableSynchronization
from workbench.distribute.variables.component import VariableComponent
from workbench.distribute.variables.placement import Placement, alone
from workbench.distribute.variables.variable import Variable
from workbench.distribute.variables.variable_like import VariableLike
from workbench.errors import TracingError, WrongType

if TYPE_CHECKING:
    from workbench.communicators.core.options import Options
    from workbench.data.dataset import Dataset
    from workbench.distribute.described_strategy import DescribedStrategy
    from workbench.runtime.replica.env import ReplicaEnv

_DEVICES = "['CPU:0', 'CPU:1']"


class StrategyExtended:
    """Additional methods of `strategy.extended` (as tf.distribute.StrategyExtended)."""

    def __init__(self, strategy: DescribedStrategy, run: Callable[..., Any]) -> None:
        """Takes the strategy, and its `run`."""
        self._strategy = strategy
        self._run = run

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._strategy!r}>"

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Full names of the devices that compute, one per replica."""
        return tuple(device.string for device in self._strategy.devices)

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Full names of the devices that hold variables: the same, or central storage's device."""
        return tuple(device.string for device in self._strategy.parameter_devices)

    def non_slot_devices(self, var_list: Sequence[Variable]) -> tuple[str, ...]:
        """The devices for variables that do not belong to a single one of `var_list`: those of all variables."""
        return self.parameter_devices

    def reduce_to(
        self, reduce_op: ReduceOpLike, value: Any, destinations: Any, options: Options | None = None
    ) -> Any:
        """Combines `value` and puts the result on the devices of `destinations`; see `CrossDeviceOps.reduce`.

        Args:
          reduce_op: "SUM" or "MEAN".
          value: A distributed value, or a nested structure of them; an ordinary array as in `Strategy.reduce`.
          destinations: A device, a distributed value, a variable, which keeps its own value, or `value` itself.
          options: Packing, deadline and implementation.
        """
        return self.batch_reduce_to(reduce_op, [(value, destinations)], options)[0]

    def batch_reduce_to(
        self,
        reduce_op: ReduceOpLike,
        value_destination_pairs: Sequence[tuple[Any, Any]],
        options: Options | None = None,
    ) -> list[Any]:
        """Combines several values at once (as tf.distribute.StrategyExtended.batch_reduce_to).

        Args:
          reduce_op: See `reduce_to`.
          value_destination_pairs: Values with their destinations, see `reduce_to`.
          options: Packing and deadline of the collectives.

        Returns:
          The results of `reduce_to`, in the order of the pairs.
        """
        contexts.require_cross_replica(self._strategy, "strategy.extended.batch_reduce_to")
        op, strategy, options = as_reduce_op(reduce_op), self._strategy, checked_options(options)
        replicas = strategy.num_replicas_in_sync
        structures: list[tree.Spec] = []
        results: list[Any] = []
        distributed = []
        for value, destinations in map(
            checked_pair, several(value_destination_pairs, "batch_reduce_to", PAIRS)
        ):
            leaves, structure = _flatten(value)
            structures.append(structure)
            for leaf in leaves:
                place = leaf if destinations is value else destinations
                if isinstance(leaf, DistributedValues):
                    distributed.append((_on_each_replica(leaf, replicas), place))
                    results.append(None)
                else:
                    results.append((reduce_plain(op, leaf, place, replicas),))
        ops = strategy.cross_device_ops or CrossDeviceOps()
        with contexts.cross_replica(strategy, "scope"):
            reduced = iter(ops.batch_reduce(op, distributed, options or strategy.communication_options))
        found = iter([next(reduced) if result is None else result[0] for result in results])
        return [tree.unflatten(each, list(islice(found, each.num_leaves))) for each in structures]

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """Copies an array to the devices of `destinations`; see `CrossDeviceOps.broadcast`."""
        contexts.require_cross_replica(self._strategy, "strategy.extended.broadcast_to")
        return (self._strategy.cross_device_ops or CrossDeviceOps()).broadcast(tensor, destinations)

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Calls `fn` on every replica, as `Strategy.run` does.

        Args:
          fn: A replica function.
          args: Its arguments; each replica gets its component of distributed values.
          kwargs: Its keyword arguments, likewise.
        """
        return self._run(fn, args, kwargs)

    def update(
        self,
        var: Variable,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        group: bool = True,
    ) -> Any:
        """Calls `fn(component, *args, **kwargs)` for every component of `var`, on the component's device.

        Args:
          var: A variable of this strategy.
          fn: Runs in update context: `component.assign*` changes that component only.
          args: Arguments of `fn`. Each call gets its component of distributed values; with central storage there is one
            call, by the replica that keeps the variables, with that replica's component.
          kwargs: Keyword arguments, likewise.
          group: Whether each leaf of the result is a `Mirrored`; otherwise it is a tuple with one value per component.
            With one component, the leaves are plain values.

        Returns:
          The structure that `fn` returns, with leaves according to `group`.

        Raises:
          RuntimeError: in a replica function.
        """
        strategy = self._strategy
        contexts.require_cross_replica(strategy, "strategy.extended.update")
        if not isinstance(var, Variable):
            raise TypeError(
                f"update needs a variable, got {var!r}; create it in strategy.scope() with wb.Variable"
            )
        function(fn, "strategy.extended.update: fn")
        args = checked_arguments(args, kwargs, "strategy.extended.update")
        group = flag(group, "strategy.extended.update: group")
        if var.strategy is None or strategy.is_default:
            # The default strategy has no update context: its only replica updates the variable in place.
            with nullcontext() if strategy.is_default else contexts.cross_replica(strategy, "update"):
                result = fn(var, *select(args, 0), **select(kwargs or {}, 0))
            return alone(result, group)
        if var.strategy is not strategy:
            raise ValueError(
                f"{var!r} belongs to {var.strategy!r}, not to {strategy!r}; use its own strategy"
            )
        return self._update_on_replicas(_Update(strategy, fn, var), args, kwargs, group)

    def update_non_slot(
        self,
        colocate_with: Any,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        group: bool = True,
    ) -> Any:
        """Calls `fn(*args, **kwargs)` once per device (as tf.distribute.StrategyExtended.update_non_slot).

        Args:
          colocate_with: Some of the devices that `non_slot_devices` returned, or a variable, for its devices. None, an
            empty list, and strategies that keep one component take all devices with variables.
          fn: Runs in update context.
          args: Arguments of `fn`. Each call gets its device's component of distributed values.
          kwargs: Keyword arguments, likewise.
          group: See `update`; components are in the order of the strategy's devices.

        Raises:
          InvalidArgumentError: if a device does not belong to the strategy.
          RuntimeError: in a replica function.
        """
        strategy = self._strategy
        contexts.require_cross_replica(strategy, "strategy.extended.update_non_slot")
        function(fn, "strategy.extended.update_non_slot: fn")
        args = checked_arguments(args, kwargs, "strategy.extended.update_non_slot")
        group = flag(group, "strategy.extended.update_non_slot: group")
        if strategy.is_default:
            result = fn(*select(args, 0), **select(kwargs or {}, 0))
            return alone(result, group)
        program = _Update(strategy, fn, None)
        ranks = self._ranks_at(colocate_with) if program.placement.by_replica else None
        return self._update_on_replicas(program, args, kwargs, group, ranks)

    def _update_on_replicas(
        self,
        program: _Update,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        group: bool,
        ranks: Sequence[int] | None = None,
    ) -> Any:
        env = contexts.merging_env()
        if env is not None:
            if ranks is not None:
                raise TracingError(
                    "update_non_slot in a traced merge function was given some of the strategy's devices, and the "
                    "program is the same on all of them; give all, strategy.extended.non_slot_devices([])"
                )
            return traced_merge.update(program, env, args, kwargs or {}, group)
        own = program.placement.for_update(program.variable, args, kwargs or {})
        return program.placement.run_update(program, program.fn, own, group, ranks)

    def _ranks_at(self, colocate_with: Any) -> list[int] | None:
        """The replicas on some devices, in order; None for all."""
        if isinstance(colocate_with, VariableComponent):
            colocate_with = colocate_with.device
        if colocate_with is None or isinstance(colocate_with, DistributedValues):
            return None
        one = isinstance(colocate_with, str | DeviceSpec | Device)
        names, devices = (
            [colocate_with]
            if one
            else list(several(colocate_with, "update_non_slot: colocate_with", _DEVICES)),
            self._strategy.devices,
        )
        if not names:
            return None
        ranks = sorted(devices.index(device) for device in resolve(names, devices))
        return None if len(ranks) == len(devices) else ranks

    @contextmanager
    def colocate_vars_with(self, colocate_with_variable: Variable) -> Iterator[None]:
        """Places variables created inside on the devices of `colocate_with_variable`.

        Args:
          colocate_with_variable: A variable of this strategy, or its component if variables have only one.

        Raises:
          ValueError: if it is neither.
        """
        single = len(self.parameter_devices) == 1
        variable = self.value_container(colocate_with_variable) if single else colocate_with_variable
        owner = getattr(variable, "strategy", None)
        if owner is not self._strategy and not self._strategy.is_default:
            raise ValueError(
                f"colocate_vars_with needs a variable of {self._strategy!r}, got {colocate_with_variable!r}; create it "
                f"in the strategy's scope"
            )
        yield  # each variable of a strategy is on all of its devices

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether `v` is a variable of this strategy (as tf.distribute.StrategyExtended.variable_created_in_scope)."""
        own = None if self._strategy.is_default else self._strategy
        return isinstance(v, VariableLike) and getattr(v, "strategy", None) is own

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Dataset:
        """A dataset of the rows of arrays; see `Strategy.make_numpy_dataset`.

        Args:
          numpy_input: A structure of arrays `(n, ...)`.
          session: Without effect, as there are no sessions.
        """
        from workbench.data.dataset import Dataset

        return Dataset.from_tensor_slices(numpy_input)

    @property
    def experimental_require_static_shapes(self) -> bool:
        """Whether datasets need batches of one size; False for all strategies."""
        return False

    @property
    def experimental_between_graph(self) -> bool:
        """Whether each worker runs its own program; False, because the notebook's is the only one."""
        return False

    @property
    def experimental_should_init(self) -> bool:
        """Whether this program initialises variables; True, because it is the only one."""
        return True

    @property
    def should_checkpoint(self) -> bool:
        """Whether this program saves checkpoints; True, because it is the only one."""
        return True

    @property
    def should_save_summary(self) -> bool:
        """Whether this program saves summaries; True, because it is the only one."""
        return True

    def value_container(self, value: Any) -> Any:
        """The variable of a component; other values unchanged."""
        return value.variable if isinstance(value, VariableComponent) else value

    def read_var(self, v: Variable) -> Any:
        """The value of a variable, as `v.read_value()`."""
        if not isinstance(v, VariableLike | VariableComponent):
            raise WrongType(f"read_var needs a variable, got {type(v).__name__} {v!r:.60}")
        return v.read_value()


class _Update:
    """Runs a user's update function on each replica, in update context, with the replica's component."""

    __slots__ = ("fn", "strategy", "variable")
    travels_as_parts = True

    def __init__(
        self, strategy: DescribedStrategy, fn: Callable[..., Any], variable: Variable | None
    ) -> None:
        self.strategy = strategy
        self.fn = fn
        self.variable = variable

    def __call__(self, env: ReplicaEnv, *args: Any, **kwargs: Any) -> Any:
        placement = self.placement
        own = () if self.variable is None else (VariableComponent(self.variable, placement.rank_here(env)),)

        def call() -> Any:
            with contexts.cross_replica(self.strategy, "update"):
                return self.fn(*own, *args, **kwargs)

        return placement.call_update(env, call)

    @property
    def placement(self) -> Placement:
        """The placement where it runs: the variable's, or that of all variables."""
        kind = VariableSynchronization.ON_WRITE if self.variable is None else self.variable.synchronization
        placement: Placement = self.strategy.description.placement_of(self.strategy, kind)
        return placement

    def __reduce__(self) -> tuple[Any, ...]:
        return _Update, (self.strategy, self.fn, self.variable)


def _flatten(value: Any) -> tuple[list[Any], tree.Spec]:
    """Leaves and structure of distributed values. Other values count as one array, including nested lists."""
    leaves, structure = flatten_distributed(value)
    if any(isinstance(leaf, DistributedValues) for leaf in leaves):
        return leaves, structure
    return tree.flatten(value, is_leaf=lambda _: True)


def _on_each_replica(value: DistributedValues, replicas: int) -> DistributedValues:
    """Repeats a variable's only component, as with central storage, for each replica."""
    if isinstance(value, Variable) and len(value.values) != replicas:
        return PerReplica(components_of(value, replicas))
    return value
