"""Tracks, in the chief's scheduler, which tasks have joined and which are missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from distributed import Scheduler
from distributed.comm.addressing import get_address_host
from distributed.diagnostics.plugin import SchedulerPlugin

from workbench.runtime.deploy.tasks import Task, task_of


class Attendance(SchedulerPlugin):
    """Reports each task that joins, is lost, or rejoins.

    Attributes:
      complete: Set while all tasks are present.
      over: Set it to True when the cluster ends; nothing is reported from then on.
    """

    def __init__(self, tasks: Sequence[Task], say: Callable[[str], None], invitation: str) -> None:
        """Starts to track.

        Args:
          tasks: The expected tasks; empty if unknown.
          say: Called with each line for the user.
          invitation: How to attach to the cluster; reported once all tasks are present.
        """
        self.complete = asyncio.Event()
        self.over = False
        self._tasks = tuple(tasks)
        self._say = say
        self._invitation = invitation
        self._workers: dict[str, Task] = {}  # by address
        self._seen: set[Task] = set()

    @property
    def missing(self) -> tuple[Task, ...]:
        """The tasks that have not joined or were lost."""
        there = set(self._workers.values())
        return tuple(task for task in self._tasks if task not in there)

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """Called by Dask when a worker has joined."""
        task = task_of(str(scheduler.workers[worker].name))
        if task is None:
            return
        is_first = task not in self._workers.values()
        self._workers[worker] = task
        if is_first and not self.over:
            again = " again" if task in self._seen else ""
            self._seen.add(task)
            self._say(f"{task} has joined{again} from {get_address_host(worker)}{self._count()}")
            self._tell_all()

    def remove_worker(self, scheduler: Scheduler, worker: str, **_: Any) -> None:
        """Called by Dask when a worker has left."""
        task = self._workers.pop(worker, None)
        if task is not None and task not in self._workers.values() and not self.over:
            self.complete.clear()
            self._say(f"{task} was lost{self._count()}; it can join again")

    def _count(self) -> str:
        if not self._tasks:
            return ""
        there = len(self._tasks) - len(self.missing)
        waits = f", waiting for {', '.join(map(str, self.missing))}" if self.missing else ""
        return f" ({there} of {len(self._tasks)} tasks{waits})"

    def _tell_all(self) -> None:
        if not self.missing and not self.complete.is_set():
            self.complete.set()
            self._say(self._invitation)
