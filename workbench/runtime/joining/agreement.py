"""Whether the cluster that is connected is the one whose tasks a strategy's resolver names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from workbench.errors import FailedPreconditionError
from workbench.runtime.deploy.tasks import Task, task_of, tasks_by_name
from workbench.runtime.joining.roster import tasks_of
from workbench.runtime.placement_text import counted

_MOST_NAMES: Final = 8


@dataclass(frozen=True, slots=True)
class Connected:
    """The cluster that is connected.

    Attributes:
      names: Those of its workers.
      hosts: How many hosts they are on.
      devices: How many devices they have.
      here: Whether this process has started it, on this machine.
      incomplete: Whether its strategies may go on without some of the tasks.
    """

    names: Sequence[str]
    hosts: int
    devices: int
    here: bool
    incomplete: bool


def require_agreement(resolver: Any, connected: Connected, *, all_devices: bool) -> None:
    """Returns if a cluster has the tasks that a resolver names. A resolver that names none agrees with any cluster.

    Where workers have no names of tasks, as those of an embedded cluster, their number tells: a task for each host,
    worker or device; and one task is this machine. There, a strategy that takes only some devices counts them itself.

    Args:
      resolver: Of a strategy.
      connected: The cluster.
      all_devices: Whether the strategy takes all devices, whatever the resolver says.

    Raises:
      FailedPreconditionError: naming both, what is missing or too many, and what to do.
    """
    tasks = tasks_of(resolver.cluster_spec())
    if not tasks:
        return
    if any(map(task_of, connected.names)):
        there = sorted(set(tasks_by_name(connected.names).values()))
        missing = [] if connected.incomplete else [task for task in tasks if task not in there]
        # An evaluator need not be among the tasks of a cluster, as in TF_CONFIG.
        more = [task for task in there if task not in tasks and task.job != "evaluator"]
        if not (missing or more):
            return
        both = ((missing, "not among them"), (more, "not named by the resolver"))
        has = f"{_listed(there)} ({'; '.join(f'{_listed(found)} {what}' for found, what in both if found)})"
    else:
        numbers = (connected.hosts, len(connected.names), connected.devices)
        if not all_devices or len(tasks) in numbers or (len(tasks) == 1 and connected.here):
            return
        counts = zip(numbers, ("host", "worker", "device"), strict=True)
        has = f"none that have names, but {', '.join(counted(number, noun) for number, noun in counts)}"
    plays = (
        f", have this machine play them, wb.connect(hosts={len(tasks)}, replace=True),"
        if connected.here
        else ""
    )
    raise FailedPreconditionError(
        f"cluster_resolver, a {type(resolver).__name__}, names {counted(len(tasks), 'task')}, {_listed(tasks)}; of the "
        f"cluster that is connected, the tasks are {has}. Close that first, wb.current_cluster().close(), and the "
        f"strategy connects to the tasks of its resolver{plays} or leave the resolver out to use what is connected"
    )


def _listed(tasks: Sequence[Task]) -> str:
    more = len(tasks) - _MOST_NAMES
    return ", ".join(map(str, tasks[:_MOST_NAMES])) + (f" and {more} more" if more > 0 else "")
