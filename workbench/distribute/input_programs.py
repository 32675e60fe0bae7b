"""What replicas run to read their input: the plans and readers of a process, and the program that fetches a chunk."""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workbench import forks, tree
from workbench.distribute.input_exchange import Parcel, exchange, pack, unpack
from workbench.distribute.input_plan import InputPlan
from workbench.distribute.input_reader import Reader
from workbench.errors import FailedPreconditionError

if TYPE_CHECKING:
    from workbench.runtime.env import ReplicaEnv


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
      dataset: Id of the distributed dataset.
      iterator: Id of the iterator.
      epoch: Number of the epoch.
      first: Number of the first step.
      count: How many steps.
      ahead: They are asked for before their turn: an element that fails ends them early, without an error.
      forgotten: (dataset, iterator) pairs that are not needed any more.
    """

    dataset: str
    iterator: str
    epoch: int
    first: int
    count: int
    ahead: bool
    forgotten: tuple[tuple[str, str | None], ...] = ()


def fetch(env: ReplicaEnv, request: Request) -> tuple[Any, ...]:
    """The replica's part of some steps.

    Returns:
      The number of steps that its host had left, for how many ns the replica waited for them, then the leaves of each
      step; what is missing is made up of empty arrays, so that the structure is always the same.
    """
    began_ns = time.monotonic_ns()
    forget_input(request.forgotten)
    opened = _opened.get(request.dataset)
    if opened is None:
        raise FailedPreconditionError(
            f"replica {env.rank} does not know this distributed dataset; distribute it again with this strategy"
        )
    plan = opened.plan
    host, position = plan.places[env.rank]
    if plan.exchanges(env.devices):
        elements = _fetch_exchanged(env, opened, request)
    else:
        reader = _reader(env, opened, request)
        steps = reader.steps(request.first, request.count, ahead=request.ahead)
        elements = _own(steps, reader.replicas.index(position))
    leaves = [leaf for element in elements for leaf in element]
    missing = request.count - len(elements)
    if missing:
        leaves += tree.flatten(plan.pipelines[host].empty())[0] * missing
    return (len(elements), time.monotonic_ns() - began_ns, *leaves)


def _own(steps: list[list[list[Any]]], index: int) -> list[list[Any]]:
    return [step[index] for step in steps]


def _fetch_exchanged(env: ReplicaEnv, opened: _Opened, request: Request) -> list[list[Any]]:
    plan = opened.plan
    host, position = plan.places[env.rank]
    leader = plan.leaders[host]
    key = request.iterator, host
    parcel: Parcel | None = None
    if env.rank == leader:
        steps = _reader(env, opened, request).steps(request.first, request.count, ahead=request.ahead)
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
    if env.devices[leader].worker == env.device.worker:
        steps = _reader(env, opened, request).steps(request.first, request.count, ahead=request.ahead)
        return _own(steps, position)
    return unpack(next(found for found in parcels if found.leader == leader), position)


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
