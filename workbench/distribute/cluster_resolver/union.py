"""UnionResolver: the clusters of several resolvers as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.distribute.cluster_resolver.cluster_spec import ClusterSpec, Tasks
from workbench.distribute.cluster_resolver.resolver import ClusterResolver, with_layer


class UnionResolver(ClusterResolver):
    """Merges the clusters of resolvers (as tf.distribute.cluster_resolver.UnionResolver).

    Tasks of one job are numbered on, in the order of the resolvers; where one of them numbers its tasks itself, all
    keep their numbers. Everything else is what the first resolver says.

    Args:
      args: Resolvers.
      rpc_layer: The beginning of addresses, instead of the first one's.
      task_type: The job of this process, in the place of the first one's.
      task_id: Its number, in the place of the first one's.

    Raises:
      ValueError: if there is no resolver.
      TypeError: if something else is among them.
    """

    def __init__(
        self,
        *args: ClusterResolver,
        rpc_layer: str | None = None,
        task_type: str | None = None,
        task_id: int | None = None,
    ) -> None:
        if not args:
            raise ValueError("UnionResolver takes at least one resolver")
        for resolver in args:
            if not isinstance(resolver, ClusterResolver):
                raise TypeError(
                    f"UnionResolver takes resolvers, got {type(resolver).__name__}: {resolver!r:.80}"
                )
        self._resolvers = args
        self._rpc_layer = rpc_layer
        # The reference takes 0 and "" for "not given"; so do we, as programs rely on the first resolver's number.
        self.task_type = task_type or args[0].task_type
        self.task_id = task_id or args[0].task_id
        self.rpc_layer = rpc_layer or args[0].rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The merged cluster.

        Raises:
          KeyError: if two resolvers give one number of a job to two tasks.
        """
        merged: dict[str, Tasks] = {}
        for resolver in self._resolvers:
            for job, tasks in resolver.cluster_spec().as_dict().items():
                merged[job] = _both(job, merged[job], tasks) if job in merged else tasks
        return ClusterSpec(merged)

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
        """Where this process runs."""
        return self._resolvers[0].environment

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> Mapping[str, int]:
        """How many accelerators of each kind a task has; see `ClusterResolver`."""
        return self._resolvers[0].num_accelerators(task_type, task_id, config_proto)


def _both(job: str, first: Tasks, second: Tasks) -> Tasks:
    if isinstance(first, list) and isinstance(second, list):
        return [*first, *second]
    numbered = [dict(enumerate(tasks)) if isinstance(tasks, list) else tasks for tasks in (first, second)]
    if twice := sorted(numbered[0].keys() & numbered[1].keys()):
        raise KeyError(
            f"job {job!r} has two tasks of the number {twice[0]}: {[n[twice[0]] for n in numbered]}"
        )
    return numbered[0] | numbered[1]
