"""ClusterSpec: the jobs of a cluster, and the addresses of their tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from workbench.arguments import whole_number
from workbench.errors import InvalidArgumentError, WrongType

Tasks = list[str] | dict[int, str]
"""Addresses by task: a list, or a dict if some numbers are missing."""

_NUMBERS_END = 2**31  # as in TensorFlow, which uses 32 bits


class ClusterSpec:
    """Which jobs a cluster has, and where their tasks are (as tf.train.ClusterSpec). Immutable.

    It equals specs with the same tasks, and dicts from job to dict from number to address.

    wb.distribute.ClusterSpec({"chief": ["a:2222"], "worker": ["b:2222", "c:2222"]})
    """

    __slots__ = ("_jobs",)

    def __init__(self, cluster: Mapping[str, Any] | ClusterSpec) -> None:
        """Takes a mapping from job to addresses: a list of them, or a mapping from task number to address.

        Raises:
          TypeError: if it is something else.
          InvalidArgumentError: if it has a task twice, such as `{"1": ..., 1: ...}`, or an impossible number.
        """
        if isinstance(cluster, ClusterSpec):
            cluster = cluster.as_dict()
        if not isinstance(cluster, Mapping):
            raise TypeError(
                f"a cluster is a dict from job to addresses, got {type(cluster).__name__}: {cluster!r:.80}; write "
                '{"worker": [...]}'
            )
        self._jobs = {_text(job, "the name of a job"): _tasks(job, tasks) for job, tasks in cluster.items()}

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def as_dict(self) -> dict[str, Tasks]:
        """Job to addresses: lists, or dicts from number to address of jobs without tasks or with missing numbers."""
        return {job: _dense(tasks) for job, tasks in self._jobs.items()}

    def num_tasks(self, job_name: str) -> int:
        """How many tasks a job has.

        Raises:
          InvalidArgumentError: if there is no such job.
        """
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The numbers of a job's tasks, in order.

        Raises:
          InvalidArgumentError: if there is no such job.
        """
        return list(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task.

        Raises:
          InvalidArgumentError: if there is no such job or task.
        """
        tasks = self._job(job_name)
        number = whole_number(task_index, "task_index")
        if number not in tasks:
            raise InvalidArgumentError(f"job {job_name!r} has no task {number}: it has {list(tasks)}")
        return tasks[number]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """A job's addresses by number, None where a number is missing.

        Raises:
          InvalidArgumentError: if there is no such job.
        """
        tasks = self._job(job_name)
        return [tasks.get(index) for index in range(max(tasks, default=-1) + 1)]

    def _job(self, name: str) -> dict[int, str]:
        if _text(name, "the name of a job") not in self._jobs:
            raise InvalidArgumentError(f"this cluster has no job {name!r}: it has {self.jobs}")
        return self._jobs[name]

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return self._jobs == (other._jobs if isinstance(other, ClusterSpec) else other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"ClusterSpec({dict(sorted(self.as_dict().items()))})"  # equal for equal specs


def _tasks(job: Any, tasks: Any) -> dict[int, str]:
    if isinstance(tasks, Mapping):
        keys: dict[int, Any] = {}
        for key in tasks:
            index = _number(job, key)
            if index in keys:
                raise InvalidArgumentError(
                    f"job {job!r} has task {index} twice, as {keys[index]!r} and {key!r}; give each task once"
                )
            keys[index] = key
        return {
            index: _text(tasks[keys[index]], f"the address of task {index} of job {job!r}")
            for index in sorted(keys)
        }
    if isinstance(tasks, str | bytes) or not isinstance(tasks, Sequence):
        raise TypeError(
            f"job {job!r} takes a list of addresses or a dict from task number to address, got {tasks!r:.80}; write "
            f"[{tasks!r:.80}]"
        )
    return {
        index: _text(address, f"the address of task {index} of job {job!r}")
        for index, address in enumerate(tasks)
    }


def _number(job: Any, index: Any) -> int:
    if isinstance(index, bool) or not isinstance(index, Integral | str):
        raise TypeError(f"job {job!r}: tasks have whole numbers from 0, got {index!r}")
    if isinstance(index, Integral) or index.isdecimal():  # JSON has strings as keys
        number = int(index)
        if 0 <= number < _NUMBERS_END:
            return number
    raise InvalidArgumentError(
        f"job {job!r}: tasks have whole numbers from 0 to {_NUMBERS_END - 1:,}, got {index!r:.80}"
    )


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise WrongType(f"{what} is a text, got {type(value).__name__}: {value!r:.80}")
    return str(value)  # NumPy strings have a different repr


def _dense(tasks: dict[int, str]) -> Tasks:
    return list(tasks.values()) if tasks and list(tasks) == list(range(len(tasks))) else dict(tasks)
