"""ReplicaContext: the view and methods of a replica function as one of several replicas."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from workbench import tree
from workbench.arguments import function
from workbench.backends.from_gpu import sent
from workbench.backends.library import namespace_named
from workbench.communicators.core.options import Reduction, checked_options
from workbench.debugging import numerics
from workbench.debugging.observing import Observation, Place
from workbench.distribute import contexts
from workbench.distribute.arrays.as_array import as_array, is_python_number
from workbench.distribute.arrays.gather import all_gather_leaves, all_reduce_slices, checked_axis
from workbench.distribute.arrays.host_reduce import whole_axis
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.arrays.reduce_op import ReduceOpLike, as_reduce_op, collective_name
from workbench.distribute.function import checked_arguments, signature_text
from workbench.distribute.variables import traced_merge
from workbench.distribute.variables.variable import Variable
from workbench.errors import TracingError
from workbench.runtime.user_code.call_sites import call_site

if TYPE_CHECKING:
    from workbench.communicators.core.options import Options
    from workbench.distribute.described_strategy import DescribedStrategy
    from workbench.runtime.replica.env import ReplicaEnv

_MERGE = "merge_call"
_SPEC_LIMIT = 1024
_nestings: dict[tree.Spec, str] = {}


class ReplicaContext:
    """One replica in its replica function (as tf.distribute.ReplicaContext); `get_replica_context()` returns it.

    It is valid while that function runs, on the function's own thread. Every replica must make the same collective
    calls in the same order.
    """

    __slots__ = ("_env", "_thread", "strategy")

    def __init__(self, strategy: DescribedStrategy, env: ReplicaEnv) -> None:
        self.strategy = strategy
        self._env: ReplicaEnv | None = env
        self._thread = get_ident()

    @property
    def replica_id_in_sync_group(self) -> int:
        """The number of this replica, from 0 to `num_replicas_in_sync - 1`."""
        return self._alive().rank

    @property
    def num_replicas_in_sync(self) -> int:
        """Number of replicas that run together."""
        return self._alive().size

    @property
    def devices(self) -> tuple[str, ...]:
        """The full name of the replica's device, as a 1-tuple."""
        return (self._alive().device.string,)

    @property
    def xp(self) -> Any:
        """The array namespace for computations here: NumPy, CuPy on a GPU, `jax.numpy` on a TPU.

        Functions written with it run unchanged on all of them.
        """
        env = self._alive()
        return env.xp if env.traced else namespace_named(self.strategy.library)

    def select(self, condition: Any, on_true: Any, on_false: Any) -> Any:
        """`on_true` where `condition` holds, else `on_false`. Both are computed; this only chooses values.

        A traced function runs once for all replicas, so it cannot use `if` for this. `select` works everywhere:
        `ctx.select(ctx.replica_id_in_sync_group == 0, a, b)`.

        Args:
          condition: A bool, or an array of them that broadcasts with the values.
          on_true: An array or a nested structure of them.
          on_false: Values where the condition is false, in the same structure.
        """
        env = self._alive()
        if env.traced:
            return tree.map(lambda a, b: env.choose(condition, a, b), on_true, on_false)
        if isinstance(condition, (bool, np.bool_)):
            return on_true if condition else on_false
        xp = self.xp
        return tree.map(lambda a, b: xp.where(condition, a, b), on_true, on_false)

    def row_mask(self, value: Any) -> Any:
        """Which rows of `value` are data: bools of shape `(rows,)`.

        All are True unless it is an argument that was padded (`RunOptions(partial_batch="pad")`).

        Args:
          value: An argument of the replica function, or part of one: the object itself, not a value computed from it.

        Raises:
          TracingError: if it may be computed from an argument that was padded, so that its rows of data are unknown.
        """
        env = self._alive()
        xp = self.xp
        rows = xp.arange(len(value))
        padded = env.valid_rows if env.traced else ()
        for argument, count in padded:
            if argument is value:
                return rows < count
        if any(len(argument) == len(value) for argument, _ in padded):
            raise TracingError(
                "row_mask got an array that is not a padded argument itself, but has as many rows as one. Only for the "
                "argument is it known which rows are data: call ctx.row_mask(x) with the x that the function got, and "
                "use that mask for what is computed from it, too"
            )
        return rows >= 0

    def all_reduce(self, reduce_op: ReduceOpLike, value: Any, options: Options | None = None) -> Any:
        """Combines `value` over all replicas; every replica gets the result (as tf.distribute.ReplicaContext).

        Args:
          reduce_op: "SUM" or "MEAN" in any letter case. A mean of integers is float64.
          value: An array, or a nested structure of arrays and IndexedSlices; same shapes and dtypes on all replicas.
          options: Packing, deadline and implementation of this collective.

        Returns:
          The structure with each array combined; rows of IndexedSlices are concatenated, duplicates kept.

        Raises:
          CollectiveMismatch: if replicas make different calls.
          ValueError: if `reduce_op` is unknown.

        >>> def step():
        ...     ctx = wb.distribute.get_replica_context()
        ...     return ctx.all_reduce("sum", np.array([1.0, ctx.replica_id_in_sync_group]))
        >>> strategy.run(step).values[0]
        array([2., 1.])
        """
        env = self._env
        if env is None or get_ident() != self._thread:
            self._refuse()
        op = collective_name(reduce_op)
        if options is not None:
            checked_options(options)
        site = call_site(sys._getframe(1))
        strategy = self.strategy
        if numerics.thread.place:
            numerics.check(value, f"what goes into all_reduce at {site}")
        if strategy.merges_reductions:  # a user's CrossDeviceOps decides how
            return self.merge_call(_reduce_by_ops, (value,), {"op": op, "options": options})
        # The fast path for a single array, by far the most common case.
        if hasattr(value, "shape") and not isinstance(value, IndexedSlices):
            return strategy.all_reduce_arrays(env.communicator, [value], Reduction(op, site, options))[0]
        leaves, spec = tree.flatten(value, is_leaf=_is_variable)
        dense = [
            as_array(leaf) if is_python_number(leaf) else leaf
            for leaf in leaves
            if not isinstance(leaf, IndexedSlices)
        ]
        request = Reduction(op, site, options, nesting=_nesting(spec))
        combined = iter(strategy.all_reduce_arrays(env.communicator, dense, request) if dense else ())
        results = [
            all_reduce_slices(env, leaf, op, site, options)
            if isinstance(leaf, IndexedSlices)
            else next(combined)
            for leaf in leaves
        ]
        return tree.unflatten(spec, results)

    def all_gather(self, value: Any, axis: int, options: Options | None = None) -> Any:
        """Concatenates every replica's `value` along `axis`, in replica order; every replica gets the result.

        Args:
          value: An array with at least one dimension, or a nested structure of them. Shapes may differ along `axis`.
            An array without elements along it fits any other, such as the batch of a replica that has run out of data,
            in which unknown dimensions are 0.
          axis: The dimension; negative ones count from the end.
          options: Packing, deadline and implementation of this collective.

        Raises:
          InvalidArgumentError: for scalars and an axis that does not exist.
          NotImplementedError: for IndexedSlices.
          CollectiveMismatch: if replicas differ in dtype, or, with elements along `axis`, in rank or another dimension.

        >>> def step():
        ...     ctx = wb.distribute.get_replica_context()
        ...     return ctx.all_gather(np.full(2, ctx.replica_id_in_sync_group), axis=0)
        >>> strategy.run(step).values[1]
        array([0, 0, 1, 1])
        """
        env = self._alive()
        site = call_site(sys._getframe(1))
        leaves, spec = tree.flatten(value, is_leaf=_is_variable)
        axis = whole_axis(axis)
        for leaf in leaves:
            checked_axis(leaf, axis)  # check all before the first one communicates
        chosen = checked_options(options) or self.strategy.communication_options
        gathered = all_gather_leaves(env.communicator, leaves, axis, site, chosen, _nesting(spec))
        return tree.unflatten(spec, gathered)

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Pauses all replicas, calls `merge_fn(strategy, *args, **kwargs)` once in cross-replica context.

        Args:
          merge_fn: Gets the strategy, then the arguments with a `PerReplica` for each leaf. In a traced function it
            runs once, during tracing, and its reductions become collectives of the program.
          args: Positional arguments, in any nested structure.
          kwargs: Keyword arguments.

        Returns:
          The result of `merge_fn`, with this replica's component of distributed values in it.

        Raises:
          RuntimeError: if not every replica calls it, or it is called inside a merge function.

        >>> def step():
        ...     ctx = wb.distribute.get_replica_context()
        ...     return ctx.merge_call(lambda strategy, x: strategy.reduce("SUM", x, axis=None), args=(2,))
        >>> [int(value) for value in strategy.run(step).values]
        [4, 4]
        """
        env = self._alive()
        args = checked_arguments(args, kwargs, _MERGE)
        function(merge_fn, f"{_MERGE}: merge_fn")
        if not env.traced:
            return env.merge(merge_fn, args, kwargs or {})
        thread, self._thread = self._thread, -1  # the merge function does not belong to the replica
        try:
            return traced_merge.run(self.strategy, env, merge_fn, args, kwargs or {})
        finally:
            self._thread = thread

    def _alive(self) -> ReplicaEnv:
        env = self._env
        if env is None or get_ident() != self._thread:
            self._refuse()
        return env

    def _refuse(self) -> NoReturn:
        if self._env is None:
            raise RuntimeError(
                "this ReplicaContext was kept after its replica function had ended; call get_replica_context() in the "
                "function that uses it"
            )
        raise RuntimeError(
            "a ReplicaContext was used on another thread than that of its replica function (or inside its merge "
            "function); collectives must be called by the replica's own thread"
        )

    def __repr__(self) -> str:
        if self._env is None:
            return "<ReplicaContext: ended>"
        return f"<ReplicaContext: replica {self._env.rank} of {self._env.size}, {self._env.device.short}>"


class DefaultReplicaContext(ReplicaContext):
    """The context outside all strategies: one replica, whose collectives return their input."""

    __slots__ = ()

    def __init__(self, strategy: DescribedStrategy) -> None:
        self.strategy = strategy

    @property
    def replica_id_in_sync_group(self) -> int:
        """Always 0."""
        return 0

    @property
    def num_replicas_in_sync(self) -> int:
        """Always 1."""
        return 1

    @property
    def xp(self) -> Any:
        """NumPy."""
        return np

    def select(self, condition: Any, on_true: Any, on_false: Any) -> Any:
        """As `ReplicaContext.select`."""
        return tree.map(lambda a, b: np.where(condition, a, b), on_true, on_false)

    def row_mask(self, value: Any) -> Any:
        """All rows."""
        return np.ones(len(value), bool)

    @property
    def devices(self) -> tuple[str, ...]:
        """The host."""
        return tuple(device.string for device in self.strategy.devices)

    def all_reduce(self, reduce_op: ReduceOpLike, value: Any, options: Options | None = None) -> Any:
        """Returns `value`, with arrays in place of Python numbers, because there is one replica.

        Raises:
          ValueError: if `reduce_op` is unknown.
        """
        as_reduce_op(reduce_op)
        checked_options(options)
        return tree.map(lambda leaf: as_array(leaf) if is_python_number(leaf) else leaf, value)

    def all_gather(self, value: Any, axis: int, options: Options | None = None) -> Any:
        """Returns `value`, after the checks of `ReplicaContext.all_gather`."""
        axis = whole_axis(axis)
        checked_options(options)
        tree.map(lambda leaf: checked_axis(leaf, axis), value)
        return value

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Calls `merge_fn(strategy, *args, **kwargs)` in cross-replica context."""
        args = checked_arguments(args, kwargs, _MERGE)
        function(merge_fn, f"{_MERGE}: merge_fn")
        with contexts.cross_replica(self.strategy, "merge"):
            return merge_fn(self.strategy, *args, **(kwargs or {}))

    def __repr__(self) -> str:
        return "<ReplicaContext: default>"


class ReplicaProgram:
    """A user's function as the program that each replica runs, with its ReplicaContext.

    Attributes:
      strategy: The strategy that runs it.
      fn: The user's function.
      observation: How its computations are checked and dumped, or None.
    """

    __slots__ = ("fn", "observation", "strategy")
    travels_as_parts = True

    def __init__(
        self, strategy: DescribedStrategy, fn: Callable[..., Any], observation: Observation | None = None
    ) -> None:
        self.strategy = strategy
        self.fn = fn
        self.observation = observation

    def __call__(self, env: ReplicaEnv, *args: Any, **kwargs: Any) -> Any:
        """One run of the function on one replica."""
        if self.strategy.library == "cupy":  # a replica computes where its arrays are
            args, kwargs = tree.map(sent, (args, kwargs))
        observation = self.observation
        numerics.follow(observation is not None and observation.checked)
        context = ReplicaContext(self.strategy, env)
        thread = contexts.thread
        outer = thread.context
        thread.context = context
        try:
            if observation is not None:
                text = f"on replica {env.rank} at step {env.step}"
                what = "what the replica function returned"
                place = Place(text, what, env.device.host, env.rank, env.step)
                return observation.call(self.fn, args, kwargs, place)
            return self.fn(*args, **kwargs)
        except TypeError as error:
            # No other frame, so the call itself failed.
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                error.args = (f"{error}{signature_text(self.fn)}",)
            raise
        finally:
            thread.context = outer
            context._env = None

    def __reduce__(self) -> tuple[Any, ...]:
        return ReplicaProgram, (self.strategy, self.fn, self.observation)


def _is_variable(value: Any) -> bool:
    # In structures, variables are parts without leaves, so that `run` can return them; here they are arrays.
    return isinstance(value, Variable)


def _nesting(spec: tree.Spec) -> str:
    text = _nestings.get(spec)
    if text is None:
        if len(_nestings) >= _SPEC_LIMIT:
            _nestings.clear()
        text = _nestings[spec] = str(spec).removeprefix("PyTreeSpec(").removesuffix(")")
    return text


def _reduce_by_ops(strategy: DescribedStrategy, value: Any, *, op: Any, options: Any) -> Any:
    """Merge function of `all_reduce` with a user's CrossDeviceOps."""
    leaves, spec = tree.flatten(value)
    chosen = options.values[0] if options is not None else None
    ops = strategy.cross_device_ops
    assert ops is not None
    combined = ops.batch_reduce(as_reduce_op(op.values[0]), [(leaf, leaf) for leaf in leaves], chosen)
    return tree.unflatten(spec, list(combined))
