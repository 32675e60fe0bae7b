"""DescribedStrategy: the part of a strategy that values, variables and reductions use, below the methods for users."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from workbench.communicators import Reduction
from workbench.debugging.dump.recording import thread as dump_thread
from workbench.debugging.dump.watched import watched
from workbench.distribute import contexts
from workbench.distribute.arrays.host_reduce import require_reducible
from workbench.distribute.strategy_description import StrategyDescription, remember, strategy_of
from workbench.errors import ReplicaLost, ReplicaStalled, TracingError
from workbench.runtime.placement_text import one_line, placement, transport
from workbench.runtime.restorer import refuse_given_again

if TYPE_CHECKING:
    from workbench.backends.library import Library
    from workbench.communicators.communicator import Communicator
    from workbench.device_names import Device
    from workbench.distribute.input.registry import InputRegistry
    from workbench.distribute.variables.registry import VariableRegistry
    from workbench.runtime.driver.gang.gang import Gang
    from workbench.runtime.driver.group import Group
    from workbench.runtime.restorer import Restorer
    from workbench.runtime.shipping.function_registry import Prepared

# NumPy's kinds for bools and records, and "" for dtypes without a kind, such as PyTorch's. The communicator refuses
# all others that cannot be added.
_NOT_ADDED = frozenset(("b", "V", ""))


class DescribedStrategy:
    """Replicas, their description, and internal programs on them; `Strategy` adds the methods for users.

    Attributes:
      description: The part of it that travels.
      devices: One per replica, in replica order.
      cross_device_ops: How replicas combine values, or None for the fastest way.
      communication_options: Options of collectives without their own, or None.
      parameter_devices: The devices that hold variables: the same, or a single one.
      holder: The replica that keeps the variables for all, or None if each keeps its own.
      merges_reductions: Whether each reduction calls a user's own CrossDeviceOps.
      inputs: Its distributed datasets.
      kept: Its variables; empty after all replicas were lost at once.
      checkpoint: The `wb.CheckpointManager` from which training continues after all replicas were lost at once; None
        for the cluster's, see `wb.connect`.
    """

    is_default = False
    checkpoint: Restorer | None = None
    travels_by_id = True
    inputs: InputRegistry
    kept: VariableRegistry[Any]

    def _describe(self, description: StrategyDescription, group: Group | None) -> None:
        """Initialises it from `description`; without `group`, it only stands for the notebook's strategy."""
        self.description = description
        self.devices: tuple[Device, ...] = description.devices
        central = description.parameter_device
        self.parameter_devices = self.devices if central is None else (central,)
        self.holder = description.holder
        self.cross_device_ops = description.cross_device_ops
        self.communication_options = description.options
        self.merges_reductions = self.cross_device_ops is not None and self.cross_device_ops.is_custom
        self._group = group
        self._size = len(self.devices)
        self._internal: dict[tuple[Callable[..., Any], bool], Prepared] = {}
        remember(self)

    @property
    def restorer(self) -> Restorer | None:
        """Restores its variables after all replicas were lost; None if nothing can."""
        group = self._group
        cluster = None if group is None else group.gang.cluster
        return self.checkpoint or (None if cluster is None else cluster.checkpoint)

    @property
    def stands_for_another(self) -> bool:
        """Whether this object only stands for the notebook's strategy, in a replica's process."""
        return self._group is None

    def describe_again(self, description: StrategyDescription) -> None:
        """Updates the description after the set of replicas has changed."""
        self.description = description
        self.devices = description.devices
        self.parameter_devices = self.devices if self.holder is None else self.parameter_devices
        self.holder = description.holder
        self._size = len(self.devices)
        self._internal.clear()  # prepared functions contain the old description

    @classmethod
    def standing_for(cls, description: StrategyDescription) -> Self:
        """A stand-in for the described strategy, for a process without its replicas; see `strategy_of`."""
        strategy = object.__new__(cls)
        strategy._describe(description, None)
        return strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """Number of replicas, over all hosts."""
        return self._size

    @property
    def library(self) -> Library:
        """The array library of replica functions: "numpy", "cupy" or "jax"."""
        if self.devices[0].kind == "CPU":
            return self.description.library
        return "cupy" if self.devices[0].kind == "GPU" else "jax"

    @property
    def group(self) -> Group:
        """The replicas, in the runtime.

        Raises:
          RuntimeError: on a replica, where this is only a stand-in.
          TracingError: in a traced merge function, because only the notebook has the replicas.
        """
        if self._group is None and contexts.merging_env() is not None:
            raise TracingError(
                "a merge function in a traced program runs on the replicas: it can reduce, gather and update variables "
                "there, but not run a function, read a dataset or make a value by the notebook; do that before or "
                "after strategy.run"
            )
        if self._group is None:
            raise RuntimeError(f"{self!r} can only be used in the notebook, not on a replica")
        return self._group

    @property
    def gang(self) -> Gang[Group]:
        """The workers of its cluster; raises as `group`."""
        return self.group.gang

    def next_server(self) -> int:
        """The parameter server for a new variable, in strategies that have such servers."""
        return 0

    def divided(self, *args: Any, **kwargs: Any) -> Any:
        """The variable that `wb.Variable(...)` makes in the scope if it is divided, else None."""
        return None

    def run_internal(
        self,
        program: Callable[..., Any],
        args: tuple[Any, ...] = (),
        *,
        ranks: Sequence[int] | None = None,
        beside_steps: bool = False,
        check: Callable[[], None] | None = None,
    ) -> Any:
        """Runs an internal program, `program(env, *args)`, which must not communicate.

        Args:
          program: The program.
          args: Its arguments.
          ranks: The replicas that run it; by default all.
          beside_steps: Whether it is not requested by the user. From its second run on, this then returns as soon as
            the program is sent. Reading its results waits for them and is the only place where its failure raises.
          check: From `taking`, for programs that take what the user gave.
        """
        return self._run_ours(program, args, ranks, is_step=False, beside_steps=beside_steps, check=check)

    def run_collective(self, program: Callable[..., Any], args: tuple[Any, ...] = ()) -> Any:
        """Runs an internal program that communicates, as a separate step, because collectives are counted by step."""
        return self._run_ours(program, args, None, is_step=True)

    @contextmanager
    def taking(self, given: Any) -> Iterator[Callable[[], None] | None]:
        """A context in which replicas use the user's values. Elements of iterators count as used once, or come again.

        `Strategy.run` does the same in its own body, as it is called for every step.

        Args:
          given: Arguments, with handles in the place of distributed values.

        Returns:
          The `check` of `Group.run`: it raises where an iterator has gone back to a checkpoint and gives one of them
          again. None where there is nothing to check.
        """
        if self.group.nesting:  # the surrounding step was checked when it began
            yield None
            return
        restorer = self.restorer
        try:
            yield None if restorer is None else partial(refuse_given_again, restorer, given)
        except (ReplicaLost, ReplicaStalled):
            self.inputs.owe(given)
            raise
        if self.inputs.owing:
            self.inputs.settle(given)

    def _run_ours(
        self,
        program: Callable[..., Any],
        args: tuple[Any, ...],
        ranks: Sequence[int] | None,
        *,
        is_step: bool,
        beside_steps: bool = False,
        check: Callable[[], None] | None = None,
    ) -> Any:
        group = self.group
        prepared = self._internal.get((program, beside_steps))
        if prepared is None:
            prepared = group.prepare(program, user_function=program if is_step else None)
            prepared.quiet = beside_steps
            self._internal[program, beside_steps] = prepared
        return group.run(prepared, args, ranks=ranks, pipelined=beside_steps, check=check)

    def all_reduce_arrays(
        self,
        communicator: Communicator,
        arrays: Sequence[Any],
        request: Reduction,
    ) -> list[Any]:
        """Combines arrays over the replicas, on a replica, in the way of this strategy.

        Args:
          communicator: The replica's communicator.
          arrays: The arrays to combine.
          request: How to combine them; options default to the strategy's.

        Raises:
          InvalidArgumentError: for bools and records, as `reduce` does.
        """
        for array in arrays:
            if getattr(dtype := getattr(array, "dtype", None), "kind", "") in _NOT_ADDED:
                require_reducible(dtype, "all_reduce")
        if request.options is None and self.communication_options is not None:
            request = request._replace(options=self.communication_options)
        ops = self.cross_device_ops
        if ops is None:
            combined = communicator.all_reduce(arrays, request)
        else:
            combined = ops.all_reduce_arrays(communicator, arrays, request)
        if (recording := dump_thread.recording) is not None:
            recording.add("all_reduce", tuple(combined))
            return watched(combined)  # type: ignore[no-any-return]
        return combined

    def __reduce__(self) -> tuple[Any, ...]:
        return strategy_of, (self.description,)

    def __repr__(self) -> str:
        where = placement(self.devices, "replica")
        if self._group is None:
            return one_line(type(self).__name__, where)
        ops = self.cross_device_ops
        how = ", ".join(filter(None, (type(ops).__name__ if ops else "", transport(self.devices))))
        central = self.description.parameter_device
        return one_line(
            type(self).__name__,
            where,
            f"variables on {central.short}" if central else "",
            how and f"all_reduce: {how}",
            self._group.status,
        )
