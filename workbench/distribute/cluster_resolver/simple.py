"""SimpleClusterResolver: a cluster that the program itself defines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.distribute.cluster_resolver.cluster_spec import ClusterSpec
from workbench.distribute.cluster_resolver.resolver import ClusterResolver, with_layer


class SimpleClusterResolver(ClusterResolver):
    """Returns the given cluster (as tf.distribute.cluster_resolver.SimpleClusterResolver).

    Args:
      cluster_spec: The cluster.
      master: The address of the leading task.
      task_type: The job of this process.
      task_id: Its number.
      environment: The environment in which it runs.
      num_accelerators: Accelerators of each task by kind; those of this machine if None.
      rpc_layer: The beginning of addresses, such as "grpc".

    Raises:
      TypeError: if `cluster_spec` is not a `ClusterSpec`, `master` not a string, or `num_accelerators` not a dict.
    """

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: Mapping[str, int] | None = None,
        rpc_layer: str | None = None,
    ) -> None:
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError(
                f"SimpleClusterResolver takes a ClusterSpec, got {type(cluster_spec).__name__}; write "
                'wb.distribute.ClusterSpec({"worker": [...]})'
            )
        if not isinstance(master, str):
            raise TypeError(f"SimpleClusterResolver: master is an address, got {type(master).__name__}")
        if not (num_accelerators is None or isinstance(num_accelerators, Mapping)):
            raise TypeError(
                f"SimpleClusterResolver: num_accelerators is a dict from kind to number, got {num_accelerators!r}; "
                f'write {{"GPU": {num_accelerators!r}}}'
            )
        self._cluster_spec = cluster_spec
        self._master = master
        self._environment = environment
        self._num_accelerators = num_accelerators
        self.task_type = task_type
        self.task_id = task_id
        self.rpc_layer = rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The cluster."""
        return self._cluster_spec

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of a task if job and number are given, else that of the leading task; see `ClusterResolver`."""
        layer = rpc_layer or self.rpc_layer
        if task_type is not None and task_id is not None:
            return self.address_of(task_type, task_id, layer)
        return with_layer(self._master, layer)

    def __repr__(self) -> str:
        return f"<SimpleClusterResolver: {self._cluster_spec!r}>"

    @property
    def environment(self) -> str:
        """The environment in which this process runs."""
        return self._environment

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> Mapping[str, int]:
        """How many accelerators of each kind a task has; see `ClusterResolver`."""
        if self._num_accelerators is None:
            return super().num_accelerators()
        return dict(self._num_accelerators)
