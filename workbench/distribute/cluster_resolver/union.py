"""UnionResolver: the clusters of several resolvers as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.distribute.cluster_resolver.cluster_spec import ClusterSpec, Tasks
from workbench.distribute.cluster_resolver.resolver import ClusterResolver, with_layer


class UnionResolver(ClusterResolver):
    """Merges the clusters of resolvers (as tf.distribute.cluster_resolver.UnionResolver).

    Tasks of one job are numbered consecutively, in the order of the resolvers; if one of them numbers its tasks itself,
    all keep their numbers. Everything else comes from the first resolver.

    Args:
      args: Resolvers.
      rpc_layer: The beginning of addresses, instead of the first one's.
      task_type: The job of this process, instead of the first one's.
      task_id: Its number, instead of the first one's.

    Raises:
      ValueError: if there is no resolver, or an argument with another name.
      TypeError: if one is not a resolver.
    """

    def __init__(
        self,
        *args: ClusterResolver,
        rpc_layer: str | None = None,
        task_type: str | None = None,
        task_id: int | None = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise ValueError(
                f"UnionResolver takes rpc_layer, task_type and task_id by name, got {', '.join(unknown)}"
            )
        if not args:
            raise ValueError("UnionResolver takes at least one resolver")
        for resolver in args:
            if not isinstance(resolver, ClusterResolver):
                raise TypeError(
                    f"UnionResolver takes resolvers, got {type(resolver).__name__}: {resolver!r:.80}"
                )
        self._resolvers = args
        self._task_type = task_type
        self._task_id = task_id
        self._rpc_layer = rpc_layer

    # As in TensorFlow, 0 and "" count as "not given", because programs rely on the first resolver's number.

    @property
    def task_type(self) -> str | None:
        """The job of this process."""
        return self._task_type or self._resolvers[0].task_type

    @task_type.setter
    def task_type(self, task_type: str | None) -> None:
        self._task_type = task_type

    @property
    def task_id(self) -> int | None:
        """The number of this process in its job."""
        return self._task_id or self._resolvers[0].task_id

    @task_id.setter
    def task_id(self, task_id: int | None) -> None:
        self._task_id = task_id

    @property
    def rpc_layer(self) -> str | None:
        """The beginning of addresses."""
        return self._rpc_layer or self._resolvers[0].rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: str | None) -> None:
        self._rpc_layer = rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The merged cluster.

        Raises:
          KeyError: if two resolvers give one number of a job to two tasks.
        """
        found: dict[str, list[Tasks]] = {}
        for resolver in self._resolvers:
            for job, tasks in resolver.cluster_spec().as_dict().items():
                found.setdefault(job, []).append(tasks)
        return ClusterSpec({job: _merged(job, parts) for job, parts in found.items()})

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of a task if job and number are given, else the first resolver's; see `ClusterResolver`."""
        if task_type is not None and task_id is not None:
            return with_layer(
                self.cluster_spec().task_address(task_type, task_id), rpc_layer or self._rpc_layer
            )
        return self._resolvers[0].master(rpc_layer=rpc_layer)

    @property
    def environment(self) -> str | None:
        """The environment in which this process runs."""
        return self._resolvers[0].environment

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> Mapping[str, int]:
        """How many accelerators of each kind a task has; see `ClusterResolver`."""
        return self._resolvers[0].num_accelerators(task_type, task_id, config_proto)


def _merged(job: str, parts: Sequence[Tasks]) -> Tasks:
    """Merges the tasks of a job from several resolvers."""
    lists = [part for part in parts if isinstance(part, list)]
    if len(lists) == len(parts):
        return [address for addresses in lists for address in addresses]
    merged: dict[int, str] = {}
    for part in parts:
        numbered = dict(enumerate(part)) if isinstance(part, list) else part
        if twice := sorted(merged.keys() & numbered.keys()):
            number = twice[0]
            raise KeyError(
                f"job {job!r} has two tasks of the number {number}: {[merged[number], numbered[number]]}"
            )
        merged |= numbered
    return merged
