"""CrossDeviceOps: how values of several replicas are combined and copied; the user may choose or write it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.arguments import count, several
from workbench.backends.users_line import Line, apply_at, users_line
from workbench.communicators.core.options import (
    Algorithm,
    CommunicationImplementation,
    CommunicationOptions,
    Options,
    Reduction,
    checked_options,
)
from workbench.device_names import Device
from workbench.device_spec import DeviceSpec
from workbench.distribute import contexts
from workbench.distribute.arrays.as_array import as_array
from workbench.distribute.arrays.host_reduce import reduce_components, unreduced
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.arrays.reduce_op import ReduceOp, ReduceOpLike, as_reduce_op
from workbench.distribute.values.distributed_values import DistributedValues, Mirrored, PerReplica
from workbench.distribute.variables import traced_merge
from workbench.errors import BackendUnavailable, WrongType
from workbench.extras import install_command
from workbench.runtime.user_code.call_sites import users_call_site

if TYPE_CHECKING:
    from workbench.communicators.communicator import Communicator
    from workbench.runtime.replica.env import ReplicaEnv

_NUMBERS = re.compile(r"[<>=]?(u?int|b?float|complex|[iufc])\d\w*")
_HOOKS = ("reduce_implementation", "batch_reduce_implementation", "broadcast_implementation")


class CrossDeviceOps:
    """Base class of the ways to reduce and broadcast (as tf.distribute.CrossDeviceOps).

    The public methods check their arguments and call the hooks `reduce_implementation`, `batch_reduce_implementation`
    and `broadcast_implementation`. Your own subclass may override these: a strategy made with it then calls it for
    every reduction, including `ReplicaContext.all_reduce`, which pauses the replicas meanwhile.

    The classes that come with the library work where the values are: on the replicas, through their communicators.
    """

    algorithm: Algorithm = "auto"
    packs = 0
    options: Options | None = None

    def reduce(
        self,
        reduce_op: ReduceOpLike,
        per_replica_value: Any,
        destinations: Any,
        options: Options | None = None,
    ) -> Any:
        """Combines a value over replicas and puts the result on `destinations`.

        Args:
          reduce_op: "SUM" or "MEAN".
          per_replica_value: A distributed value; an ordinary array counts as a single component.
          destinations: A device or an array, for a result on the host; or a distributed value or a variable (which
            keeps its own), for a `Mirrored` on its devices, a plain array if it has one component only. Pass the value
            itself for an all-reduce.
          options: Packing, deadline and implementation.

        Raises:
          ValueError: if the value cannot be combined, or `destinations` is none of these.
          RuntimeError: in a replica function.
        """
        _require_outside("reduce")
        value, places = _checked_value(per_replica_value), _checked_destinations(destinations)
        return self.reduce_implementation(
            as_reduce_op(reduce_op), value, places, checked_options(options) or CommunicationOptions()
        )

    def batch_reduce(
        self,
        reduce_op: ReduceOpLike,
        value_destination_pairs: Sequence[tuple[Any, Any]],
        options: Options | None = None,
    ) -> list[Any]:
        """Combines several values at once; see `reduce`.

        Args:
          reduce_op: "SUM" or "MEAN".
          value_destination_pairs: (value, destinations) tuples.
          options: Packing, deadline and implementation.

        Returns:
          One result per pair.

        Raises:
          ValueError: if an item is no such tuple.
        """
        _require_outside("batch_reduce")
        if isinstance(value_destination_pairs, DistributedValues):
            raise WrongType(_NO_PAIR.format(value_destination_pairs))
        pairs = [
            (_checked_value(value), _checked_destinations(destinations))
            for value, destinations in map(
                checked_pair, several(value_destination_pairs, "batch_reduce", PAIRS)
            )
        ]
        return self.batch_reduce_implementation(
            as_reduce_op(reduce_op), pairs, checked_options(options) or CommunicationOptions()
        )

    def broadcast(self, tensor: Any, destinations: Any) -> Any:
        """Copies an array to the devices of `destinations` (see `reduce`); a variable there is not changed.

        Raises:
          RuntimeError: in a replica function.
        """
        _require_outside("broadcast")
        return self.broadcast_implementation(tensor, _checked_destinations(destinations))

    def reduce_implementation(
        self, reduce_op: ReduceOp, per_replica_value: DistributedValues, destinations: Any, options: Options
    ) -> Any:
        """Implements `reduce` after its checks; override it together with `batch_reduce_implementation`.

        Args:
          reduce_op: How components are combined.
          per_replica_value: The value, with a component per replica.
          destinations: A distributed value or variable with the devices of the result.
          options: Packing and deadline.
        """
        return self.batch_reduce_implementation(reduce_op, [(per_replica_value, destinations)], options)[0]

    def batch_reduce_implementation(
        self, reduce_op: ReduceOp, value_destination_pairs: Sequence[tuple[Any, Any]], options: Options
    ) -> list[Any]:
        """Implements `batch_reduce` after its checks.

        Args:
          reduce_op: How components are combined.
          value_destination_pairs: Values with the destinations of their results.
          options: Packing and deadline.

        Returns:
          A result for each pair, in order.
        """
        results: list[Any] = [None] * len(value_destination_pairs)
        together: dict[int, DistributedValues] = {}
        env = contexts.merging_env()
        for index, (value, destinations) in enumerate(value_destination_pairs):
            if env is not None:
                total = traced_merge.reduce(env, reduce_op, value, None)
                results[index] = self.broadcast_implementation(total, destinations)
            elif _has_several(destinations) and _strategy_for(value) is not None:
                together[index] = value
            else:
                total = reduce_components(reduce_op, value.values, None)
                results[index] = self.broadcast_implementation(total, destinations)
        if together:
            reduced = self._all_reduce(reduce_op, list(together.values()), options)
            for index, result in zip(together, reduced, strict=True):
                results[index] = result
        return results

    def broadcast_implementation(self, tensor: Any, destinations: Any) -> Any:
        """Implements `broadcast` after its checks."""
        return Mirrored([tensor] * _count(destinations)) if _has_several(destinations) else tensor

    def _all_reduce(
        self, reduce_op: ReduceOp, values: Sequence[DistributedValues], options: Options
    ) -> list[Mirrored]:
        strategy = _strategy_for(values[0])
        assert strategy is not None
        handles = [value.handle_for(strategy.group) for value in values]
        call = (self, handles, reduce_op.value.lower(), users_call_site(), options)
        found = strategy.run_collective(_all_reduce_here, (users_line(), call))
        return [Mirrored(handle) for handle in found]

    def all_reduce_arrays(
        self,
        communicator: Communicator,
        arrays: Sequence[Any],
        request: Reduction,
    ) -> list[Any]:
        """Combines arrays over all replicas by this object's algorithm. Replicas call it, in the same order.

        Args:
          communicator: The end of the group on this replica.
          arrays: The same number, dtypes and shapes on each replica.
          request: The operation. Its `options`, if given, override those of this object.

        Returns:
          One result per array, of its shape.
        """
        options = request.options or self.options
        own = request._replace(options=options, algorithm=self.algorithm, packs=self.packs)
        return communicator.all_reduce(arrays, own)

    def check_devices(self, devices: Sequence[Device]) -> None:
        """Raises if it cannot work on these devices; called when a strategy is made."""

    @property
    def is_custom(self) -> bool:
        """Whether a subclass overrides one of the hooks."""
        return any(getattr(type(self), hook) is not getattr(CrossDeviceOps, hook) for hook in _HOOKS)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({f'num_packs={self.packs}' if self.packs else ''})"


class ReductionToOneDevice(CrossDeviceOps):
    """Copies everything to one replica, combines there, and copies back (as tf.distribute.ReductionToOneDevice).

    Args:
      reduce_to_device: Accepted without effect: replica 0 combines.
      accumulation_fn: Accepted without effect: arrays are added.
    """

    algorithm: Algorithm = "one_device"

    def __init__(self, reduce_to_device: str | None = None, accumulation_fn: Any = None) -> None:
        if reduce_to_device is not None:
            DeviceSpec.from_string(reduce_to_device)  # a typo must not pass silently


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """Combines within threads, then processes, then hosts, and back (as tf.distribute.HierarchicalCopyAllReduce).

    Args:
      num_packs: Number of packs in which small arrays are combined; 0 combines each array separately.

    Raises:
      ValueError: if `num_packs` is negative.
    """

    algorithm: Algorithm = "hierarchical"

    def __init__(self, num_packs: int = 1) -> None:
        self.packs = _packs(num_packs)


class RingAllReduce(CrossDeviceOps):
    """Splits each array over the replicas and passes the parts around a ring: least traffic for large arrays.

    Args:
      num_packs: Number of packs in which small arrays are combined; 0 chooses automatically.
    """

    algorithm: Algorithm = "ring"

    def __init__(self, num_packs: int = 0) -> None:
        self.packs = _packs(num_packs)


class NcclAllReduce(CrossDeviceOps):
    """NVIDIA's collectives between GPUs (as tf.distribute.NcclAllReduce). A strategy with it needs GPUs and CuPy.

    Args:
      num_packs: Number of packs in which small arrays are combined; 0 chooses automatically.
    """

    options = CommunicationOptions(implementation=CommunicationImplementation.NCCL)

    def __init__(self, num_packs: int = 1) -> None:
        self.packs = _packs(num_packs)

    def check_devices(self, devices: Sequence[Device]) -> None:
        """Refuses devices that are not GPUs.

        Raises:
          BackendUnavailable: if one is not; says what is needed, and what to use instead.
        """
        others = [device.short for device in devices if device.kind != "GPU"]
        if others:
            raise BackendUnavailable(
                f"NcclAllReduce works between NVIDIA GPUs, the strategy has {', '.join(others)}. It needs one GPU per "
                f"replica, the driver, and CuPy with NCCL: {install_command('gpu13')}. For CPUs leave "
                f"cross_device_ops out, or use RingAllReduce() or HierarchicalCopyAllReduce()"
            )


PAIRS = "[(value, destinations)], or [(value, value)] for an all-reduce"
_NO_PAIR = f"batch_reduce needs pairs, such as {PAIRS}, got {{!r:.60}}"


def checked_pair(pair: Any) -> tuple[Any, Any]:
    """Checks a pair of a value and its destinations.

    Raises:
      WrongType: if it is something else.
    """
    if isinstance(pair, tuple | list) and len(pair) == 2:
        return pair[0], pair[1]
    raise WrongType(_NO_PAIR.format(pair))


def _packs(num_packs: int) -> int:
    return count(num_packs, "num_packs", 0, otherwise=" (0 means no packing)")


def _require_outside(what: str) -> None:
    if contexts.in_replica_function():
        raise RuntimeError(
            f"CrossDeviceOps.{what} was called inside a replica function; use get_replica_context().all_reduce there, "
            f"or call it in a merge function"
        )


def _checked_value(value: Any) -> DistributedValues:
    if isinstance(value, DistributedValues):
        return value
    if isinstance(value, IndexedSlices):
        return PerReplica((value,))
    try:
        array = as_array(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{value!r:.80} cannot be combined over replicas: {error}") from error
    if array.dtype.kind not in "iufcV":
        raise ValueError(
            f"values of dtype {array.dtype} cannot be combined over replicas; give an array of numbers"
        )
    return PerReplica((value,))


def _checked_destinations(destinations: Any) -> Any:
    if isinstance(destinations, (DistributedValues, Device, DeviceSpec)):
        return destinations
    if isinstance(destinations, str):
        return DeviceSpec.from_string(destinations)
    if hasattr(destinations, "__array__") or hasattr(destinations, "__dlpack__"):
        return DeviceSpec(device_type="CPU", device_index=0)  # the device of the notebook's arrays
    raise ValueError(
        f"destinations must be a device such as 'CPU:0', a distributed value, a variable or an array, got "
        f"{destinations!r:.80}"
    )


def _strategy_for(value: DistributedValues) -> contexts.EnteredStrategy | None:
    """The current strategy, if its replicas hold, or could hold, the arrays of `value`."""
    strategy = contexts.entered_strategy()
    if strategy is None or strategy.is_default or _count(value) != strategy.num_replicas_in_sync:
        return None
    if isinstance(value, (PerReplica, Mirrored)) and value.handle is not None:
        if value.handle.group is not strategy.group:
            return None
        names = [spec and spec[0] for spec in value.handle.specs()]  # without fetching anything
    else:
        names = [str(getattr(part, "dtype", "")) for part in value.values]
    numbers = all(name is not None and _NUMBERS.fullmatch(name) for name in names)
    return strategy if numbers and isinstance(value, (PerReplica, Mirrored)) else None


def _has_several(destinations: Any) -> bool:
    """Whether the result goes to several devices, as a `Mirrored`; for one device it is a plain array."""
    return isinstance(destinations, DistributedValues) and _count(destinations) > 1


def _count(value: DistributedValues) -> int:
    """Number of components; a variable's length is that of its array."""
    return len(value) if isinstance(value, (PerReplica, Mirrored)) else len(value.values)


def reduce_plain(reduce_op: ReduceOp, value: Any, destinations: Any, replicas: int) -> Any:
    """Puts an ordinary value, "reduced" over a strategy's replicas by the rules of `reduce`, on `destinations`.

    Args:
      reduce_op: The operation.
      value: A value that is not distributed.
      destinations: Destination of the result: one or several devices, or a value or variable on them.
      replicas: Number of replicas that count as having the value.
    """
    result = unreduced(reduce_op, value, replicas)
    return Mirrored([result] * _count(destinations)) if _has_several(destinations) else result


def _all_reduce_here(env: ReplicaEnv, line: Line | None, call: tuple[Any, ...]) -> list[Any]:
    """Combines on a replica as if called from the user's line in the notebook, which NumPy's warnings then name."""
    ops, arrays, op, site, options = call

    def combine(communicator: Communicator, arrays: Sequence[Any], op: str) -> list[Any]:
        return ops.all_reduce_arrays(communicator, arrays, Reduction(op, site, options))  # type: ignore[no-any-return]

    combined: list[Any] = apply_at(line)(combine, env.communicator, arrays, op=op)
    return combined
