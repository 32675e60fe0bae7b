"""`workbench join`: this process becomes one task of a Dask cluster, until Ctrl-C."""

from __future__ import annotations

import argparse
import re
import socket
import sys
import time

from workbench.distribute.cluster_resolver.here import resolver_here, task_here
from workbench.errors import InvalidArgumentError, WorkbenchError
from workbench.runtime.deploy.tasks import CHIEFS, Task
from workbench.runtime.joining.addresses import host_and_port
from workbench.runtime.joining.join import join
from workbench.runtime.joining.membership import WrongSecret
from workbench.runtime.joining.roster import Roster
from workbench.runtime.joining.secret import FILE_VARIABLE, VARIABLE, Secret

_RETRY_SECONDS = 1.0
_TASK = re.compile(r"([a-z][a-z0-9_]*)(?:[:-](\d+))?")


def run(options: argparse.Namespace) -> int:
    """Works until Ctrl-C or the end of the cluster; returns 1 if the cluster does not form."""
    try:
        roster = _by_hand(options) if options.task else _by_environment(options)
        secret = Secret.found_or_made()
        _say(f"{roster.task} on {socket.gethostname()}; secret {secret.fingerprint} of {secret.source}")
        if roster.leads and options.task:
            _say(f"in other terminals: workbench join worker:0 --chief {roster.address}")
        join(
            roster,
            secret=secret,
            replicas=options.replicas,
            patience_seconds=options.timeout,
            say=_say,
        )
    except (WorkbenchError, OSError, RuntimeError, ValueError) as error:
        print(f"workbench join: {error}{_advice(error)}", file=sys.stderr)
        return 1
    return 0


def _by_hand(options: argparse.Namespace) -> Roster:
    found = _TASK.fullmatch(options.task)
    if found is None:
        raise InvalidArgumentError(f"write a task like chief, worker:1 or ps:0, got {options.task!r}")
    host_and_port(options.chief)
    chief = Task(CHIEFS[0], 0)
    tasks = [Task(job, index) for job, count in (options.jobs or {}).items() for index in range(count)]
    if tasks and chief not in tasks:
        tasks.insert(0, chief)
    task = Task(found[1], int(found[2] or 0))
    if tasks and task not in tasks:
        raise InvalidArgumentError(
            f"{task} is not among the tasks that --jobs names: {', '.join(map(str, tasks))}"
        )
    return Roster(task=task, chief=chief, address=options.chief, tasks=tuple(tasks))


def _by_environment(options: argparse.Namespace) -> Roster:
    pods: dict[str, list[str]] = {}
    for job, labels in options.pods:
        pods.setdefault(job, []).append(labels)
    resolver = resolver_here(options.jobs, pods)
    if resolver is None:
        raise InvalidArgumentError(
            "nothing tells which cluster to join: there is neither TF_CONFIG, nor a job step of Slurm, nor --pods. By "
            "hand: `workbench join chief` in one terminal, `workbench join worker:0` in the next"
        )
    # Pods start one after another; the other environments know all tasks from the start.
    deadline = time.monotonic() + (options.timeout if pods else 0)
    while True:
        try:
            return Roster.of(resolver.cluster_spec(), task_here(resolver))
        except (RuntimeError, InvalidArgumentError) as error:
            if time.monotonic() > deadline:
                raise
            _say(f"waits for the pods: {error}")
        time.sleep(_RETRY_SECONDS)


def _advice(error: Exception) -> str:
    if not isinstance(error, WrongSecret):
        return ""
    return (
        f". All tasks need the same one: the same file for all of them ({FILE_VARIABLE}), or {VARIABLE}; compare what "
        f"each task says it has at its start"
    )


def _say(line: str) -> None:
    print(line, flush=True)  # flushed at once, even into a pipe
