"""What replicas run to read their input: the plans and readers of a process, and the program that fetches a chunk."""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from workbench import forks, tree
from workbench.distribute.input.exchange import Parcel, exchange, pack, unpack
from workbench.distribute.input.plan import InputPlan
from workbench.distribute.input.reader import Reader
from workbench.errors import FailedPreconditionError
from workbench.runtime.comm.failure_report import report

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv

HEAD: Final = 3
"""Leaves of what `fetch` returns before those of its elements."""


@dataclass(slots=True)
class _Opened:
    """A plan in this process, with the readers of its iterators.

    Attributes:
      plan: The plan.
      readers: (iterator, host) -> reader.
      sent: (iterator, host) -> descriptor of the last parcel, which peers may be mapping.
    """

    plan: InputPlan
    readers: dict[tuple[str, int], Reader] = field(default_factory=dict)
    sent: dict[tuple[str, int], int] = field(default_factory=dict)

    def forget(self, iterator: str | None = None) -> None:
        """Drops what belongs to one iterator, or to all."""
        for key in [key for key in self.sent if iterator in (None, key[0])]:
            _close(self.sent.pop(key))
        for key in [key for key in self.readers if iterator in (None, key[0])]:
            self.readers.pop(key, None)


@dataclass(frozen=True, slots=True)
class ByReference:
    """A plan for replicas in the notebook's own process."""

    plan: InputPlan


_opened: dict[str, _Opened] = {}
_lock = forks.lock(threading.Lock())


def open_input(env: ReplicaEnv, dataset: str, plan: bytes | ByReference) -> None:
    """Makes a dataset known to the replica's process; not undone when a step fails."""
    with _lock:
        if dataset not in _opened:
            _opened[dataset] = _Opened(plan.plan if isinstance(plan, ByReference) else pickle.loads(plan))


def forget_input(names: Sequence[tuple[str, str | None]]) -> None:
    """Drops (dataset, iterator) pairs that the notebook has let go; a dataset with all its iterators for None."""
    for dataset, iterator in names:
        with _lock:
            opened = _opened.get(dataset) if iterator else _opened.pop(dataset, None)
            if opened is not None:
                opened.forget(iterator)


@dataclass(frozen=True, slots=True)
class Request:
    """Which steps of an iterator to fetch.

    Attributes:
      dataset: Id of the input source.
      iterator: Id of the iterator.
      epoch: Number of the epoch.
      first: Number of the first step.
      count: How many steps.
      keep: Number of the first step that may be asked for again.
      forgotten: (dataset, iterator) pairs that are not needed any more.
      again: The replicas that lost these steps, and get them again; () where they are fetched for the first time.
    """

    dataset: str
    iterator: str
    epoch: int
    first: int
    count: int
    keep: int
    forgotten: tuple[tuple[str, str | None], ...] = ()
    again: tuple[int, ...] = ()


def fetch(env: ReplicaEnv, request: Request) -> tuple[Any, ...]:
    """The replica's part of some steps.

    Returns:
      The number of steps that its host had left before the end or an element that failed, for how many ns the replica
      waited for them, the failure (pickled, b"" if there is none), then the leaves of each step; what is missing is
      made up of empty arrays, so that the structure is always the same.
    """
    began_ns = time.monotonic_ns()
    found, failure = _fetched(env, request)
    waited_ns = time.monotonic_ns() - began_ns
    data = b"" if failure is None else pickle.dumps(report(env.rank, failure), protocol=5)
    return (len(found), waited_ns, data, *_filled(env, request, found))


def fetch_again(
    env: ReplicaEnv, request: Request, serial: int, leaves: Sequence[int], had: Sequence[int]
) -> None:
    """Puts elements that were lost with a replica's process back into the place where the notebook looks for them.

    What the pipeline does not give this time is missing afterwards: nothing else may take its place.

    Args:
      env: The replica; any of the group where batches are exchanged, else one that lost them.
      request: For what.
      serial: Number of the step that fetched them before.
      leaves: Those of its leaves that are still needed.
      had: Per replica, how many steps its host had left then.
    """
    found, _ = _fetched(env, request)
    if env.rank not in request.again:
        return
    filled = _filled(env, request, found)
    width = len(filled) // request.count
    for leaf in leaves:
        if len(found) >= min(had[env.rank], (leaf - HEAD) // width + 1):
            env.keep(serial, leaf, filled[leaf - HEAD])


def _filled(env: ReplicaEnv, request: Request, found: list[list[Any]]) -> list[Any]:
    """The leaves of all steps; empty arrays for those that there are not."""
    leaves = [leaf for element in found for leaf in element]
    missing = request.count - len(found)
    if missing:
        plan = _opened[request.dataset].plan
        leaves += tree.flatten(plan.pipeline_of(env.rank).empty())[0] * missing
    return leaves


def _fetched(env: ReplicaEnv, request: Request) -> tuple[list[list[Any]], Exception | None]:
    """The replica's leaves of each step, up to the end or the first that failed; and why that one did."""
    forget_input(request.forgotten)
    opened = _opened.get(request.dataset)
    if opened is None:
        raise FailedPreconditionError(
            f"replica {env.rank} does not know this distributed dataset; distribute it again with this strategy"
        )
    if len(opened.plan.places) != env.size:  # asked for just before the notebook knew; it asks again
        raise FailedPreconditionError(
            "this input was planned for other replicas than those that take part now"
        )
    if opened.plan.exchanges(env.devices):
        return _fetch_exchanged(env, opened, request)
    reader = _reader(env, opened, request)
    steps, failure = reader.steps(request.first, request.count, keep=request.keep)
    return _own(steps, reader.replicas.index(opened.plan.places[env.rank][1])), failure


def _own(steps: list[list[list[Any]]], index: int) -> list[list[Any]]:
    return [step[index] for step in steps]


def _fetch_exchanged(
    env: ReplicaEnv, opened: _Opened, request: Request
) -> tuple[list[list[Any]], Exception | None]:
    plan = opened.plan
    host, position = plan.places[env.rank]
    leader = plan.leaders[host]
    key = request.iterator, host
    # Where nothing was lost, nothing is read again: only the collective wants everybody.
    needed = not request.again or any(plan.places[rank][0] == host for rank in request.again)
    reads = needed and env.devices[leader].worker == env.device.worker
    steps: list[list[list[Any]]] = []
    failure: Exception | None = None
    if reads:
        steps, failure = _reader(env, opened, request).steps(request.first, request.count, keep=request.keep)
    parcel: Parcel | None = None
    if needed and env.rank == leader:
        others = [
            plan.places[rank][1]
            for rank in plan.ranks_of_host(host)
            if env.devices[rank].worker != env.device.worker
        ]
        parcel = pack(leader, {other: _own(steps, other) for other in others})
    parcels = exchange(env.communicator, parcel)
    if parcel is not None:
        # The peers have taken part in this exchange, so they have mapped the parcel of the one before.
        _close(opened.sent.pop(key, -1))
        opened.sent[key] = parcel.descriptor
    if reads:
        return _own(steps, position), failure
    if not needed:
        return [], None
    # The replicas that read tell of a failure.
    return unpack(next(found for found in parcels if found.leader == leader), position), None


def _reader(env: ReplicaEnv, opened: _Opened, request: Request) -> Reader:
    plan = opened.plan
    host = plan.places[env.rank][0]
    key = request.iterator, host
    with _lock:
        reader = opened.readers.get(key)
        if reader is None:
            ranks = plan.ranks_of_host(host)
            if plan.pure:
                ranks = [rank for rank in ranks if env.devices[rank].worker == env.device.worker]
            positions = [plan.places[rank][1] for rank in ranks]
            reader = Reader(plan.pipelines[host], request.epoch, positions, ahead=not plan.pure)
            opened.readers[key] = reader
    return reader


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)
