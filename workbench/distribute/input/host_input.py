"""HostInput: a distributed dataset in one process: its plan, its iterators' readers, and shared memory for peers."""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench import forks, tree
from workbench.debugging import numerics
from workbench.distribute.input.exchange import Parcel, exchange, pack, unpack
from workbench.distribute.input.input_process import Open
from workbench.distribute.input.plan import InputPlan
from workbench.distribute.input.read_step import LocalStep, ReadStep, SharedStep
from workbench.distribute.input.reader import Chunk, Reader, Reading
from workbench.distribute.input.remote_reader import RemotePipelines
from workbench.errors import FailedPreconditionError
from workbench.runtime.comm.failure_report import FailureReport

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv

Steps = list[list[Any]]
"""For each step, the leaves of a replica's element."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request for steps of an iterator.

    Attributes:
      dataset: Id of the input source.
      iterator: Id of the iterator.
      epoch: Number of the epoch.
      first: Number of the first step.
      count: Number of steps.
      keep: Number of the first step that may be requested again.
      forgotten: (dataset, iterator) pairs that are no longer needed.
      again: The replicas that lost these steps and get them again; () if they are fetched for the first time.
      checked: Whether numbers in elements must be finite.
    """

    dataset: str
    iterator: str
    epoch: int
    first: int
    count: int
    keep: int
    forgotten: tuple[tuple[str, str | None], ...] = ()
    again: tuple[int, ...] = ()
    checked: bool = False


class HostInput:
    """Lets a dataset be read for the replicas of this process, each of which calls on its own thread.

    Attributes:
      plan: The plan.
      readers: (iterator, host) -> its reader.
    """

    def __init__(self, plan: InputPlan, remote: RemotePipelines | None = None) -> None:
        """Takes a plan.

        Args:
          plan: The plan for the current replicas.
          remote: Its pipelines in an input process, if that reads.
        """
        self.plan = plan if remote is None else plan.without_data()
        self.readers: dict[tuple[str, int], Reading] = {}
        self._remote = remote
        self._sent: dict[tuple[str, int], list[SharedStep]] = {}  # peers may still be copying from these
        self._lock = forks.lock(threading.Lock())

    @property
    def has_process(self) -> bool:
        """Whether a process other than the replica's reads."""
        return self._remote is not None

    def fetch(self, env: ReplicaEnv, request: Request) -> tuple[Steps, FailureReport | None]:
        """The replica's leaves of each step, up to the end or the first failed step; also returns that failure.

        Raises:
          FailedPreconditionError: if the set of replicas has changed since it was planned.
        """
        plan = self.plan
        # The notebook made the request just before it noticed the change; it will request again.
        if len(plan.places) != env.size:
            raise FailedPreconditionError(
                "this input was planned for other replicas than those that take part now"
            )
        if plan.exchanges(env.devices):
            return self._exchanged(env, request)
        steps, failure = self._read(env, request)
        return _own(steps, plan.places[env.rank][1]), failure

    def cost(self, env: ReplicaEnv, request: Request) -> bytes:
        """The cost of reading for this iterator, for `ProgressLog.cost`; b"" if there is nothing to report.

        Only one of a reader's replicas reports it, and only now and then, because it travels with the chunk.
        """
        host = self.plan.places[env.rank][0]
        reader = self.readers.get((request.iterator, host))
        told = b"" if reader is None or request.again else reader.cost()
        return pickle.dumps((host, env.device.worker, told), protocol=5) if told else b""

    def filled(self, env: ReplicaEnv, request: Request, steps: Steps) -> list[Any]:
        """The leaves of all requested steps, with empty arrays for missing steps.

        Args:
          env: The replica.
          request: The request.
          steps: Leaves of the existing steps.
        """
        leaves = [leaf for element in steps for leaf in element]
        missing = request.count - len(steps)
        if missing:
            leaves += tree.flatten(self.plan.pipeline_of(env.rank).empty())[0] * missing
        return leaves

    def forget(self, iterator: str | None = None) -> None:
        """Drops the data of one iterator, or of all."""
        with self._lock:
            for key in [key for key in self._sent if iterator in (None, key[0])]:
                del self._sent[key]
            closed = [self.readers.pop(key) for key in list(self.readers) if iterator in (None, key[0])]
        for reader in closed:
            reader.close()
        if iterator is None and self._remote is not None:
            self._remote.close()

    def _exchanged(self, env: ReplicaEnv, request: Request) -> tuple[Steps, FailureReport | None]:
        """As `fetch`, if one process of a host reads for the others."""
        plan = self.plan
        host, position = plan.places[env.rank]
        leader = plan.leaders[host]
        # A host that has lost nothing does not read again, and only takes part in the collective.
        needed = not request.again or any(plan.places[rank][0] == host for rank in request.again)
        reads = needed and env.devices[leader].worker == env.device.worker
        steps: list[ReadStep] = []
        failure: FailureReport | None = None
        if reads:
            steps, failure = self._read(env, request)
        parcel: Parcel | None = None
        sent: list[SharedStep] = []
        if needed and env.rank == leader:
            others = [
                plan.places[rank][1]
                for rank in plan.ranks_of_host(host)
                if env.devices[rank].worker != env.device.worker
            ]
            parcel, sent = pack(leader, steps, others)
        parcels = exchange(env.communicator, parcel)
        if parcel is not None:
            # The peers took part in this exchange, so they have copied the data of the previous one.
            self._sent[request.iterator, host] = sent
        if reads:
            return _own(steps, position), failure
        if not needed:
            return [], None
        # Replicas in the reading process report failures.
        return unpack(next(found for found in parcels if found.leader == leader), position), None

    def _read(self, env: ReplicaEnv, request: Request) -> Chunk:
        numerics.follow(request.checked)
        return self._reader(env, request).steps(request.first, request.count, keep=request.keep)

    def _reader(self, env: ReplicaEnv, request: Request) -> Reading:
        host = self.plan.places[env.rank][0]
        key = request.iterator, host
        with self._lock:
            reader = self.readers.get(key)
            if reader is None:
                reader = self.readers[key] = self._new_reader(env, request, host)
        return reader

    def _new_reader(self, env: ReplicaEnv, request: Request, host: int) -> Reading:
        plan = self.plan
        ranks = plan.ranks_of_host(host)
        if plan.pure:
            ranks = [rank for rank in ranks if env.devices[rank].worker == env.device.worker]
        positions = tuple(plan.places[rank][1] for rank in ranks)
        if self._remote is not None:
            return self._remote.reader(
                Open(request.dataset, host, request.epoch, positions, tuple(ranks)), ranks
            )
        return Reader(
            plan.pipelines[host],
            request.epoch,
            positions,
            ranks=ranks,
            keep_as=LocalStep,
            ahead=not plan.pure,
        )


def _own(steps: list[ReadStep], position: int) -> Steps:
    return [step.leaves(position) for step in steps]
