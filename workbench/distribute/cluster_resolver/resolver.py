"""ClusterResolver: the interface of all resolvers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from workbench.distribute.cluster_resolver.cluster_spec import ClusterSpec
from workbench.errors import WorkbenchError
from workbench.runtime.joining.roster import scheduler_of
from workbench.runtime.process import gpus


class ClusterResolver(ABC):
    """Finds the tasks of a cluster in the environment (as tf.distribute.cluster_resolver.ClusterResolver).

    A cluster may change, so nothing is cached: every call queries the environment again.

    Attributes:
      task_type: The job that this process belongs to, such as "worker"; None if unknown.
      task_id: Its number in that job; None if unknown.
      rpc_layer: The beginning of the addresses of `master`, such as "grpc"; None for nothing.
    """

    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None

    @abstractmethod
    def cluster_spec(self) -> ClusterSpec:
        """The current jobs of the cluster and the addresses of their tasks."""

    @abstractmethod
    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of the leading task, or of the given one.

        Args:
          task_type: The job of the task.
          task_id: Its number.
          rpc_layer: The beginning of the address, instead of the resolver's.

        Returns:
          "grpc://host:port"; "" if unknown.

        Raises:
          InvalidArgumentError: if there is no such task.
        """

    def dask_cluster(self) -> Any:
        """The target of `wb.connect(resolver)`: the scheduler that `workbench join` starts at the leading task.

        Returns:
          Its address, such as "tls://10.0.0.5:2222"; from a `DaskClusterResolver`, the cluster that it was given.

        Raises:
          InvalidArgumentError: if the cluster has neither chief 0 nor worker 0.
          UnavailableError: if the name of its host cannot be resolved here.
        """
        return scheduler_of(self.cluster_spec())

    @property
    def environment(self) -> str | None:
        """The environment in which this process runs, or ""."""
        return ""

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> Mapping[str, int]:
        """How many accelerators of each kind a task has.

        Args:
          task_type: Not used, because all tasks are alike.
          task_id: Not used, because all tasks are alike.
          config_proto: Accepted for compatibility, without effect.

        Returns:
          Kind to number on this machine, such as `{"GPU": 2}`; empty without accelerators.
        """
        count = len(gpus.visible())
        return {"GPU": count} if count else {}

    def address_of(self, task_type: str, task_id: int, rpc_layer: str | None) -> str:
        """The address of a task, beginning with `rpc_layer`.

        Args:
          task_type: The job, such as "worker".
          task_id: Number of the task within the job.
          rpc_layer: A scheme such as "grpc"; None or "" for none.
        """
        return with_layer(self.cluster_spec().task_address(task_type, task_id), rpc_layer)

    def __repr__(self) -> str:
        # The cluster's tasks would be worth showing, but looking them up may need the network.
        try:
            job, number = self.task_type, self.task_id
        except (WorkbenchError, ValueError) as error:
            return f"<{type(self).__name__}: {error}>"
        known = job is not None and number is not None
        return (
            f"<{type(self).__name__}: this process is {f'{job} {number}' if known else 'none of the tasks'}>"
        )


def address_or_own(
    resolver: ClusterResolver, task_type: str | None, task_id: int | None, rpc_layer: str | None
) -> str:
    """The address of a task, by default of this process's task; "" if that is unknown.

    Args:
      resolver: The resolver that knows the tasks.
      task_type: See `ClusterResolver.master`.
      task_id: See `ClusterResolver.master`.
      rpc_layer: See `ClusterResolver.master`.
    """
    job = resolver.task_type if task_type is None else task_type
    index = resolver.task_id if task_id is None else task_id
    if job is None or index is None:
        return ""
    return resolver.address_of(job, index, rpc_layer or resolver.rpc_layer)


def checked_resolver(resolver: Any, strategy: str, argument: str = "cluster_resolver") -> Any:
    """Returns a strategy's resolver, or None, if it has the right type.

    Args:
      resolver: The argument.
      strategy: The name of the strategy, for the error.
      argument: The name of the argument, for the error.

    Raises:
      TypeError: if it is neither a resolver nor None.
    """
    if isinstance(resolver, type) and hasattr(resolver, "cluster_spec"):
        raise TypeError(
            f"{strategy}: {argument} is a resolver, got the class {resolver.__name__}; write {resolver.__name__}(...)"
        )
    if resolver is None or hasattr(resolver, "cluster_spec"):
        return resolver
    raise TypeError(
        f"{strategy}: {argument} is one of wb.distribute.cluster_resolver, got {type(resolver).__name__}: "
        f"{resolver!r:.80}; SimpleClusterResolver takes a ClusterSpec"
    )


def with_layer(address: str, rpc_layer: str | None) -> str:
    """`address` with "grpc://" or another layer in front."""
    return f"{rpc_layer}://{address}" if rpc_layer else address
