"""The dispatcher's answers: distributes splits, places lanes on workers, and accepts each element once."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from workbench import forks
from workbench.data.service.dispatch.audience import Audience
from workbench.data.service.dispatch.census import Census
from workbench.data.service.dispatch.journal import Entry
from workbench.data.service.dispatch.ledger import Ledger
from workbench.data.service.dispatch.placement import Placement
from workbench.data.service.dispatch.state import Job, Lane, Registered
from workbench.data.service.policy import CACHE_NEEDS_NO_END, NEEDS_NO_END, NO_LOCAL_WORKER, ShardingPolicy
from workbench.data.service.server import Session, unknown
from workbench.data.service.wire import Fields
from workbench.errors import FailedPreconditionError, InvalidArgumentError

Reply = tuple[Fields, bytes]
_LONGEST_WAIT_SECONDS = 5.0
_TICK_SECONDS = 0.5
_SEAT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a dispatcher waits before it gives something up, in seconds.

    Attributes:
      job_gc_check: Time between two searches for jobs without consumers.
      job_gc: How long a job may have no consumer before it is removed.
      worker: How long a worker may be silent before its lanes go to others.
    """

    job_gc_check: float
    job_gc: float
    worker: float


class Coordinator:
    """Answers workers and consumers. One lock guards everything; threads that wait for news wait for its condition."""

    def __init__(self, work_dir: str | None, limits: Limits, worker_addresses: tuple[str, ...]) -> None:
        """Restores the state from the journal in `work_dir`; None keeps everything in memory.

        Raises:
          DataLossError: if the journal is damaged.
        """
        self._ledger = Ledger(work_dir)
        self._state = self._ledger.state
        self._limits = limits
        self._worker_addresses = worker_addresses
        self._placement = Placement(self._ledger, worker_addresses, limits.worker, self._tell)
        self._audience = Audience(list(self._state.jobs))
        self._census = Census(self._state, self._placement, self._audience)
        self._news = forks.lock(threading.Condition())
        # Numbers from an earlier dispatcher would mean something else, so this one starts at another number.
        self._version = time.monotonic_ns()
        self._next_gc = 0.0
        self._stopped = False
        self._methods: dict[str, Callable[[Fields, bytes, Session], Reply]] = {
            "register": self._register,
            "spec": self._spec,
            "dataset": self._dataset,
            "job": self._job,
            "view": self._view,
            "ack": self._ack,
            "release": self._release,
            "tasks": self._tasks,
            "deal": self._deal,
            "end": self._end,
            "status": self._status,
        }
        self._thread = threading.Thread(target=self._keep_house, name="wb-data-dispatcher", daemon=True)
        self._thread.start()

    def answer(self, method: str, fields: Fields, payload: bytes, session: Session) -> Reply:
        """See `Answers.answer`."""
        known = self._methods.get(method)
        if known is None:
            raise unknown(method)
        with self._news:
            return known(fields, payload, session)

    def ended(self, session: Session) -> None:
        """Handles the end of a worker's or consumer's connection; one that comes back reports itself."""
        with self._news:
            worker = self._placement.workers.get(session.who)
            if worker is not None and worker.session is session:
                self._placement.lose(session.who)
            self._audience.leave(self._state.jobs.get(session.job), session.who, session)
            self._tell()

    def stop(self) -> None:
        """Ends all requests that wait for news."""
        with self._news:
            self._stopped = True
            self._news.notify_all()
        self._thread.join(10.0)
        with self._news:
            self._ledger.close()

    @property
    def stopped(self) -> bool:
        """Whether it was stopped."""
        return self._stopped

    @property
    def num_workers(self) -> int:
        """Number of connected workers."""
        return len(self._placement.workers)

    # Consumers

    def _register(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        wanted, fingerprint = fields["id"], fields["dataset"]["fingerprint"]
        for known in self._state.datasets.values():
            if known.fingerprint == fingerprint and (wanted is None or wanted == known.id):
                return {"id": known.id}, b""
        if wanted is not None and wanted in self._state.datasets:
            raise InvalidArgumentError(
                f"register_dataset: another dataset is registered as {wanted!r}; choose another dataset_id"
            )
        digest = hashlib.sha256(payload).hexdigest()
        numbers = [number for number in self._state.datasets if isinstance(number, int)]
        registered = Registered(
            id=max(numbers, default=999) + 1 if wanted is None else wanted, digest=digest, **fields["dataset"]
        )
        self._ledger.keep(digest, payload)
        self._write({"what": "dataset", "dataset": asdict(registered)})
        return {"id": registered.id}, b""

    def _spec(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        return {"spec": self._ledger.registered(fields["dataset"]).spec}, b""

    def _job(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        name, iteration = fields["name"], fields["iteration"]
        # For a job with one consumer, the consumer chooses the id, so repeating a request after a lost reply does not
        # start a second job.
        known: str = self._state.names.get((name, iteration), "") if name else fields["id"]
        job = self._state.jobs.get(known)
        wanted = Job(
            fields["id"], name, iteration, fields["dataset"], fields["mode"], fields["num_consumers"],
            fields["cached"], fields["target_workers"],
        )  # fmt: skip
        if job is not None and self._are_alike(job.dataset, wanted.dataset):
            wanted.dataset = job.dataset
        if wanted.target_workers == "LOCAL" and not self._placement.addresses & set(fields["local"]):
            raise FailedPreconditionError(NO_LOCAL_WORKER)
        if job is None:
            self._begin(wanted)
            job = self._state.jobs[wanted.id]
        elif job.terms != wanted.terms:
            pairs = {term: (was, wanted.terms[term]) for term, was in job.terms.items()}
            differ = ", ".join(
                f"{term}: {was}, got {got}" for term, (was, got) in pairs.items() if was != got
            )
            raise InvalidArgumentError(
                f"job_name {name!r} is in use for another {differ}; choose another name"
            )
        self._join(job, fields, session)
        self._placement.place()
        return {"job": job.id, "round": job.round_of(fields["index"]) if job.closed else 0}, b""

    def _are_alike(self, dataset: int | str, other: int | str) -> bool:
        """Whether datasets differ at most in the seeds of shuffles and in seeds that each consumer draws itself."""
        kind = self._ledger.registered(dataset).kind
        return bool(kind) and kind == self._ledger.registered(other).kind

    def _begin(self, job: Job) -> None:
        registered, mode = self._ledger.registered(job.dataset), ShardingPolicy(job.mode)
        if mode is ShardingPolicy.DYNAMIC and registered.splits is None:
            raise InvalidArgumentError(registered.unsplittable)
        if mode.is_static and not self._worker_addresses:
            raise FailedPreconditionError(
                f"ShardingPolicy.{mode.name} gives each worker a fixed part, so the dispatcher must know them all: "
                f"DispatcherConfig(worker_addresses=[...]); or use ShardingPolicy.DYNAMIC"
            )
        if job.num_consumers and registered.finite:
            raise FailedPreconditionError(NEEDS_NO_END)
        if job.cached and registered.finite:
            raise InvalidArgumentError(CACHE_NEEDS_NO_END)
        self._write({"what": "job", "job": job.described})
        if mode.is_static:
            for _ in self._worker_addresses:
                self._write({"what": "lane", "job": job.id, "worker": ""})

    def _join(self, job: Job, fields: Fields, session: Session) -> None:
        index, consumer = fields["index"], fields["consumer"]
        # A killed consumer's end may be noticed only after its successor has joined.
        if not self._news.wait_for(lambda: not self._audience.other(job.id, index, consumer), _SEAT_SECONDS):
            raise FailedPreconditionError(
                f"another consumer reads job {job.name!r} as consumer_index {index} of {job.num_consumers}; give each "
                "an index of its own"
            )
        self._audience.join(job.id, consumer, session, index)
        job.local.update(fields["local"])
        if job.num_consumers and not job.closed and job.lanes and not self._audience.missing(job):
            # Rounds need a fixed number of lanes.
            self._write({"what": "close", "job": job.id})

    def _view(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        self._join(self._ledger.job(fields["job"]), fields, session)
        self._placement.place()
        self._wait_for_news(fields)
        job = self._ledger.job(fields["job"])
        lanes = [
            [lane.number, lane.moves, self._placement.address(lane), lane.complete] for lane in job.lanes
        ]
        view = {"version": self._version, "closed": job.closed, "lanes": lanes}
        addresses = self._placement.addresses
        if job.target_workers == "LOCAL":
            addresses &= set(fields["local"])
        return {**view, "workers": len(addresses), "missing": self._audience.missing(job)}, b""

    def _ack(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        job = self._ledger.job(fields["job"])
        lane, consumer, number = job.lanes[fields["lane"]], fields["consumer"], fields["number"]
        before = lane.verdicts.get(consumer)
        if before is not None and before[0] == number:  # the reply was lost
            return {"accepted": before[1]}, b""
        accepted = lane.acked.missing(fields["start"], fields["stop"])
        entry = {
            "what": "ack",
            "job": job.id,
            "lane": lane.number,
            "accepted": accepted,
            "consumer": consumer,
        }
        self._write({**entry, "number": number, "failed": fields["failed"]}, news=False)
        if lane.complete:
            self._tell()
        return {"accepted": accepted}, b""

    def _release(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        job = self._state.jobs.get(fields["job"])
        self._audience.leave(job, fields["consumer"])
        if job is not None and not job.name:
            self._forget(job.id)
        self._tell()
        return {}, b""

    def _status(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        return self._census.fields(), b""

    # Workers

    def _dataset(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        registered = self._ledger.registered(fields["dataset"])
        return {"compression": registered.compression}, self._ledger.kept(registered.digest)

    def _tasks(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        name = session.who = fields["worker"]
        if name not in self._placement.workers:
            self._placement.join(name, fields["address"], session)
        worker = self._placement.workers[name]
        worker.asks(fields["elements"], session)
        self._wait_for_news(fields)
        worker.answered(session)
        lanes = [
            self._task(job, lane)
            for job in self._state.jobs.values()
            for lane in job.lanes
            if lane.worker == name and not lane.complete
        ]
        return {"version": self._version, "lanes": lanes}, b""

    def _task(self, job: Job, lane: Lane) -> Fields:
        return {
            "job": job.id,
            "lane": lane.number,
            "move": lane.moves,
            "dataset": job.dataset,
            "mode": job.mode,
            "epoch": (job.iteration << 16) + lane.number,
            "shards": len(self._worker_addresses),
            "consumers": job.num_consumers,
            "cached": job.cached,
            "acknowledged": lane.acked.prefix,
            "failed": lane.failed,
        }

    def _deal(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        job = self._ledger.job(fields["job"])
        lane = job.lanes[fields["lane"]]
        provider, nth = fields["provider"], fields["nth"]
        key = f"{provider}/{fields['visit']}"
        deals = lane.deals.get(key, [])
        if nth < len(deals):  # assigned before: the worker or the reply was lost
            return {"split": deals[nth]}, b""
        split = self._state.next_split(job, provider, key)
        if split is not None:
            entry = {"what": "deal", "job": job.id, "lane": lane.number, "key": key, "split": split}
            self._write(entry, news=False)
        return {"split": split}, b""

    def _end(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        job = self._ledger.job(fields["job"])
        lane = job.lanes[fields["lane"]]
        if lane.total is None:
            entry = {"what": "end", "job": job.id, "lane": lane.number, "total": fields["total"]}
            self._write(entry)
            self._close_ended(job)
        return {}, b""

    def _close_ended(self, job: Job) -> None:
        ended = job.lanes and all(lane.total is not None for lane in job.lanes)
        if ended and not job.closed and not self._placement.may_get_lanes(job):
            self._write({"what": "close", "job": job.id})

    # Housekeeping

    def _keep_house(self) -> None:
        with self._news:
            while not self._news.wait_for(lambda: self._stopped, _TICK_SECONDS):
                now = time.monotonic()
                self._placement.lose_silent(self._limits.worker)
                self._placement.place()
                for known in self._state.jobs.values():
                    self._close_ended(known)
                self._census.count()
                if now >= self._next_gc:
                    self._next_gc = now + self._limits.job_gc_check
                    for job in self._audience.idle(self._limits.job_gc):
                        if not self._state.jobs[job].complete:
                            self._forget(job)

    def _forget(self, job: str) -> None:
        self._write({"what": "forget", "job": job})
        self._audience.forget(job)

    def _wait_for_news(self, fields: Fields) -> None:
        wait = min(float(fields["wait"]), _LONGEST_WAIT_SECONDS, self._limits.worker / 3)
        self._news.wait_for(lambda: self._stopped or self._version != fields["version"], wait)

    def _write(self, entry: Entry, *, news: bool = True) -> None:
        self._ledger.write(entry)
        if news:
            self._tell()

    def _tell(self) -> None:
        self._version += 1
        self._news.notify_all()
