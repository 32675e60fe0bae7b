"""The strategies of TensorFlow 1.15: today's strategies, with the older methods in addition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from workbench.arguments import count
from workbench.compat.modern_spelling import tell
from workbench.compat.v1.input_iterator import InputIterator
from workbench.compat.whole_steps import whole_steps
from workbench.data import Dataset
from workbench.data.context import InputContext
from workbench.distribute.arrays.reduce_op import ReduceOpLike
from workbench.distribute.input.distributed_dataset import DistributedDataset
from workbench.distribute.strategies import (
    central_storage,
    mirrored,
    multi_worker,
    one_device,
    parameter_server,
    tpu,
)
from workbench.distribute.strategies.device_assignment import DeviceAssignment
from workbench.distribute.strategies.strategy import Strategy
from workbench.distribute.value_context import RunOptions
from workbench.errors import InvalidArgumentError


class StrategyV1(Strategy):
    """The additional methods of TensorFlow 1.15 (as tf.compat.v1.distribute.Strategy)."""

    def experimental_run_v2(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        options: RunOptions | None = None,
    ) -> Any:
        """Calls `fn` once on every replica; see `run` for the arguments."""
        tell("experimental_run_v2(fn, args)", "strategy.run(fn, args)")
        return self.run(fn, args, kwargs, options)

    def experimental_run(self, fn: Callable[..., Any], input_iterator: InputIterator | None = None) -> Any:
        """Calls `fn` once on every replica, with the replica's part of the iterator's next element if there is one.

        Raises:
          OutOfRangeError: if the iterator is at its end.
        """
        tell("experimental_run(fn, iterator)", "strategy.run(fn, args=(next(iterator),))")
        return self.run(fn, () if input_iterator is None else (input_iterator.get_next(),))

    def reduce(self, reduce_op: ReduceOpLike, value: Any, axis: int | Sequence[int] | None = None) -> Any:
        """See `Strategy.reduce`; here, `axis` is optional.

        Args:
          reduce_op: See `Strategy.reduce`.
          value: Likewise.
          axis: Likewise.
        """
        return super().reduce(reduce_op, value, axis)

    def make_dataset_iterator(self, dataset: Dataset) -> InputIterator:
        """An iterator over a dataset whose batches of the global size are split among the replicas."""
        tell("make_dataset_iterator(dataset)", "iter(strategy.distribute_dataset(dataset))")
        return InputIterator(self.distribute_dataset(dataset))

    def make_input_fn_iterator(
        self, input_fn: Callable[[InputContext], Dataset], replication_mode: Any = None
    ) -> InputIterator:
        """An iterator over the dataset that `input_fn(InputContext)` returns, one element per replica and step.

        It ends when there is no longer an element for each replica of a host.

        Args:
          input_fn: Called once per host.
          replication_mode: `InputReplicationMode.PER_WORKER`, the only one supported.
        """
        tell(
            "make_input_fn_iterator(input_fn)",
            "iter(strategy.distribute_datasets_from_function(input_fn))",
        )
        if replication_mode is not None and getattr(replication_mode, "name", None) != "PER_WORKER":
            raise InvalidArgumentError(
                f"make_input_fn_iterator calls the function once per host, got replication_mode={replication_mode!r}; "
                f"use strategy.distribute_datasets_from_function(input_fn, options=wb.distribute.InputOptions(...))"
            )

        def made(context: InputContext) -> Any:
            return whole_steps(input_fn(context), context.num_replicas_in_sync // context.num_input_pipelines)

        return InputIterator(self.distribute_datasets_from_function(made))

    def make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Dataset:
        """A dataset of the rows of arrays; `session` has no effect."""
        return super().make_numpy_dataset(numpy_input)

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Dataset:
        """A dataset of the rows of arrays; `session` has no effect."""
        tell(
            "experimental_make_numpy_dataset(arrays)",
            "wb.data.Dataset.from_tensor_slices(arrays)",
        )
        return super().make_numpy_dataset(numpy_input)

    def experimental_distribute_dataset(self, dataset: Dataset, options: Any = None) -> DistributedDataset:
        """As `distribute_dataset`."""
        tell("experimental_distribute_dataset(dataset)", "strategy.distribute_dataset(dataset)")
        return self.distribute_dataset(dataset, options)

    def experimental_distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Dataset], options: Any = None
    ) -> DistributedDataset:
        """As `distribute_datasets_from_function`."""
        tell(
            "experimental_distribute_datasets_from_function(dataset_fn)",
            "strategy.distribute_datasets_from_function(dataset_fn)",
        )
        return self.distribute_datasets_from_function(dataset_fn, options)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """As `local_results`."""
        tell("experimental_local_results(value)", "strategy.local_results(value)")
        return self.local_results(value)

    def unwrap(self, value: Any) -> tuple[Any, ...]:
        """As `local_results`."""
        tell("unwrap(value)", "strategy.local_results(value)")
        return self.local_results(value)

    def colocate_vars_with(self, colocate_with_variable: Any) -> AbstractContextManager[None]:
        """As `extended.colocate_vars_with`."""
        tell("colocate_vars_with(variable)", "strategy.extended.colocate_vars_with(variable)")
        return self.extended.colocate_vars_with(colocate_with_variable)

    def configure(
        self,
        session_config: Any = None,
        cluster_spec: Any = None,
        task_type: str | None = None,
        task_id: int | None = None,
    ) -> None:
        """Does nothing: there are no sessions, and a strategy knows its cluster when it is created.

        Args:
          session_config: Without effect.
          cluster_spec: Without effect.
          task_type: Without effect.
          task_id: Without effect.
        """
        tell("configure(...)", "nothing: the strategy knows its cluster")

    def update_config_proto(self, config_proto: Any) -> Any:
        """Returns its argument: there are no sessions to configure."""
        tell("update_config_proto(config)", "nothing: there are no sessions")
        return config_proto


class MirroredStrategy(StrategyV1, mirrored.MirroredStrategy):
    """`wb.MirroredStrategy` with the methods of TensorFlow 1.15 (as tf.compat.v1.distribute.MirroredStrategy)."""


class OneDeviceStrategy(StrategyV1, one_device.OneDeviceStrategy):
    """`wb.OneDeviceStrategy` with the methods of TensorFlow 1.15 (as tf.compat.v1.distribute.OneDeviceStrategy)."""


class CentralStorageStrategy(StrategyV1, central_storage.CentralStorageStrategy):
    """As tf.compat.v1.distribute.experimental.CentralStorageStrategy."""


class MultiWorkerMirroredStrategy(StrategyV1, multi_worker.ExperimentalMultiWorkerMirroredStrategy):
    """As tf.compat.v1.distribute.experimental.MultiWorkerMirroredStrategy."""


class ParameterServerStrategy(StrategyV1, parameter_server.ParameterServerStrategy):
    """As tf.compat.v1.distribute.experimental.ParameterServerStrategy, for a single program, the notebook's.

    `run` makes a step where it is called, and reads and updates variables on the servers; variables are not split, and
    are placed on the servers in turn. In TensorFlow 1, each worker ran the program itself; here, a `ClusterCoordinator`
    sends functions to the workers, which also run at their own pace.

    Args:
      cluster_resolver: How many tasks the jobs "worker" and "ps" have; None takes all devices of the cluster, the last
        one as a server. If no cluster is connected, the strategy attaches to the one that the tasks have formed.

    Raises:
      FailedPreconditionError: if the connected cluster has other tasks.
      ValueError: if there are too few devices, or the resolver names another job, or no worker or server.
    """

    def __init__(self, cluster_resolver: Any = None) -> None:
        super().__init__(cluster_resolver)


class TPUStrategy(StrategyV1, tpu.TPUStrategy):
    """As tf.compat.v1.distribute.experimental.TPUStrategy of TensorFlow 1.15.

    Attributes:
      steps_per_run: The argument of this name; programs use it to count their steps.

    Args:
      tpu_cluster_resolver: Describes the TPU to code that queries it. A connected cluster must have its tasks.
      steps_per_run: How many steps a session's run made; here, a `run` is one step.
      device_assignment: Which cores the replicas run on; None for all of them.

    Raises:
      FailedPreconditionError: if the connected cluster has other tasks than the resolver.
      InvalidArgumentError: if `steps_per_run` is not a positive integer.
    """

    def __init__(
        self,
        tpu_cluster_resolver: Any = None,
        steps_per_run: int | None = None,
        device_assignment: DeviceAssignment | None = None,
    ) -> None:
        if steps_per_run is not None:
            tell(
                "TPUStrategy(steps_per_run=n)",
                "a loop of n calls of strategy.run; wb.function compiles the step",
            )
        self.steps_per_run = 1 if steps_per_run is None else count(steps_per_run, "steps_per_run")
        super().__init__(tpu_cluster_resolver, device_assignment)
