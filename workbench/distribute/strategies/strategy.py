"""Strategy, the base of all strategies: runs functions on replicas, returns their values, distributes data."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench import tree
from workbench.debugging import device_placement, observing
from workbench.debugging.dump.session import current_writer, flush_here
from workbench.distribute import contexts
from workbench.distribute.arrays.host_reduce import as_axis
from workbench.distribute.arrays.reduce_op import ReduceOp, ReduceOpLike, as_reduce_op
from workbench.distribute.described_strategy import DescribedStrategy
from workbench.distribute.function import Function, checked_arguments, plain_function
from workbench.distribute.identity import new_id
from workbench.distribute.input.registry import InputRegistry
from workbench.distribute.placement_log import log_function
from workbench.distribute.replica.reduce_leaf import gather_leaves, reduce_leaves
from workbench.distribute.replica.replica_context import ReplicaProgram
from workbench.distribute.strategy_description import StrategyDescription, redescribe
from workbench.distribute.value_context import RunOptions, ValueContext
from workbench.distribute.values.distributed_values import PerReplica, dealt_out, handed_over, wrapped
from workbench.distribute.values.local_values import (
    flatten_distributed,
    parts_of,
    require_no_none,
    values_from_function,
)
from workbench.distribute.variables.aggregation import VariableSynchronization
from workbench.distribute.variables.on_replicas import placement_of
from workbench.distribute.variables.registry import VariableRegistry
from workbench.distribute.variables.variable import Variable
from workbench.errors import InvalidArgumentError, ReplicaLost, ReplicaStalled, WrongType
from workbench.runtime.driver.handle import Handle
from workbench.runtime.restorer import refuse_given_again

if TYPE_CHECKING:
    from workbench.backends.library import Library
    from workbench.communicators.core.options import CommunicationOptions
    from workbench.data import Dataset
    from workbench.data.context import InputContext, InputOptions
    from workbench.data.sharding.model import Shape
    from workbench.device_names import Device
    from workbench.distribute.input.distributed_dataset import DistributedDataset
    from workbench.distribute.replica.cross_device_ops import CrossDeviceOps
    from workbench.distribute.strategies.extended import StrategyExtended
    from workbench.distribute.variables.placement import Placement
    from workbench.runtime.driver.group import Group
    from workbench.runtime.replica.env import ReplicaEnv
    from workbench.runtime.shipping.function_registry import Prepared


class _Alias:
    """TensorFlow's `experimental_` name for a method with a plain name here."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, strategy: Strategy | None, owner: type[Strategy]) -> Any:
        return getattr(owner if strategy is None else strategy, self._name)


class Strategy(DescribedStrategy):
    """Replicas that compute together, and the variables and values that they hold (as tf.distribute.Strategy).

    Use its subclasses. It can be passed to replica functions, where a stand-in represents it.
    """

    def __init__(
        self,
        group: Group,
        *,
        cross_device_ops: CrossDeviceOps | None = None,
        communication_options: CommunicationOptions | None = None,
        library: Library = "numpy",
        parameter_device: Device | None = None,
        holder: int | None = None,
        placement_of: Callable[[Any, VariableSynchronization], Placement] = placement_of,
    ) -> None:
        """Takes over a group of replicas, which subclasses create."""
        description = StrategyDescription(
            id=new_id(),
            kind=type(self),
            devices=group.devices,
            placement_of=placement_of,
            options=communication_options,
            cross_device_ops=cross_device_ops,
            library=library,
            parameter_device=parameter_device,
            holder=holder,
        )
        if cross_device_ops is not None:
            cross_device_ops.check_devices(group.devices)
        if library == "cupy" and group.devices[0].kind == "CPU":
            raise InvalidArgumentError(
                f"backend='cupy' computes on NVIDIA GPUs, and {group.devices[0].short} is none; leave it out, use "
                f"'jax', or connect to GPUs: wb.connect(gpus=1)"
            )
        self._describe(description, group)
        # The group outlives the strategy while values exist; it must not keep the strategy.
        own = weakref.ref(self)
        group.on_recover(lambda lost, survivors: _recover(own(), lost, survivors))
        group.on_resize(lambda: _resize(own()))
        self._holder_seat = holder
        group.kept_names = lambda: _variable_names(own())
        weakref.finalize(self, group.gang.abandoned.append, group).atexit = False

    def _describe(self, description: StrategyDescription, group: Group | None) -> None:
        super()._describe(description, group)
        self._extended: StrategyExtended | None = None
        self._functions: weakref.WeakKeyDictionary[Function, Prepared] = weakref.WeakKeyDictionary()
        self._observation: observing.Observation | None = None
        self._observed_functions: weakref.WeakKeyDictionary[Function, Prepared] = weakref.WeakKeyDictionary()
        self.kept: VariableRegistry[Variable] = VariableRegistry()
        self.inputs = InputRegistry()

    def describe_again(self, description: StrategyDescription) -> None:
        """Updates the description after the set of replicas has changed."""
        super().describe_again(description)
        # Prepared functions contain the old description.
        self._functions.clear()
        self._observed_functions.clear()

    def resize(self) -> None:
        """Continues with the current replicas of its group, and informs them."""
        group = self.group
        seat = self._holder_seat
        holder = None if seat is None else group.taken.index(seat) if seat in group.taken else 0
        self.describe_again(replace(self.description, devices=group.devices, holder=holder))
        self.run_internal(redescribe, (self.description,))
        self.inputs.resize()
        if seat is not None and seat not in group.taken and self.variables:
            placement = self.description.placement_of(self, VariableSynchronization.ON_WRITE)
            placement.reseed(self.variables, lost=[], survivors=[holder or 0])

    # -- what it is ---------------------------------------------------------------------------------------------

    @property
    def cluster_resolver(self) -> Any:
        """The resolver of a multi-worker strategy; None for the others."""
        return None

    @property
    def extended(self) -> StrategyExtended:
        """Further methods, for libraries."""
        if self._extended is None:
            from workbench.distribute.strategies.extended import StrategyExtended  # imports strategies itself

            self._extended = StrategyExtended(self, self.run)
        return self._extended

    @property
    def input_shape(self) -> Shape:
        """Number of hosts, and of replicas on each, over which datasets are divided; for `explain_sharding`."""
        from workbench.data.sharding.model import Shape
        from workbench.distribute.input.plan import input_shape

        return Shape() if self.is_default else input_shape(self.group.devices)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that live on the replicas, in order of creation."""
        return self.kept.variables

    # -- contexts and running -----------------------------------------------------------------------------------

    def scope(self) -> contexts.AnyScope[Strategy]:
        """Makes the strategy current and enters cross-replica context; variables created inside are the strategy's.

        Raises:
          RuntimeError: inside the scope of another strategy, or in a replica function.

        >>> with strategy.scope():
        ...     w = wb.Variable([1.0, 2.0])  # a copy on every replica
        """
        return contexts.Scope(self)

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        options: RunOptions | None = None,
    ) -> Any:
        """Calls `fn` once on every replica.

        A plain function has run when `run` returns. A `wb.function` has only been sent: reading its result waits for
        it, and its errors appear then, or at the end of the notebook cell.

        Args:
          fn: Runs in replica context; `get_replica_context()` returns the number of its replica.
          args: Positional arguments. Each replica gets its own component of distributed values in them, at any depth.
          kwargs: Keyword arguments, likewise.
          options: Options for strategies that compile functions; other strategies ignore them.

        Returns:
          The structure that `fn` returns, with a `PerReplica` for each leaf, even if there is only one replica. None
          stays None, and a variable stays a variable.

        Raises:
          ReplicaError: if `fn` raised an exception; the error is also an instance of that exception's type.
          RuntimeError: in a replica function, or in the scope of another strategy.
          CaptureError: if `fn` or an argument cannot be sent to the replicas.
          TypeError: if `args` is not a tuple or list, or `kwargs` is not a dictionary; or if `fn` is a generator or
            async function, because calling it would not run its body.

        >>> def step(x):
        ...     return x * wb.distribute.get_replica_context().replica_id_in_sync_group
        >>> strategy.run(step, args=(10,)).values
        (0, 10)
        """
        __tracebackhide__ = True  # the last frame in notebooks and pytest is then the user's line
        if contexts.thread.context is not None:
            contexts.require_cross_replica(self, "strategy.run")
        group = self._group
        if group is None:
            group = self.group  # raises, because this is a replica
        if device_placement.get_log_device_placement():
            log_function(self, plain_function(fn), (args, kwargs))
        pipelined = type(fn) is Function
        functions = self._functions_for(observing.current())
        prepared = functions.get(fn) if pipelined and options is None else None  # type: ignore[call-overload]
        if prepared is None:
            if not isinstance(options, RunOptions | None):
                raise WrongType(
                    f"strategy.run: options must be a RunOptions, got {type(options).__name__} {options!r:.60}"
                )
            prepared = self._prepare(fn, group, options)
        if type(args) is not tuple or kwargs is not None:
            args = checked_arguments(args, kwargs)
        check = None
        if (restorer := self.restorer) is not None:
            if group.stale:
                group.make_ready()
            # Covers a loss that is noticed from here on.
            check = partial(refuse_given_again, restorer, (args, kwargs))
            check()
        try:
            if group.may_grow and not _made_before((args, kwargs)):
                group.grow()
            if args:
                args = tuple([handed_over(value, group) for value in args])
            if kwargs:
                kwargs = {name: handed_over(value, group) for name, value in kwargs.items()}
            result = group.run(
                prepared,
                args,
                kwargs,
                pipelined=pipelined,
                on_merge=self._on_merge,
                wrap=PerReplica,
                check=check,
            )
        except (ReplicaLost, ReplicaStalled):
            self.inputs.owe((args, kwargs))
            raise
        if self.inputs.owing:
            self.inputs.settle((args, kwargs))
        return result

    def _prepare(self, fn: Callable[..., Any], group: Group, options: RunOptions | None = None) -> Prepared:
        user_function = plain_function(fn)
        observation = observing.current()
        prepared = group.prepare(
            ReplicaProgram(self, user_function, observation), user_function=user_function
        )
        if isinstance(fn, Function):
            self._functions_for(observation)[fn] = prepared
        return prepared

    def _functions_for(
        self, observation: observing.Observation | None
    ) -> weakref.WeakKeyDictionary[Function, Prepared]:
        """The cache of prepared functions for an observation."""
        if observation is None:
            return self._functions
        if observation != self._observation:
            self._observation = observation
            self._observed_functions = weakref.WeakKeyDictionary()
        # On each call, because an equal observation may belong to another dump.
        if (writer := current_writer()) is not None:
            writer.runs_on(self)
            self.group.gang.cluster.expect_last_writes()
        return self._observed_functions

    def flush_dumps(self, root: str, *, sources: bool, executions: bool, close: bool) -> None:
        """Makes the replicas write their data of a dump; `wb.debugging` calls it.

        Args:
          root: The folder of the dump.
          sources: Whether to write copies of source files.
          executions: Whether to write operations.
          close: Whether to write everything and end the dump.
        """
        if self._group is not None and not self._group.gang.closed:
            self.run_internal(_flush_dump, (root, sources, executions, close))

    def _on_merge(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs a merge function for all replicas, which wait in merge_call."""
        with contexts.cross_replica(self, "merge"):
            result = fn(self, *wrapped(args), **wrapped(kwargs))
        return dealt_out(result, self.group)

    # -- fetching values ----------------------------------------------------------------------------------------

    def reduce(self, reduce_op: ReduceOpLike, value: Any, axis: int | Sequence[int] | None) -> Any:
        """Combines a value over replicas, on the host (as tf.distribute.Strategy.reduce).

        Args:
          reduce_op: "SUM" or "MEAN", in any letter case. A mean of integers is float64.
          value: A distributed value, or a nested structure of them. Every replica counts as having an ordinary array;
            with SUM, no axis and more than one replica, that raises an error.
          axis: None combines elementwise across replicas. Given dimensions (usually 0, the batch) are also reduced
            within each replica; a mean divides by the actual number of elements.

        Raises:
          InvalidArgumentError: if shapes or dtypes of the components do not fit together.
          ValueError: if None is among the values; a MEAN without an axis returns it, as it does ordinary values.
          RuntimeError: in a replica function.

        >>> values = wb.distribute.PerReplica([np.array([1, 2]), np.array([5])])
        >>> int(strategy.reduce("SUM", values, axis=0))
        8
        >>> float(strategy.reduce("MEAN", strategy.run(lambda: 3.0), axis=None))
        3.0
        """
        contexts.require_cross_replica(self, "strategy.reduce")
        op, checked = as_reduce_op(reduce_op), as_axis(axis)
        leaves, spec = flatten_distributed(value)
        if op is ReduceOp.SUM or checked is not None:
            require_no_none(value, leaves, f"reduce with {op.name}")
        return tree.unflatten(spec, reduce_leaves(self, op, leaves, checked))

    def gather(self, value: Any, axis: int) -> Any:
        """Concatenates the components of a value along `axis`, in replica order, on the host.

        Args:
          value: A distributed value, or a nested structure of them; an ordinary array is returned unchanged.
          axis: The dimension to concatenate; components may differ only along it.

        Raises:
          InvalidArgumentError: for scalars, an axis that does not exist, or components that do not fit together.
          NotImplementedError: for IndexedSlices that are not distributed; those of a distributed value become dense.
          RuntimeError: in a replica function.

        >>> values = wb.distribute.PerReplica([np.array([1, 2]), np.array([5])])
        >>> strategy.gather(values, axis=0)
        array([1, 2, 5])
        """
        contexts.require_cross_replica(self, "strategy.gather")
        leaves, spec = flatten_distributed(value)
        return tree.unflatten(spec, gather_leaves(self, leaves, axis))

    def local_results(self, value: Any) -> tuple[Any, ...]:
        """Returns the components of a distributed value as a tuple; `(value,)` for an ordinary value.

        The components of a variable are variables. Lists, tuples and dicts, even of ordinary values, result in one
        structure per replica.

        >>> strategy.local_results(strategy.run(lambda: "here"))
        ('here', 'here')
        """
        return parts_of(value, self._size)

    # -- distributing -------------------------------------------------------------------------------------------

    def distribute_values_from_function(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        """Creates a distributed value by calling `value_fn(ValueContext)` once per replica, in order, in the notebook.

        Returns:
          A `PerReplica`; if `value_fn` returns a structure, that structure with a `PerReplica` for each leaf.

        Raises:
          ValueError: if it returns different structures for different replicas.

        >>> strategy.distribute_values_from_function(lambda context: 10 * context.replica_id_in_sync_group).values
        (0, 10)
        """
        if self._group is not None and self._group.may_grow:
            self._group.grow()
        return values_from_function(value_fn, self._size)

    def distribute_dataset(self, dataset: Dataset, options: InputOptions | None = None) -> DistributedDataset:
        """Divides a dataset among the replicas (as tf.distribute.Strategy.experimental_distribute_dataset).

        Args:
          dataset: A dataset with *global* batches; each replica gets its part of each batch.
          options: How to read the dataset; see `InputOptions`.

        Returns:
          An iterable over distributed values, or structures of them, one for each step.

        Raises:
          ValueError: if the elements have no batch dimension.

        >>> batches = strategy.distribute_dataset(wb.data.Dataset.range(8).batch(4))
        >>> [int(strategy.reduce("SUM", batch, axis=0)) for batch in batches]
        [6, 22]
        """
        from workbench.distribute.input.distributed_dataset import (
            distribute_dataset,  # loads the data pipeline on first use
        )

        return distribute_dataset(self, dataset, options)

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Dataset], options: InputOptions | None = None
    ) -> DistributedDataset:
        """Distributes the datasets that `dataset_fn(InputContext)` returns for each input pipeline (one per host).

        Args:
          dataset_fn: Returns a dataset batched by the *per-replica* batch size. It is neither split nor sharded; each
            replica takes one element per step.
          options: How to read; see `InputOptions`.

        >>> batches = strategy.distribute_datasets_from_function(lambda context: wb.data.Dataset.range(4).batch(2))
        >>> [batch.values for batch in batches]
        [(array([0, 1]), array([2, 3]))]
        """
        from workbench.distribute.input.distributed_dataset import distribute_datasets_from_function

        return distribute_datasets_from_function(self, dataset_fn, options)

    def make_numpy_dataset(self, numpy_input: Any) -> Dataset:
        """A dataset of the rows of arrays (as tf.distribute.Strategy.experimental_make_numpy_dataset).

        Args:
          numpy_input: A structure of arrays `(n, ...)`. A list of arrays is stacked; tuples and dicts stay structure.

        Returns:
          A dataset of `n` elements, to batch by the global batch size and distribute. Each replica itself gathers its
          rows of a batch.

        Raises:
          ValueError: if a component is a scalar, or first dimensions differ.
        """
        from workbench.data.dataset import Dataset

        return Dataset.from_tensor_slices(numpy_input)

    experimental_local_results = _Alias("local_results")
    experimental_make_numpy_dataset = _Alias("make_numpy_dataset")
    experimental_distribute_values_from_function = _Alias("distribute_values_from_function")
    experimental_distribute_dataset = _Alias("distribute_dataset")
    experimental_distribute_datasets_from_function = _Alias("distribute_datasets_from_function")


def _flush_dump(env: ReplicaEnv, root: str, sources: bool, executions: bool, close: bool) -> None:
    flush_here(root, sources=sources, executions=executions, close=close)


def _variable_names(strategy: Strategy | None) -> tuple[str, ...]:
    return () if strategy is None else tuple(variable.name for variable in strategy.variables)


def _recover(strategy: Strategy | None, lost: list[int], survivors: list[int]) -> None:
    if strategy is not None:
        from workbench.distribute.strategies.recovery import (
            reseed_variables,  # loaded only after a failure
        )

        strategy.inputs.recover(lost)  # first, because the variables raise if no replica survived
        reseed_variables(strategy, lost, survivors)


def _resize(strategy: Strategy | None) -> None:
    if strategy is not None:
        strategy.resize()


def _made_before(arguments: Any) -> bool:
    """Whether arguments contain values that only the current replicas hold; batches can be split again."""
    handles = [getattr(leaf, "handle", None) for leaf in tree.flatten(arguments)[0]]
    origins = [handle.step.origin for handle in handles if type(handle) is Handle]
    return any(origin is None or not origin.divisible for origin in origins)
