"""The tasks of a future cluster, and this process's task among them."""

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
    """The part of a `wb.distribute.cluster_resolver.ClusterResolver` that `connect` uses."""

    def cluster_spec(self) -> Any:
        """Its tasks, as a `Spec`."""

    def dask_cluster(self) -> Any:
        """The address or Dask object to attach to."""


@dataclass(frozen=True, slots=True)
class Roster:
    """The data that a process needs to join.

    Attributes:
      task: Its task.
      chief: The task that starts the scheduler.
      address: Address of the scheduler, "host:port".
      tasks: All expected tasks; empty if unknown.
      peers: Hosts of the tasks.
      neighbours: Number of tasks on this host.
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
        """The roster for a task of a cluster. An evaluator need not be among its tasks, as in TF_CONFIG.

        Raises:
          InvalidArgumentError: if the cluster has no such task, or none that can lead.
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
    """The cluster that the tasks of a resolver form.

    Attributes:
      tasks: The tasks that take part.
      address: The address or Dask object to attach to.
    """

    tasks: tuple[Task, ...]
    address: Any


def spec_of(resolver: Any) -> Any:
    """The cluster that a resolver names, as a `Spec`. The resolver may query a service and take long.

    Raises:
      TypeError: if the resolver, possibly the user's own class, returns something else.
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
    """The task that starts the scheduler: chief 0, or worker 0 if there is no chief.

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
      UnavailableError: if the name of its host cannot be resolved here.
    """
    tasks = tasks_of(spec)
    chief = leader_of(tasks)
    peers = [host_and_port(spec.task_address(task.job, task.index))[0] for task in tasks]
    host, port = host_and_port(spec.task_address(chief.job, chief.index))
    return f"tls://{text_of(ip_among(host, peers), port)}"
