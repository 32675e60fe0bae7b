"""Tasks: the job of a cluster that a Dask worker belongs to, according to its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

CHIEFS: Final = ("chief", "master")
"""Jobs with a leading task, their first; without such jobs, the first worker leads (as in TF_CONFIG)."""
WORKER: Final = "worker"
_NAME: Final = re.compile(r"([a-z][a-z0-9_]*)-(\d+)(?:\.\d+)?")


@dataclass(frozen=True, slots=True, order=True)
class Task:
    """A task of a cluster. Its Dask workers have the names "ps-0", and "ps-0.1", "ps-0.2" … if it has several.

    Attributes:
      job: Such as "chief", "worker" or "ps".
      index: Number in the job, from 0.
    """

    job: str
    index: int

    def __str__(self) -> str:
        return f"{self.job}-{self.index}"

    def worker_names(self, count: int) -> tuple[str, ...]:
        """The names of the task's Dask workers, if it has `count` of them."""
        return (str(self), *(f"{self}.{number}" for number in range(1, count)))


def task_of(worker_name: str) -> Task | None:
    """The task of a Dask worker; None if its name is not a task's, such as "3" or "dask-worker-a"."""
    found = _NAME.fullmatch(worker_name)
    return None if found is None else Task(found[1], int(found[2]))


def job_of(worker_name: str) -> str:
    """The job of a Dask worker; "worker" if its name has none."""
    task = task_of(worker_name)
    return WORKER if task is None else task.job


def tasks_by_name(worker_names: Iterable[str]) -> dict[str, Task]:
    """Name of a Dask worker -> its task, in natural order.

    Workers without a task's name belong to the job "worker"; they are numbered after the named ones and come last.
    """
    names = sorted(worker_names, key=natural_key)
    named = {name: task for name in names if (task := task_of(name)) is not None}
    first = max((task.index for task in named.values() if task.job == WORKER), default=-1) + 1
    rest = [name for name in names if name not in named]
    return named | {name: Task(WORKER, number) for number, name in enumerate(rest, first)}


def chief_of(jobs: Sequence[str]) -> str:
    """The job with the leading task, its task 0."""
    return next((job for job in CHIEFS if job in jobs), WORKER)


def natural_key(text: str) -> list[tuple[int, int, str]]:
    """Sort key that puts worker 10 after worker 9."""
    parts = filter(None, re.split(r"(\d+)", text))
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]
