"""DescribedStrategy: a strategy as values, variables and reductions know it, which are below the methods for users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from workbench.communicators import Reduction
from workbench.debugging.dump.recording import thread as dump_thread
from workbench.debugging.dump.watched import watched
from workbench.distribute import contexts
from workbench.distribute.arrays.host_reduce import require_reducible
from workbench.distribute.strategy_description import StrategyDescription, remember, strategy_of
from workbench.errors import TracingError
from workbench.runtime.placement_text import one_line, placement, transport

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
# the rest.
_NOT_ADDED = frozenset(("b", "V", ""))


class DescribedStrategy:
    """Replicas, what is known of them, and internal programs on them; `Strategy` adds what users call.

    Attributes:
      description: What of it travels.
      devices: One per replica, in replica order.
      cross_device_ops: How replicas combine values, or None for the best there is.
      communication_options: Options of collectives that name none of their own, or None.
      parameter_devices: Those that hold variables: the same, or a single one.
      holder: The replica that keeps the variables for all of them, or None where each keeps its own.
      merges_reductions: Whether a user's own CrossDeviceOps has to be asked for each reduction.
      inputs: Its distributed datasets.
      kept: Its variables; none of them after all replicas were lost at once.
      checkpoint: A `wb.CheckpointManager` from which training goes on after all replicas were lost at once; None takes
        that of the cluster, see `wb.connect`.
    """

    is_default = False
    checkpoint: Restorer | None = None
    travels_by_id = True
    inputs: InputRegistry
    kept: VariableRegistry[Any]

    def _describe(self, description: StrategyDescription, group: Group | None) -> None:
        """Takes on the state that `description` describes; without `group`, only stands for the notebook's strategy."""
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
        """What gives its variables their values back after all replicas were lost; None if nothing does."""
        group = self._group
        cluster = None if group is None else group.gang.cluster
        return self.checkpoint or (None if cluster is None else cluster.checkpoint)

    @property
    def stands_for_another(self) -> bool:
        """Whether this is a replica's process, in which the notebook's strategy is not."""
        return self._group is None

    def describe_again(self, description: StrategyDescription) -> None:
        """Other replicas take part than before."""
        self.description = description
        self.devices = description.devices
        self.parameter_devices = self.devices if self.holder is None else self.parameter_devices
        self.holder = description.holder
        self._size = len(self.devices)
        self._internal.clear()  # prepared functions contain the old description

    @classmethod
    def standing_for(cls, description: StrategyDescription) -> Self:
        """What `description` describes, for a process that has no replicas of it; see `strategy_of`."""
        strategy = object.__new__(cls)
        strategy._describe(description, None)
        return strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """Number of replicas, over all hosts."""
        return self._size

    @property
    def library(self) -> Library:
        """The array library that replica functions compute with: "numpy", "cupy" or "jax"."""
        if self.devices[0].kind == "CPU":
            return self.description.library
        return "cupy" if self.devices[0].kind == "GPU" else "jax"

    @property
    def group(self) -> Group:
        """The replicas, as the runtime knows them.

        Raises:
          RuntimeError: on a replica, where the strategy only stands for itself.
          TracingError: in a merge function that is traced, for what only the notebook can do.
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
        """The workers of the cluster that it runs on; raises as `group`."""
        return self.group.gang

    def next_server(self) -> int:
        """The parameter server of a variable that is being created, for strategies that have some."""
        return 0

    def divided(self, *args: Any, **kwargs: Any) -> Any:
        """What `wb.Variable(...)` makes in the scope where a variable is divided; None where it is not."""
        return None

    def run_internal(
        self,
        program: Callable[..., Any],
        args: tuple[Any, ...] = (),
        *,
        ranks: Sequence[int] | None = None,
        beside_steps: bool = False,
    ) -> Any:
        """Runs an internal program, `program(env, *args)`, which must not communicate.

        Args:
          program: The program.
          args: Its arguments.
          ranks: The replicas that run it; all of them by default.
          beside_steps: Whether it is no work that the user has asked for. From its second run on, this returns as soon
            as the program is sent. Reading its results waits for them; its failure shows nowhere else.
        """
        return self._run_ours(program, args, ranks, is_step=False, beside_steps=beside_steps)

    def run_collective(self, program: Callable[..., Any], args: tuple[Any, ...] = ()) -> Any:
        """Runs an internal program that communicates: a step of its own, as collectives are counted by step."""
        return self._run_ours(program, args, None, is_step=True)

    def _run_ours(
        self,
        program: Callable[..., Any],
        args: tuple[Any, ...],
        ranks: Sequence[int] | None,
        *,
        is_step: bool,
        beside_steps: bool = False,
    ) -> Any:
        group = self.group
        prepared = self._internal.get((program, beside_steps))
        if prepared is None:
            prepared = group.prepare(program, user_function=program if is_step else None)
            prepared.quiet = beside_steps
            self._internal[program, beside_steps] = prepared
        return group.run(prepared, args, ranks=ranks, pipelined=beside_steps)

    def all_reduce_arrays(
        self,
        communicator: Communicator,
        arrays: Sequence[Any],
        request: Reduction,
    ) -> list[Any]:
        """Combines arrays over the replicas in the way that this strategy does; on a replica.

        Args:
          communicator: The replica's.
          arrays: What is combined.
          request: How; without options, those of the strategy are taken.

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
