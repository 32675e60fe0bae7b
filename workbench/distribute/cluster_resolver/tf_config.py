"""TFConfigClusterResolver: the cluster that the environment variable TF_CONFIG describes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from workbench.distribute.cluster_resolver.cluster_spec import ClusterSpec
from workbench.distribute.cluster_resolver.resolver import ClusterResolver, with_layer
from workbench.errors import InvalidArgumentError

VARIABLE = "TF_CONFIG"


class TFConfigClusterResolver(ClusterResolver):
    """Reads TF_CONFIG at every call (as tf.distribute.cluster_resolver.TFConfigClusterResolver).

    The variable is JSON such as `{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}`,
    optionally with "rpc_layer" and "session_master". A missing variable is an empty cluster.

    Args:
      task_type: The job of this process, instead of the variable's.
      task_id: Its number, instead of the variable's.
      rpc_layer: The beginning of addresses, instead of the variable's.
      environment: The environment in which it runs.
    """

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        self._task_type = task_type
        self._task_id = task_id
        self._rpc_layer = rpc_layer
        self._environment = environment

    @property
    def task_type(self) -> str | None:
        """The job of this process."""
        job = _task().get("type") if self._task_type is None else self._task_type
        return None if job is None else str(job)

    @task_type.setter
    def task_type(self, task_type: str | None) -> None:
        self._task_type = task_type

    @property
    def task_id(self) -> int | None:
        """The number of this process in its job."""
        index = _task().get("index") if self._task_id is None else self._task_id
        if index is None:
            return None
        try:
            return int(index)
        except (TypeError, ValueError, OverflowError):
            where = VARIABLE if self._task_id is None else type(self).__name__
            raise InvalidArgumentError(f"{where}: the task's index is a number, got {index!r:.80}") from None

    @task_id.setter
    def task_id(self, task_id: int | None) -> None:
        self._task_id = task_id

    @property
    def rpc_layer(self) -> str | None:
        """The beginning of addresses."""
        return self._rpc_layer if self._rpc_layer is not None else _config().get("rpc_layer")

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: str | None) -> None:
        self._rpc_layer = rpc_layer

    @property
    def environment(self) -> str | None:
        """The environment in which this process runs."""
        return self._environment

    def cluster_spec(self) -> ClusterSpec:
        """The cluster; empty if the variable is missing or names none.

        Raises:
          ValueError: if the variable is not JSON.
          TypeError: if its cluster is not a mapping of jobs.
        """
        return ClusterSpec(_config().get("cluster", {}))

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The variable's "session_master", else the address of a task (by default this one); see `ClusterResolver`."""
        if (leader := _config().get("session_master")) is not None:
            return str(leader)
        spec = self.cluster_spec()
        if not spec or (len(spec.jobs) == 1 and len(spec.job_tasks(spec.jobs[0])) == 1):
            return ""  # a lone task leads no others
        job = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        if job is None or index is None:
            raise InvalidArgumentError(
                f"{VARIABLE} names no task: add "
                '"task": {"type": "worker", "index": 0}, or pass task_type and task_id'
            )
        layer = self.rpc_layer if rpc_layer is None else rpc_layer
        return with_layer(spec.task_address(job, index), layer)


def _config() -> Mapping[str, Any]:
    text = os.environ.get(VARIABLE, "")
    if not text:
        return {}
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        error.msg = f"{VARIABLE} is not JSON: {error.msg}"
        error.args = (f"{VARIABLE} is not JSON: {error.args[0]}",)
        raise
    return config if isinstance(config, dict) else {}  # as in TensorFlow, anything else is an empty cluster


def _task() -> Mapping[str, Any]:
    task = _config().get("task", {})
    if not isinstance(task, dict):
        raise InvalidArgumentError(f'{VARIABLE}: "task" is a dict with "type" and "index", got {task!r:.80}')
    return task
