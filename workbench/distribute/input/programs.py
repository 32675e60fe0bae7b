"""Programs with which replicas read their input, and the datasets that a process knows."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from workbench import forks
from workbench.allowance import cores
from workbench.distribute.input.host_input import HostInput, Request
from workbench.distribute.input.plan import InputPlan, PickledPlan, SharedPlan
from workbench.distribute.input.read_step import SharedStep
from workbench.distribute.input.remote_reader import InputProcess, RemotePipelines
from workbench.errors import FailedPreconditionError
from workbench.runtime.process.fork_server import AVAILABLE

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv

BY_PROCESS: Final = "by process"
HERE: Final = "here"
UNREACHABLE: Final = "unreachable"
HEAD: Final = 4
"""Number of leaves in the result of `fetch` before those of its elements."""


@dataclass(frozen=True, slots=True)
class ByReference:
    """A plan for replicas in the notebook's own process."""

    plan: InputPlan


_opened: dict[str, HostInput] = {}
_lock = forks.lock(threading.Lock())
_process: Final = InputProcess()


def open_input(env: ReplicaEnv, dataset: str, given: PickledPlan | SharedPlan | ByReference) -> str:
    """Makes a dataset known to the replica's process; a failed step does not undo this.

    Returns:
      `BY_PROCESS` if an input process reads it, `HERE`, or `UNREACHABLE` if this process cannot open the plan's memory.
    """
    with _lock:
        opened = _opened.get(dataset)
        if opened is None:
            opened = _host_input(given)
            if opened is None:
                return UNREACHABLE
            _opened[dataset] = opened
            env.store.at_end(dataset, partial(forget_input, [(dataset, None)]))
    return BY_PROCESS if opened.has_process else HERE


def _host_input(given: PickledPlan | SharedPlan | ByReference) -> HostInput | None:
    pipelines: PickledPlan | SharedStep | None
    match given:
        case ByReference(plan):
            return HostInput(plan)
        case PickledPlan():
            plan, pipelines = given.unpickled(), given
        case SharedPlan(plan, place):
            memory = pipelines = place.opened()
            if memory is None:
                return None
            plan = replace(plan, pipelines=memory.mapped())  # copies nothing
    wanted = plan.input_process
    if plan.pure or wanted is False or not AVAILABLE or (wanted is None and cores() < 2):
        return HostInput(plan)
    assert pipelines is not None
    return HostInput(plan, RemotePipelines(_process, pipelines))


def forget_input(names: Sequence[tuple[str, str | None]]) -> None:
    """Drops (dataset, iterator) pairs that the notebook has dropped; for None, a dataset with all its iterators."""
    for dataset, iterator in names:
        with _lock:
            opened = _opened.get(dataset) if iterator else _opened.pop(dataset, None)
            process_used = any(other.has_process for other in _opened.values())
        if opened is None:
            continue
        opened.forget(iterator)
        if iterator is None and opened.has_process:
            _process.forget(dataset)
            if not process_used:
                _process.close()


def fetch(env: ReplicaEnv, request: Request) -> tuple[Any, ...]:
    """The replica's part of some steps.

    Returns:
      The number of steps that its host had before the end or a failed element, how long the replica waited for them in
      ns, the failure (pickled, b"" if there is none), now and then the cost of reading (pickled), and the leaves of
      each step; empty arrays replace missing steps, so that the structure is always the same.
    """
    began_ns = time.monotonic_ns()
    opened = _known(env, request)
    found, failure = opened.fetch(env, request)
    waited_ns = time.monotonic_ns() - began_ns
    data = b"" if failure is None else pickle.dumps(replace(failure, rank=env.rank), protocol=5)
    cost = opened.cost(env, request)
    return (len(found), waited_ns, data, cost, *opened.filled(env, request, found))


def fetch_again(
    env: ReplicaEnv, request: Request, serial: int, leaves: Sequence[int], had: Sequence[int]
) -> None:
    """Restores elements that were lost with a replica's process, under the keys that the notebook knows.

    Elements that the pipeline does not yield this time are then missing: nothing else may replace them.

    Args:
      env: The replica; any replica of the group if batches are exchanged, else one that lost them.
      request: The request for them.
      serial: Number of the step that first fetched them.
      leaves: Its leaves that are still needed.
      had: For each replica, the number of steps that its host had then.
    """
    opened = _known(env, request)
    found, _ = opened.fetch(env, request)
    if env.rank not in request.again:
        return
    filled = opened.filled(env, request, found)
    width = len(filled) // request.count
    for leaf in leaves:
        if len(found) >= min(had[env.rank], (leaf - HEAD) // width + 1):
            env.keep(serial, leaf, filled[leaf - HEAD])


def _known(env: ReplicaEnv, request: Request) -> HostInput:
    forget_input(request.forgotten)
    opened = _opened.get(request.dataset)
    if opened is None:
        raise FailedPreconditionError(
            f"replica {env.rank} does not know this distributed dataset; distribute it again with this strategy"
        )
    return opened
