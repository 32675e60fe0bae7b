"""TPUStrategy: replica functions compiled to one program for all TPU cores, real or emulated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from workbench import runtime
from workbench.debugging import numerics, observing
from workbench.debugging.dump.compiled import CompiledDump
from workbench.debugging.dump.session import current_writer
from workbench.device_names import SERVICE_JOBS, Device
from workbench.distribute.cluster_resolver.resolver import checked_resolver
from workbench.distribute.function import Function, plain_function
from workbench.distribute.replica.replica_context import ReplicaProgram
from workbench.distribute.strategies.device_assignment import DeviceAssignment
from workbench.distribute.strategies.strategy import Strategy
from workbench.distribute.strategies.tpu_sampling import SampledCollective, sample
from workbench.distribute.value_context import RunOptions
from workbench.distribute.variables.programs import forget
from workbench.errors import FailedPreconditionError, InvalidArgumentError
from workbench.runtime.joining.roster import Formed, Resolver, spec_of, tasks_of
from workbench.runtime.traced.program import Traced

if TYPE_CHECKING:
    from workbench.runtime.driver.group import Group
    from workbench.runtime.shipping.function_registry import Prepared


class TPUStrategy(Strategy):
    """Synchronous computation on TPU cores (as tf.distribute.TPUStrategy).

    Workbench *traces* a replica function: it calls the function once in Python, with placeholders for the values of all
    replicas and steps, and JAX compiles what the function did into one program for all cores. It compiles once per
    function and shapes of the arguments; later steps run the program. So compute with `jax.numpy`, or with operators
    and `ctx.xp`. A traced function cannot branch on values (use `ctx.select`), print, read files or draw NumPy's random
    numbers. Variables are inputs and outputs of the program and stay on the cores.

    Args:
      tpu_cluster_resolver: If no cluster is connected, names the tasks that have formed one by `workbench join`, one
        per host of the TPU; a connected cluster must have these tasks. `cluster_resolver` returns it.
      device_assignment: The cores on which the replicas run; None for all cores.

    Raises:
      FailedPreconditionError: if the cluster has no TPU devices, or other tasks than the resolver names.
      InvalidArgumentError: if `device_assignment` names cores that do not exist.

    >>> wb.connect(tpu=8)  # doctest: +SKIP
    >>> strategy = TPUStrategy()  # doctest: +SKIP
    """

    def __init__(
        self, tpu_cluster_resolver: Any = None, device_assignment: DeviceAssignment | None = None
    ) -> None:
        resolver = checked_resolver(tpu_cluster_resolver, type(self).__name__, "tpu_cluster_resolver")
        spec = None if resolver is None else spec_of(resolver)
        cluster = runtime.agreeing_cluster(resolver, spec)
        if cluster is None and spec and isinstance(resolver, Resolver):
            cluster = runtime.connect(Formed(tasks_of(spec), resolver.dask_cluster()), tpu="auto")
        found = () if cluster is None else cluster.devices
        cores = tuple(device for device in found if device.kind == "TPU" and device.job not in SERVICE_JOBS)
        if cluster is None or not cores:
            there = (
                "no cluster is connected"
                if not found
                else f"the cluster has {len(found)} {found[0].kind} devices"
            )
            raise FailedPreconditionError(
                f"TPUStrategy needs TPU devices, and {there}; wb.connect(tpu=8) takes those of this machine, or "
                f"emulates them on the CPU"
            )
        chosen = cores if device_assignment is None else _assigned(cores, device_assignment)
        self._resolver = tpu_cluster_resolver
        self.device_assignment = device_assignment
        super().__init__(cluster.group(chosen, label=type(self).__name__))

    @property
    def cluster_resolver(self) -> Any:
        """The given resolver, or None."""
        return getattr(self, "_resolver", None)

    def sample_collectives(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        steps: int = 5,
    ) -> tuple[SampledCollective, ...]:
        """Runs `fn` for a few steps under JAX's profiler and returns how long each collective in its program took.

        Whole steps are always recorded. Only a profile shows the inside of a compiled program, and it slows the steps
        down; so these are samples, and labelled as such.

        Args:
          fn: See `run`; these are real steps, which change variables.
          args: Positional arguments.
          kwargs: Keyword arguments.
          steps: Number of steps to sample.
        """
        return sample(self, fn, args, kwargs, steps)

    def _prepare(self, fn: Callable[..., Any], group: Group, options: RunOptions | None = None) -> Prepared:
        plain = plain_function(fn)
        # One program that sets all variables takes the least time to compile.
        if forgotten := self.kept.take_forgotten():
            self.run_internal(forget, (forgotten,))
        how = options or RunOptions()
        writer = current_writer()
        program = Traced(
            ReplicaProgram(self, plain),
            plain,
            partial_batch=how.partial_batch,
            timeout_seconds=how.timeout_seconds,
            checked=numerics.is_enabled(),
            dump=None if writer is None else CompiledDump(writer.options),
        )
        prepared = group.prepare(program, user_function=plain)
        if isinstance(fn, Function):
            self._functions_for(observing.current())[fn] = prepared
        return prepared

    experimental_run_v2 = Strategy.run


def _assigned(cores: Sequence[Device], assignment: DeviceAssignment) -> tuple[Device, ...]:
    chosen = []
    for replica in range(assignment.num_replicas):
        task, index = assignment.host_and_ordinal(replica)
        match = next((core for core in cores if core.task == task and core.index == index), None)
        if match is None:
            raise InvalidArgumentError(
                f"device_assignment puts replica {replica} on core {index} of host {task}, and there are {len(cores)} "
                f"cores on {len({core.task for core in cores})} hosts; build it with "
                f"DeviceAssignment.build(topology, num_replicas=...) for this cluster's topology"
            )
        chosen.append(match)
    return tuple(chosen)
