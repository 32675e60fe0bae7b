"""The tasks of a future cluster, and which of them this process is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from workbench.errors import InvalidArgumentError
from workbench.runtime.deploy.tasks import Task, chief_of
from workbench.runtime.joining.addresses import host_and_port, ip_among, text_of


class Spec(Protocol):
    """A `wb.distribute.ClusterSpec`."""

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""

    def task_indices(self, job_name: str) -> list[int]:
        """The numbers of a job's tasks."""

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task."""


@runtime_checkable
class Resolver(Protocol):
    """A `wb.distribute.cluster_resolver.ClusterResolver`, as far as `connect` asks it."""

    def cluster_spec(self) -> Any:
        """Its tasks, a `Spec`."""

    def dask_cluster(self) -> Any:
        """What to attach to."""


@dataclass(frozen=True, slots=True)
class Roster:
    """What a process has to know to join.

    Attributes:
      task: Which task it is.
      chief: Which task starts the scheduler.
      address: Where that listens, "host:port".
      tasks: All that shall join; empty if nobody knows.
      peers: Hosts of the tasks.
      neighbours: How many tasks are on this host.
    """

    task: Task
    chief: Task
    address: str
    tasks: tuple[Task, ...] = ()
    peers: tuple[str, ...] = ()
    neighbours: int = 1

    @property
    def leads(self) -> bool:
        """Whether this task starts the scheduler."""
        return self.task == self.chief

    @classmethod
    def of(cls, spec: Spec, task: Task) -> Roster:
        """That of a task of a cluster. An evaluator need not be among its tasks, as in TF_CONFIG.

        Raises:
          InvalidArgumentError: if the cluster has no such task, or none that could lead.
        """
        tasks = tasks_of(spec)
        if task not in tasks and task.job != "evaluator":
            raise InvalidArgumentError(
                f"this task is {task}, and the cluster has {', '.join(map(str, tasks)) or 'no tasks'}"
            )
        chief = leader_of(tasks)
        hosts = [host_and_port(spec.task_address(each.job, each.index))[0] for each in tasks]
        neighbours = hosts.count(hosts[tasks.index(task)]) if task in tasks else 1
        return cls(
            task=task,
            chief=chief,
            address=spec.task_address(chief.job, chief.index),
            tasks=tasks,
            peers=tuple(dict.fromkeys(hosts)),
            neighbours=neighbours,
        )


@dataclass(frozen=True, slots=True)
class Formed:
    """The cluster that the tasks of a resolver form, as it has told.

    Attributes:
      tasks: Who takes part.
      address: What to attach to.
    """

    tasks: tuple[Task, ...]
    address: Any


def spec_of(resolver: Any) -> Any:
    """The cluster that a resolver names, a `Spec`. It may ask an environment, and take long.

    Raises:
      TypeError: if the resolver, which may be the user's own, gives something else.
    """
    spec = resolver.cluster_spec()
    if not hasattr(spec, "task_indices"):
        raise TypeError(
            f"{type(resolver).__name__}.cluster_spec() must return a wb.distribute.ClusterSpec, got "
            f"{type(spec).__name__}: {spec!r:.80}"
        )
    return spec


def tasks_of(spec: Spec) -> tuple[Task, ...]:
    """The tasks of a cluster, job by job."""
    return tuple(Task(job, index) for job in spec.jobs for index in spec.task_indices(job))


def leader_of(tasks: Sequence[Task]) -> Task:
    """The task that starts the scheduler: chief 0, or worker 0 where there is no chief.

    Raises:
      InvalidArgumentError: if there is neither.
    """
    chief = Task(chief_of([task.job for task in tasks]), 0)
    if chief not in tasks:
        raise InvalidArgumentError(
            f"a cluster of {', '.join(map(str, tasks)) or 'no tasks'} has none that leads: add chief 0 or worker 0"
        )
    return chief


def scheduler_of(spec: Spec) -> str:
    """The address of the scheduler that `workbench join` starts for a cluster, such as "tls://10.0.0.5:2222".

    Raises:
      InvalidArgumentError: if no task leads.
      UnavailableError: if the name of its host means nothing here.
    """
    tasks = tasks_of(spec)
    chief = leader_of(tasks)
    peers = [host_and_port(spec.task_address(task.job, task.index))[0] for task in tasks]
    host, port = host_and_port(spec.task_address(chief.job, chief.index))
    return f"tls://{text_of(ip_among(host, peers), port)}"
