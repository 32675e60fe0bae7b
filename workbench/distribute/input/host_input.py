"""HostInput: a distributed dataset in one process: its plan, the readers of its iterators, what it has handed over."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench import forks, tree
from workbench.distribute.input.exchange import Parcel, exchange, pack, unpack
from workbench.distribute.input.plan import InputPlan
from workbench.distribute.input.reader import Reader
from workbench.errors import FailedPreconditionError

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv

Steps = list[list[Any]]
"""Per step, the leaves of a replica's element."""


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


class HostInput:
    """Reads a dataset for the replicas of this process, each of which asks on its own thread.

    Attributes:
      plan: Who reads what.
      readers: (iterator, host) -> what reads for it here.
    """

    def __init__(self, plan: InputPlan) -> None:
        self.plan = plan
        self.readers: dict[tuple[str, int], Reader] = {}
        self._sent: dict[
            tuple[str, int], int
        ] = {}  # descriptor of the last parcel, which peers may be mapping
        self._lock = forks.lock(threading.Lock())

    def fetch(self, env: ReplicaEnv, request: Request) -> tuple[Steps, Exception | None]:
        """The replica's leaves of each step, up to the end or the first that failed; and why that one did.

        Raises:
          FailedPreconditionError: If other replicas take part than those that it was planned for.
        """
        plan = self.plan
        if len(plan.places) != env.size:  # asked for just before the notebook knew; it asks again
            raise FailedPreconditionError(
                "this input was planned for other replicas than those that take part now"
            )
        if plan.exchanges(env.devices):
            return self._exchanged(env, request)
        reader = self._reader(env, request)
        steps, failure = reader.steps(request.first, request.count, keep=request.keep)
        return _own(steps, reader.replicas.index(plan.places[env.rank][1])), failure

    def filled(self, env: ReplicaEnv, request: Request, steps: Steps) -> list[Any]:
        """The leaves of all steps that were asked for; empty arrays for those that there are not."""
        leaves = [leaf for element in steps for leaf in element]
        missing = request.count - len(steps)
        if missing:
            leaves += tree.flatten(self.plan.pipeline_of(env.rank).empty())[0] * missing
        return leaves

    def forget(self, iterator: str | None = None) -> None:
        """Drops what belongs to one iterator, or to all."""
        for key in [key for key in self._sent if iterator in (None, key[0])]:
            _close(self._sent.pop(key))
        for key in [key for key in self.readers if iterator in (None, key[0])]:
            self.readers.pop(key, None)

    def _exchanged(self, env: ReplicaEnv, request: Request) -> tuple[Steps, Exception | None]:
        """As `fetch`, where one process of a host reads for the others."""
        plan = self.plan
        host, position = plan.places[env.rank]
        leader = plan.leaders[host]
        # Where nothing was lost, nothing is read again: only the collective wants everybody.
        needed = not request.again or any(plan.places[rank][0] == host for rank in request.again)
        reads = needed and env.devices[leader].worker == env.device.worker
        steps: list[list[list[Any]]] = []
        failure: Exception | None = None
        if reads:
            reader = self._reader(env, request)
            steps, failure = reader.steps(request.first, request.count, keep=request.keep)
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
            key = request.iterator, host
            _close(self._sent.pop(key, -1))
            self._sent[key] = parcel.descriptor
        if reads:
            return _own(steps, position), failure
        if not needed:
            return [], None
        # The replicas that read tell of a failure.
        return unpack(next(found for found in parcels if found.leader == leader), position), None

    def _reader(self, env: ReplicaEnv, request: Request) -> Reader:
        plan = self.plan
        host = plan.places[env.rank][0]
        key = request.iterator, host
        with self._lock:
            reader = self.readers.get(key)
            if reader is None:
                ranks = plan.ranks_of_host(host)
                if plan.pure:
                    ranks = [rank for rank in ranks if env.devices[rank].worker == env.device.worker]
                positions = [plan.places[rank][1] for rank in ranks]
                reader = Reader(plan.pipelines[host], request.epoch, positions, ahead=not plan.pure)
                self.readers[key] = reader
        return reader


def _own(steps: list[list[list[Any]]], position: int) -> Steps:
    return [step[position] for step in steps]


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)
