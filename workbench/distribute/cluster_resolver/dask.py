"""DaskClusterResolver: the tasks of an existing Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from workbench.distribute.cluster_resolver.cluster_spec import ClusterSpec
from workbench.distribute.cluster_resolver.resolver import ClusterResolver, with_layer

_Answer = TypeVar("_Answer")


class DaskClusterResolver(ClusterResolver):
    """Finds the tasks of a Dask cluster by the names of its workers.

    A worker named "ps-0" is parameter server 0, as `workbench join` names them, or `dask worker --name ps-0`; those
    with other names are workers, numbered in the order of their names. `wb.connect(resolver)` attaches to the cluster.

    Args:
      cluster: The address of its scheduler, the file of `dask scheduler --scheduler-file`, a `distributed.Client`, or a
        Dask cluster object such as `dask_jobqueue.SLURMCluster`.
      rpc_layer: The beginning of addresses, such as "grpc".

    Raises:
      InvalidArgumentError: if `cluster` is a file that no scheduler has written.
    """

    def __init__(self, cluster: Any, *, rpc_layer: str | None = None) -> None:
        self._cluster = _address_of(cluster)
        self.rpc_layer = rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The current tasks.

        Raises:
          UnavailableError: if the scheduler does not answer.
        """
        from workbench.runtime.joining.existing import tasks_of_workers

        return ClusterSpec(self._ask(tasks_of_workers))

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of a task if job and number are given, else the scheduler's; see `ClusterResolver`."""
        if task_type is not None and task_id is not None:
            return self.address_of(task_type, task_id, rpc_layer or self.rpc_layer)
        address = str(self._ask(lambda client: client.scheduler.address)).partition("://")[2]
        return with_layer(address, rpc_layer or self.rpc_layer)

    def dask_cluster(self) -> Any:
        """The given cluster, or the address in the given file."""
        return self._cluster

    def _ask(self, question: Callable[[Any], _Answer]) -> _Answer:
        from workbench.runtime.attach import asking_client

        with asking_client(self._cluster) as client:
            return question(client)


def _address_of(cluster: Any) -> Any:
    if isinstance(cluster, os.PathLike) or (isinstance(cluster, str) and Path(cluster).suffix == ".json"):
        from workbench.runtime.joining.existing import scheduler_file_address

        return scheduler_file_address(Path(cluster))
    return cluster
