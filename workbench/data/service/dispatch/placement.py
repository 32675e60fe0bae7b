"""Which worker computes which lane: each new worker gets its own lanes, and those of a lost one go to others."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from workbench.data.service.dispatch.ledger import Ledger
from workbench.data.service.dispatch.state import Job, Lane
from workbench.data.service.policy import ShardingPolicy
from workbench.data.service.server import Session
from workbench.errors import StorageFull


@dataclass(slots=True)
class LiveWorker:
    """A connected worker.

    Attributes:
      address: Its address for consumers.
      session: Its connection.
      silent_since: Time of the last answer to it, as `time.monotonic`; None while a request of it is waiting.
      counted: Time when its elements were last counted.
      elements: Number of elements that it has delivered.
      rate: Elements per second, recently.
    """

    address: str
    session: Session
    silent_since: float | None = None
    counted: float = field(default_factory=time.monotonic)
    elements: int = 0
    rate: float = 0.0

    def asks(self, elements: int, session: Session) -> None:
        """Records that it asks for its lanes, and how many elements it has delivered so far."""
        self.session, self.silent_since = session, None
        now = time.monotonic()
        passed = now - self.counted
        if passed > 0.1:
            self.rate = (elements - self.elements) / passed
            self.elements = elements
            self.counted = now

    def answered(self, session: Session) -> None:
        """Records that it has been answered, unless it has meanwhile asked again over another connection."""
        if session is self.session:
            self.silent_since = time.monotonic()


class Placement:
    """The connected workers and their lanes. The dispatcher's lock guards this.

    Attributes:
      workers: The connected workers, by id.
    """

    def __init__(
        self,
        ledger: Ledger,
        worker_addresses: tuple[str, ...],
        patience_seconds: float,
        tell: Callable[[], None],
    ) -> None:
        """Starts without workers.

        Args:
          ledger: The state with the jobs.
          worker_addresses: The addresses of all workers, for the policies that give each a fixed part.
          patience_seconds: How long workers of an earlier dispatcher may take to come back.
          tell: Called after every change of a lane.
        """
        self._ledger = ledger
        self._worker_addresses = worker_addresses
        self._tell = tell
        self.workers: dict[str, LiveWorker] = {}
        self._lost: set[str] = set()
        self._patience_until = time.monotonic() + patience_seconds

    def join(self, name: str, address: str, session: Session) -> None:
        """Adds a worker, or one that has come back.

        Args:
          name: Name of the worker.
          address: Address at which it serves consumers.
          session: Its connection.
        """
        self._lost.discard(name)
        if name not in self._ledger.state.workers:
            self._note("joined", name)
        self.workers[name] = LiveWorker(address, session)
        self.place()

    def lose(self, name: str) -> None:
        """Removes a lost worker; others get its lanes."""
        del self.workers[name]
        self._lost.add(name)
        self._note("lost", name)
        self.place()
        self._tell()

    def lose_silent(self, timeout_seconds: float) -> None:
        """Gives up workers that have not asked again for this time after the last answer to them."""
        now = time.monotonic()
        for name, worker in list(self.workers.items()):
            if worker.silent_since is not None and now - worker.silent_since > timeout_seconds:
                self.lose(name)

    def place(self) -> None:
        """Gives lanes of lost workers to others, and new lanes to new workers."""
        if not self.workers:
            return
        for job in self._ledger.state.jobs.values():
            for lane in job.lanes:
                if not lane.complete and lane.worker not in self.workers and self._is_given_up(lane):
                    worker = self._successor(lane, job)
                    if worker is not None:
                        self._write({"what": "move", "job": job.id, "lane": lane.number, "worker": worker})
            for worker in self.workers:
                if self._wants_lane(job, worker):
                    self._write({"what": "lane", "job": job.id, "worker": worker})

    def may_get_lanes(self, job: Job) -> bool:
        """Whether a job may yet get another lane: of a worker that a former dispatcher knew and that may come back.

        Only a job that has a lane for each worker waits for that; elsewhere the workers that are there do all.
        """
        if ShardingPolicy(job.mode) is not ShardingPolicy.OFF or time.monotonic() >= self._patience_until:
            return False
        return not self._ledger.state.workers <= self.workers.keys()

    @property
    def addresses(self) -> set[str]:
        """The addresses of the connected workers."""
        return {worker.address for worker in self.workers.values()}

    def address(self, lane: Lane) -> str:
        """The address of a lane for consumers; "" if its worker is lost."""
        worker = self.workers.get(lane.worker)
        return "" if worker is None else worker.address

    def _note(self, what: str, worker: str) -> None:
        """Notes for a later dispatcher whether it should wait for a worker."""
        with suppress(StorageFull):  # it would only wait in vain, or not at all
            self._ledger.write({"what": what, "worker": worker})

    def _write(self, entry: dict[str, object]) -> None:
        self._ledger.write(entry)
        self._tell()

    def _is_given_up(self, lane: Lane) -> bool:
        return not lane.worker or lane.worker in self._lost or time.monotonic() >= self._patience_until

    def _successor(self, lane: Lane, job: Job) -> str | None:
        """The lane's designated worker, or the one with the fewest lanes; None if no worker may have it."""
        if ShardingPolicy(job.mode).is_static:
            wanted = self._worker_addresses[lane.number]
            for name, worker in self.workers.items():
                if wanted in (worker.address, worker.address.rpartition(":")[0]):
                    return name
        jobs = self._ledger.state.jobs.values()
        lanes = [lane.worker for job in jobs for lane in job.lanes if not lane.complete]
        return min(self._allowed(job), key=lanes.count, default=None)

    def _allowed(self, job: Job) -> list[str]:
        """The workers that may compute a job."""
        return [name for name, worker in self.workers.items() if job.may_use(worker.address)]

    def _wants_lane(self, job: Job, worker: str) -> bool:
        if job.closed or any(lane.worker == worker for lane in job.lanes) or worker not in self._allowed(job):
            return False
        match ShardingPolicy(job.mode):
            case ShardingPolicy.DYNAMIC:
                # The first lane also reports that there is no element, or why.
                return not job.lanes or self._ledger.state.has_splits(job)
            case ShardingPolicy.OFF:
                # A worker that replaces a lost one, whose lane has moved, adds no further copy of the data.
                return len(job.lanes) < len(self._allowed(job))
        return False
