"""The contrib MirroredStrategy: its methods, implemented with today's strategy."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from workbench import tree
from workbench.compat.modern_spelling import tell
from workbench.compat.tower_values import (
    PLAIN,
    collapsed,
    copied,
    mapped_here,
    reduce_op,
    require_mirrored,
)
from workbench.compat.tower_variables import local_to_towers
from workbench.compat.whole_steps import whole_steps
from workbench.data import Dataset
from workbench.device_spec import DeviceSpec
from workbench.distribute import contexts
from workbench.distribute.arrays.reduce_op import ReduceOp
from workbench.distribute.input.distributed_dataset import DistributedIterator
from workbench.distribute.replica.cross_device_ops import CrossDeviceOps
from workbench.distribute.strategies import mirrored
from workbench.distribute.values.distributed_values import DistributedValues, PerReplica
from workbench.distribute.variables.variable import Variable

_distributions: weakref.WeakValueDictionary[str, MirroredStrategy] = weakref.WeakValueDictionary()


class MirroredStrategy:
    """Towers on several devices, with mirrored variables (as tf.contrib.distribute.MirroredStrategy).

    Attributes:
      strategy: The `wb.MirroredStrategy` that does the work; its methods are today's.

    Raises:
      ValueError: if `devices` and `num_gpus` are both given.

    >>> distribution = MirroredStrategy(["/cpu:0", "/cpu:1"])  # doctest: +SKIP
    >>> with distribution.scope():  # doctest: +SKIP
    ...     losses = distribution.call_for_each_tower(step, iterator.get_next())
    ...     loss = distribution.reduce("mean", losses, "/cpu:0")
    """

    def __init__(
        self,
        devices: Sequence[str] | None = None,
        num_gpus: int | None = None,
        cross_tower_ops: CrossDeviceOps | None = None,
        prefetch_on_device: bool | None = None,
    ) -> None:
        """Creates the strategy.

        Args:
          devices: Names such as ["/cpu:0", "/cpu:1"], one per tower; None for all devices.
          num_gpus: The number of GPUs to use, instead of `devices`.
          cross_tower_ops: Today's `cross_device_ops`.
          prefetch_on_device: Accepted, without effect.
        """
        if devices is not None and num_gpus is not None:
            raise ValueError(
                f"devices={devices!r} and num_gpus={num_gpus} both say where the towers are; give one of them"
            )
        tell("wb.compat.towers.MirroredStrategy", "wb.MirroredStrategy(devices)")
        chosen = [f"/gpu:{index}" for index in range(num_gpus)] if num_gpus is not None else devices
        self._take(mirrored.MirroredStrategy(chosen, cross_device_ops=cross_tower_ops))
        if chosen is not None:
            self._devices = [str(device) for device in chosen]

    def _take(self, strategy: Any) -> None:
        self.strategy = strategy
        self._devices = [f"/{device.kind.lower()}:{device.index}" for device in strategy.devices]
        _distributions[strategy.description.id] = self

    # -- what it is ---------------------------------------------------------------------------------------------

    @property
    def num_towers(self) -> int:
        """Number of towers."""
        tell("num_towers", "strategy.num_replicas_in_sync")
        return self._size

    @property
    def is_single_tower(self) -> bool:
        """Whether `call_for_each_tower(fn)` calls `fn` only once."""
        tell("is_single_tower", "strategy.num_replicas_in_sync == 1")
        return self._size == 1

    @property
    def worker_devices(self) -> list[str]:
        """The devices of the towers, as given."""
        tell("worker_devices", "strategy.extended.worker_devices")
        return list(self._devices)

    @property
    def parameter_devices(self) -> list[str]:
        """The devices of the variables: the same."""
        tell("parameter_devices", "strategy.extended.parameter_devices")
        return list(self._devices)

    @property
    def worker_device_index(self) -> Any:
        """An argument for `call_for_each_tower` that becomes each tower's number; 0 if there is one tower.

        Raises:
          RuntimeError: outside the strategy's scope.
        """
        tell("worker_device_index", "get_replica_context().replica_id_in_sync_group, in the function")
        self._require_scope("worker_device_index")
        return PerReplica(range(self._size)) if self._size > 1 else 0

    @property
    def _size(self) -> int:
        return int(self.strategy.num_replicas_in_sync)

    # -- running ------------------------------------------------------------------------------------------------

    def scope(self) -> contextlib.AbstractContextManager[MirroredStrategy, None]:
        """Makes the strategy current, in cross-tower context."""
        return _Scope(self)

    def call_for_each_tower(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls `fn(*args, **kwargs)` once per tower.

        Args:
          fn: The function, which runs in tower context; `get_tower_context()` has its tower.
          *args: Arguments of `fn`; each tower gets its own component of values that have one per tower.
          **kwargs: Likewise. `run_concurrently` is accepted, without effect.

        Returns:
          The structure that `fn` returns. A leaf has a component per tower; a plain Python value that all towers
          returned is that value.

        Raises:
          RuntimeError: outside the strategy's scope.
        """
        tell("call_for_each_tower(fn, *args)", "strategy.run(fn, args=(...))")
        self._require_scope("call_for_each_tower")
        kwargs.pop("run_concurrently", None)
        return tree.map(collapsed, self.strategy.run(fn, args, kwargs))

    def map(self, map_over: Iterable[Any], fn: Callable[..., Any], *args: Any, **kwargs: Any) -> PerReplica:
        """Calls `fn(item, *args, **kwargs)` for each item, on the towers in turn.

        Args:
          map_over: The items.
          fn: Called on a tower.
          *args: Arguments that are the same for all calls.
          **kwargs: Likewise.

        Returns:
          A component per tower: a `MapOutput`, whose `get()` lists its results in the order of the items.
        """
        tell("map(map_over, fn, *args)", "a loop in a function given to strategy.run")
        items = list(map_over)
        shares = PerReplica([tuple(items[tower :: self._size]) for tower in range(self._size)])
        call = functools.partial(mapped_here, fn)
        with contexts.cross_replica(self.strategy, "scope"):
            outputs: PerReplica = self.strategy.run(call, (shares, args, kwargs))
        return outputs

    def update(self, var: Variable, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls `fn(component, *args, **kwargs)` for each component of a variable, on its device.

        Args:
          var: A variable of this strategy.
          fn: Updates the component.
          *args: Arguments of `fn`; each call gets its component of mirrored values.
          **kwargs: Likewise.

        Raises:
          TypeError: if arguments have components that differ by tower; `reduce` them to `var` first.
        """
        tell("update(var, fn, *args)", "strategy.extended.update(var, fn, args=(...))")
        require_mirrored(f"update of {getattr(var, 'name', var)!r}", "var", (args, kwargs))
        return tree.map(collapsed, self.strategy.extended.update(var, fn, args, kwargs))

    def update_non_slot(self, colocate_with: Any, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls `fn(*args, **kwargs)` once on each device from `non_slot_devices`.

        Args:
          colocate_with: What `non_slot_devices` returned.
          fn: The function.
          *args: Arguments of `fn`; each call gets its component of mirrored values.
          **kwargs: Likewise.

        Raises:
          TypeError: if arguments have components that differ by tower; `reduce` them first.
        """
        tell(
            "update_non_slot(devices, fn, *args)",
            "strategy.extended.update_non_slot(devices, fn, args=(...))",
        )
        require_mirrored("update_non_slot", "[...]", (args, kwargs))
        made = self.strategy.extended.update_non_slot(colocate_with, fn, args, kwargs)
        return tree.map(collapsed, made)

    # -- combining and copying ----------------------------------------------------------------------------------

    def reduce(self, method_string: str, value: Any, destinations: Any = None) -> Any:
        """Combines a value over towers.

        Args:
          method_string: "sum" or "mean".
          value: A value with a component per tower. The mean of a single value for all towers is that value; its sum is
            an error unless it is the number 0.
          destinations: A device, a list of devices, or a variable (which keeps its value), for the result. None for the
            devices of `value`.

        Raises:
          ValueError: for another method, no devices, or the sum of one value for several towers.
        """
        tell("reduce('sum', value, destinations)", "strategy.extended.reduce_to('SUM', value, destinations)")
        return self._reduced(method_string, [(value, destinations)])[0]

    def batch_reduce(
        self, method_string: str, value_destination_pairs: Sequence[tuple[Any, Any]]
    ) -> list[Any]:
        """`reduce` of several (value, destinations) pairs at once."""
        tell("batch_reduce('sum', pairs)", "strategy.extended.batch_reduce_to('SUM', pairs)")
        return self._reduced(method_string, value_destination_pairs)

    def _reduced(self, method: str, pairs: Sequence[tuple[Any, Any]]) -> list[Any]:
        op = reduce_op(method)
        for _, where in pairs:
            if isinstance(where, (list, tuple)) and not where:
                raise ValueError(
                    "destinations is an empty list; name devices, or leave it out for those of the value"
                )
        found = {
            number: self._reduced_plain(op, value, where)
            for number, (value, where) in enumerate(pairs)
            if not isinstance(value, DistributedValues)
        }
        others = [number for number in range(len(pairs)) if number not in found]
        places = [pairs[number][0] if pairs[number][1] is None else pairs[number][1] for number in others]
        single = [where[0] if isinstance(where, (list, tuple)) else where for where in places]
        totals = self.strategy.extended.batch_reduce_to(
            op, [(pairs[number][0], where) for number, where in zip(others, single, strict=True)]
        )
        found |= {
            number: copied(total, where) for number, total, where in zip(others, totals, places, strict=True)
        }
        return [found[number] for number in range(len(pairs))]

    def _reduced_plain(self, op: ReduceOp, value: Any, where: Any) -> Any:
        if op is ReduceOp.SUM and self._size > 1:
            if type(value) in PLAIN and value == 0:
                return value
            raise ValueError(
                f"the sum over {self._size} towers needs a value with a component for each, got {value!r:.80}, which "
                f"is one for all; give what call_for_each_tower returned, or multiply it by {self._size} if each is "
                f"meant to count"
            )
        return self._mirrored(value, where)

    def broadcast(self, tensor: Any, destinations: Any = None) -> Any:
        """Copies an array to devices.

        Args:
          tensor: The array.
          destinations: A device, a list of devices, or a variable; None for those of all towers.
        """
        tell("broadcast(tensor, destinations)", "strategy.extended.broadcast_to(tensor, destinations)")
        return self._mirrored(tensor, destinations)

    def _mirrored(self, value: Any, where: Any) -> Any:
        if where is None or isinstance(where, (list, tuple)):
            return copied(value, self._devices if where is None else where)
        return self.strategy.extended.broadcast_to(value, where)

    def fetch(
        self,
        val: Any,
        destination: str = "/device:CPU:0",
        fn: Callable[[Any], Any] = lambda value: value,
    ) -> Any:
        """One value, in the notebook.

        Args:
          val: A variable, for its value (tower-local ones are combined), or a value with a component per tower, for
            that of the tower on `destination`, or tower 0's.
          destination: A device.
          fn: Applied to the value.
        """
        tell("fetch(value)", "variable.read_value(), or strategy.local_results(value)[0]")
        place = DeviceSpec.from_string(destination)
        if isinstance(val, Variable):
            return fn(val.read_value())
        if isinstance(val, DistributedValues):
            return fn(val.values[self._tower_on(place) if len(val) == self._size else 0])
        return fn(val)

    def _tower_on(self, place: DeviceSpec) -> int:
        for tower, name in enumerate(self._devices):
            spec = DeviceSpec.from_string(name)
            if (spec.device_type, spec.device_index) == (place.device_type, place.device_index):
                return tower
        return 0

    def unwrap(self, value: Any) -> list[Any]:
        """The components, in the order of towers; `[value]` for a single value."""
        tell("unwrap(value)", "strategy.local_results(value)")
        return list(self.strategy.local_results(value))

    def group(self, value: Any, name: str | None = None) -> None:
        """Waits until the components of `value` are computed; `name` has no effect."""
        tell("group(value)", "nothing: operations run when they are called")
        self.strategy.local_results(value)

    # -- variables and data -------------------------------------------------------------------------------------

    def colocate_vars_with(self, colocate_with_variable: Any) -> contextlib.AbstractContextManager[None]:
        """Creates variables inside the block on the devices of another one.

        Args:
          colocate_with_variable: A variable of this strategy, or what `non_slot_devices` returned.

        Raises:
          RuntimeError: outside the strategy's scope.
          ValueError: if it is neither.
        """
        tell("colocate_vars_with(v)", "strategy.extended.colocate_vars_with(v)")
        self._require_scope("colocate_vars_with")
        if isinstance(colocate_with_variable, (list, tuple)) and set(colocate_with_variable) == set(
            self._devices
        ):
            return contextlib.nullcontext()  # every variable is on all devices
        return self.strategy.extended.colocate_vars_with(colocate_with_variable)  # type: ignore[no-any-return]

    def tower_local_var_scope(self, reduce_method: str) -> contextlib.AbstractContextManager[None]:
        """Makes `get_variable` create variables with independent components, whose value combines them.

        Args:
          reduce_method: "sum" or "mean".

        Raises:
          ValueError: for another method.
        """
        tell(
            "tower_local_var_scope('sum')",
            "wb.Variable(value, synchronization='ON_READ', aggregation='SUM')",
        )
        return local_to_towers(self.strategy, reduce_op(reduce_method).name)

    def non_slot_devices(self, var_list: Sequence[Variable]) -> list[str]:
        """Devices for variables that belong to no single one of `var_list`."""
        tell("non_slot_devices(variables)", "strategy.extended.non_slot_devices(variables)")
        return list(self._devices)

    def distribute_dataset(self, dataset: Dataset | Callable[[], Dataset]) -> DistributedIterator:
        """An iterator whose `get_next()` returns one element for each tower; elements are not split.

        It ends when there is no longer an element for each tower.

        Args:
          dataset: The elements, or a function that makes the dataset.
        """
        tell(
            "distribute_dataset(dataset)",
            "iter(strategy.distribute_dataset(dataset)), which splits batches of the global size",
        )
        made = whole_steps(dataset if isinstance(dataset, Dataset) else dataset(), self._size)
        elements: DistributedIterator = iter(
            self.strategy.distribute_datasets_from_function(lambda context: made)
        )
        return elements

    def configure(self, session_config: Any = None) -> None:
        """Does nothing: there are no sessions."""
        tell("configure(session_config)", "nothing: there are no sessions")

    def _require_scope(self, what: str) -> None:
        if contexts.entered_strategy() is not self.strategy:
            raise RuntimeError(
                f"{what} was called outside of the strategy's scope; write `with distribution.scope():` around it"
            )

    def __repr__(self) -> str:
        return f"<MirroredStrategy of {self._size} towers: {', '.join(self._devices)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return distribution_of, (self.strategy,)


class _Scope(contextlib.ContextDecorator, contextlib.AbstractContextManager[MirroredStrategy, None]):
    def __init__(self, distribution: MirroredStrategy) -> None:
        self._distribution = distribution
        self._scope = distribution.strategy.scope()

    def __enter__(self) -> MirroredStrategy:
        self._scope.__enter__()
        return self._distribution

    def __exit__(self, *raised: Any) -> None:
        self._scope.__exit__(*raised)


def distribution_of(strategy: Any) -> MirroredStrategy:
    """The distribution of a strategy, even on a replica in another process."""
    found = _distributions.get(strategy.description.id)
    if found is None:
        found = object.__new__(MirroredStrategy)
        found._take(strategy)
    return found
