"""Checks whether the connected cluster has the tasks that a strategy's resolver names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from workbench.errors import FailedPreconditionError
from workbench.runtime.deploy.tasks import Task, task_of, tasks_by_name
from workbench.runtime.placement_text import counted

_MOST_NAMES: Final = 8


@dataclass(frozen=True, slots=True)
class Connected:
    """The connected cluster.

    Attributes:
      names: Names of its workers.
      hosts: Number of their hosts.
      devices: Number of their devices.
      here: Whether this process started it, on this machine.
      incomplete: Whether its strategies may continue without some of the tasks.
    """

    names: Sequence[str]
    hosts: int
    devices: int
    here: bool
    incomplete: bool


def require_agreement(
    resolver: Any, tasks: Sequence[Task], connected: Connected, *, all_devices: bool
) -> None:
    """Returns if a cluster has the tasks that a resolver names. A resolver that names none agrees with any cluster.

    If workers do not have names of tasks, such as in an embedded cluster, the numbers must agree: one task per host,
    worker or device; a single task is this machine. Then a strategy that takes only some devices checks their number.

    Args:
      resolver: The strategy's resolver.
      tasks: The tasks that it names.
      connected: The cluster.
      all_devices: Whether the strategy takes all devices regardless of the resolver.

    Raises:
      FailedPreconditionError: if they differ; it names both, missing and surplus tasks, and the remedy.
    """
    if not tasks:
        return
    if any(map(task_of, connected.names)):
        there = sorted(set(tasks_by_name(connected.names).values()))
        missing = [] if connected.incomplete else [task for task in tasks if task not in there]
        # An evaluator may be missing from the cluster's tasks, as in TF_CONFIG.
        more = [task for task in there if task not in tasks and task.job != "evaluator"]
        if not (missing or more):
            return
        both = ((missing, "not among them"), (more, "not named by the resolver"))
        has = f"the tasks {_listed(there)} ({'; '.join(f'{_listed(found)} {what}' for found, what in both if found)})"
    else:
        numbers = (connected.hosts, len(connected.names), connected.devices)
        if not all_devices or len(tasks) in numbers or (len(tasks) == 1 and connected.here):
            return
        counts = zip(numbers, ("host", "worker", "device"), strict=True)
        hosts, workers, devices = (counted(number, noun) for number, noun in counts)
        has = f"no named tasks, only {hosts}, {workers} and {devices}"
    plays = (
        f" To stand in for them on this machine: wb.connect(hosts={len(tasks)}, replace=True)."
        if connected.here
        else ""
    )
    raise FailedPreconditionError(
        f"the strategy's resolver, a {type(resolver).__name__}, names {counted(len(tasks), 'task')}, {_listed(tasks)}; "
        f"the connected cluster has {has}. To use the resolver's tasks: wb.current_cluster().close(), then make the "
        f"strategy again.{plays} To use what is connected: leave the resolver out"
    )


def _listed(tasks: Sequence[Task]) -> str:
    more = len(tasks) - _MOST_NAMES
    return ", ".join(map(str, tasks[:_MOST_NAMES])) + (f" and {more} more" if more > 0 else "")
