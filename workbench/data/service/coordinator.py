"""What a dispatcher answers: it deals splits, places lanes on workers, and accepts each element once."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from workbench import forks
from workbench.data.service.journal import Entry, Journal
from workbench.data.service.policy import ShardingPolicy
from workbench.data.service.server import Session, unknown
from workbench.data.service.state import Job, Lane, Registered, State
from workbench.data.service.wire import Fields
from workbench.data.stored.writing import replace_file
from workbench.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from workbench.io.storage import storage

Reply = tuple[Fields, bytes]
_LONGEST_WAIT_SECONDS = 5.0
_TICK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a dispatcher waits before it gives something up, in seconds.

    Attributes:
      job_gc_check: Between two looks for jobs that nobody reads.
      job_gc: How long nobody reads a job before it is forgotten.
      worker: How long a worker is silent before its lanes go to others.
    """

    job_gc_check: float
    job_gc: float
    worker: float


@dataclass(slots=True)
class LiveWorker:
    """A worker that is there.

    Attributes:
      address: Where consumers reach it.
      session: Its connection.
      seen: When it asked last, as `time.monotonic`.
      waiting: Whether it is asking right now.
      elements: How many elements it has handed out.
      rate: How many per second, lately.
    """

    address: str
    session: Session
    seen: float
    waiting: bool = True
    elements: int = 0
    rate: float = 0.0


class Coordinator:
    """Answers workers and consumers. One lock guards everything; whoever waits for news waits for its condition."""

    def __init__(self, work_dir: str | None, limits: Limits, worker_addresses: tuple[str, ...]) -> None:
        """Takes up what the journal in `work_dir` says; None keeps everything in memory.

        Raises:
          DataLossError: if the journal is damaged.
        """
        self._state = State()
        self._limits = limits
        self._worker_addresses = worker_addresses
        self._folder = None if work_dir is None else os.path.join(work_dir, "datasets")
        self._bytes: dict[str, bytes] = {}
        self._journal: Journal | None = None
        if work_dir is not None:
            self._journal = Journal(os.path.join(work_dir, "journal"))
            for entry in self._journal.entries:
                self._state.apply(entry)
        self._news = forks.lock(threading.Condition())
        # Numbers of a former dispatcher would mean something else: those of this one begin elsewhere.
        self._version = time.monotonic_ns()
        self._workers: dict[str, LiveWorker] = {}
        self._lost: set[str] = set()
        self._patience_until = time.monotonic() + limits.worker
        self._consumers: dict[str, dict[str, Session]] = {}
        self._idle_since: dict[str, float] = dict.fromkeys(self._state.jobs, time.monotonic())
        self._next_gc = 0.0
        self._stopped = False
        self._methods: dict[str, Callable[[Fields, bytes, Session], Reply]] = {
            "register": self._register,
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
        """A worker or consumer has gone; one that comes back says so."""
        with self._news:
            worker = self._workers.get(session.who)
            if worker is not None and worker.session is session:
                self._lose(session.who)
            readers = self._consumers.get(session.job, {})
            if readers.get(session.who) is session:
                self._leave(session.job, session.who)

    def stop(self) -> None:
        """Ends the waits of all that ask for news."""
        with self._news:
            self._stopped = True
            self._news.notify_all()
        self._thread.join(10.0)
        with self._news:
            if self._journal is not None:
                self._journal.close()
                self._journal = None

    @property
    def num_workers(self) -> int:
        """How many workers are there."""
        return len(self._workers)

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
        self._keep(digest, payload)
        self._write({"what": "dataset", "dataset": asdict(registered)})
        return {"id": registered.id}, b""

    def _job(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        name, iteration, dataset = fields["name"], fields["iteration"], fields["dataset"]
        mode = ShardingPolicy(fields["mode"])
        registered = self._registered(dataset)
        # A job of one consumer has an id of the consumer's, so asking again after a lost reply makes no second one.
        known: str = self._state.names.get((name, iteration), "") if name else fields["id"]
        job = self._state.jobs.get(known)
        if job is None:
            if mode is ShardingPolicy.DYNAMIC and registered.splits is None:
                raise InvalidArgumentError(registered.unsplittable)
            if mode.is_static and not self._worker_addresses:
                raise FailedPreconditionError(
                    f"ShardingPolicy.{mode.name} gives each worker a fixed part, so the dispatcher must know them all: "
                    f"DispatcherConfig(worker_addresses=[...]); or use ShardingPolicy.DYNAMIC"
                )
            job = Job(fields["id"], name, iteration, dataset, mode.value, fields["num_consumers"])
            self._write({"what": "job", "job": _described(job)})
            if mode.is_static:
                for _ in self._worker_addresses:
                    self._write({"what": "lane", "job": job.id, "worker": ""})
            self._place()
        elif (job.dataset, job.mode, job.num_consumers) != (dataset, mode.value, fields["num_consumers"]):
            raise InvalidArgumentError(
                f"job_name {name!r} is in use for another dataset, processing mode or number of consumers: "
                f"{(job.dataset, ShardingPolicy(job.mode).name, job.num_consumers)}, got "
                f"{(dataset, mode.name, fields['num_consumers'])}; choose another name"
            )
        self._join(job.id, fields["consumer"], session)
        return {"job": job.id}, b""

    def _view(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        job = self._known_job(fields["job"])
        self._join(job.id, fields["consumer"], session)
        self._wait_for_news(fields)
        job = self._known_job(fields["job"])
        lanes = [[lane.number, lane.moves, self._address(lane), lane.complete] for lane in job.lanes]
        view = {"version": self._version, "closed": job.closed, "lanes": lanes}
        return {**view, "workers": len(self._workers)}, b""

    def _ack(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        job = self._known_job(fields["job"])
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
        if job is not None:
            self._leave(job.id, fields["consumer"])
            if not job.name:
                self._forget(job)
        return {}, b""

    def _status(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        jobs = [self._job_status(job) for job in self._state.jobs.values()]
        lanes = [lane for job in self._state.jobs.values() for lane in job.lanes if not lane.complete]
        workers = [
            {
                "address": worker.address,
                "lanes": sum(lane.worker == name for lane in lanes),
                "elements": worker.elements,
                "elements_per_second": worker.rate,
            }
            for name, worker in self._workers.items()
        ]
        return {"jobs": jobs, "workers": workers, "datasets": len(self._state.datasets)}, b""

    def _job_status(self, job: Job) -> Fields:
        splits = self._state.datasets[job.dataset].splits
        dynamic = job.mode == ShardingPolicy.DYNAMIC.value and splits is not None
        dealt = [sum(map(len, lane.deals.values())) for lane in job.lanes]
        done = sum(count for lane, count in zip(job.lanes, dealt, strict=True) if lane.complete)
        left = (
            sum(max(0, n - job.dealt.get(f"{k}/0", 0)) for k, n in enumerate(splits or ())) if dynamic else 0
        )
        return {
            "name": job.name or job.id,
            "iteration": job.iteration,
            "processing_mode": ShardingPolicy(job.mode).name,
            "consumers": len(self._consumers.get(job.id, ())),
            "lanes": len(job.lanes),
            "lanes_complete": sum(lane.complete for lane in job.lanes),
            "splits_done": done,
            "splits_leased": sum(dealt) - done,
            "splits_left": left,
            "elements": sum(len(lane.acked) for lane in job.lanes),
            "complete": job.complete,
        }

    # Workers

    def _dataset(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        registered = self._registered(fields["dataset"])
        return {"compression": registered.compression}, self._kept(registered.digest)

    def _tasks(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        name = session.who = fields["worker"]
        now = time.monotonic()
        worker = self._workers.get(name)
        if worker is None:
            self._lost.discard(name)
            worker = self._workers[name] = LiveWorker(fields["address"], session, now)
            self._place()
        else:
            passed, made = now - worker.seen, fields["elements"] - worker.elements
            if passed > 0.1:
                worker.rate = made / passed
                worker.elements = fields["elements"]
                worker.seen = now
        worker.session, worker.waiting = session, True
        self._wait_for_news(fields)
        worker.waiting = False
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
            "acknowledged": lane.acked.prefix,
            "failed": lane.failed,
        }

    def _deal(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        job = self._known_job(fields["job"])
        lane = job.lanes[fields["lane"]]
        provider, nth = fields["provider"], fields["nth"]
        key = f"{provider}/{fields['visit']}"
        deals = lane.deals.get(key, [])
        if nth < len(deals):  # dealt before: to a worker that was lost, or the reply was
            return {"split": deals[nth]}, b""
        split = self._state.next_split(job, provider, key)
        if split is not None:
            entry = {"what": "deal", "job": job.id, "lane": lane.number, "key": key, "split": split}
            self._write(entry, news=False)
        return {"split": split}, b""

    def _end(self, fields: Fields, payload: bytes, session: Session) -> Reply:
        job = self._known_job(fields["job"])
        lane = job.lanes[fields["lane"]]
        if lane.total is None:
            entry = {"what": "end", "job": job.id, "lane": lane.number, "total": fields["total"]}
            self._write(entry)
            if all(each.total is not None for each in job.lanes):
                self._write({"what": "close", "job": job.id})
        return {}, b""

    # Lanes and workers

    def _place(self) -> None:
        """Gives lanes whose worker is lost to others, and new workers lanes of their own."""
        if not self._workers:
            return
        for job in self._state.jobs.values():
            for lane in job.lanes:
                if not lane.complete and lane.worker not in self._workers and self._is_given_up(lane):
                    entry = {"what": "move", "job": job.id, "lane": lane.number}
                    self._write({**entry, "worker": self._successor(lane, job)})
            for worker in self._workers:
                if self._wants_lane(job, worker):
                    self._write({"what": "lane", "job": job.id, "worker": worker})

    def _is_given_up(self, lane: Lane) -> bool:
        return not lane.worker or lane.worker in self._lost or time.monotonic() >= self._patience_until

    def _successor(self, lane: Lane, job: Job) -> str:
        """The worker that the lane is meant for, or the one that has the fewest."""
        if ShardingPolicy(job.mode).is_static:
            wanted = self._worker_addresses[lane.number]
            for name, worker in self._workers.items():
                if wanted in (worker.address, worker.address.rpartition(":")[0]):
                    return name
        lanes = [lane.worker for job in self._state.jobs.values() for lane in job.lanes if not lane.complete]
        return min(self._workers, key=lanes.count)

    def _wants_lane(self, job: Job, worker: str) -> bool:
        if job.closed or any(lane.worker == worker for lane in job.lanes):
            return False
        match ShardingPolicy(job.mode):
            case ShardingPolicy.DYNAMIC:
                return self._state.has_splits(job)
            case ShardingPolicy.OFF:
                # One that takes the place of a lost worker, whose lane has moved, makes no further copy. Rounds go over
                # a number of lanes that does not change.
                return len(job.lanes) < len(self._workers) and not (
                    job.num_consumers and self._has_begun(job)
                )
        return False

    def _has_begun(self, job: Job) -> bool:
        return any(len(lane.acked) for lane in job.lanes)

    def _lose(self, name: str) -> None:
        del self._workers[name]
        self._lost.add(name)
        self._place()
        self._tell()

    def _address(self, lane: Lane) -> str:
        worker = self._workers.get(lane.worker)
        return "" if worker is None else worker.address

    def _join(self, job: str, consumer: str, session: Session) -> None:
        session.who, session.job = consumer, job
        self._consumers.setdefault(job, {})[consumer] = session
        self._idle_since.pop(job, None)

    def _leave(self, job: str, consumer: str) -> None:
        readers = self._consumers.get(job, {})
        readers.pop(consumer, None)
        if not readers and job in self._state.jobs:
            self._idle_since[job] = time.monotonic()

    def _keep_house(self) -> None:
        with self._news:
            while not self._news.wait_for(lambda: self._stopped, _TICK_SECONDS):
                now = time.monotonic()
                for name, worker in list(self._workers.items()):
                    if not worker.waiting and now - worker.seen > self._limits.worker:
                        self._lose(name)
                self._place()
                if now >= self._next_gc:
                    self._next_gc = now + self._limits.job_gc_check
                    for job, since in list(self._idle_since.items()):
                        if now - since >= self._limits.job_gc and not self._state.jobs[job].complete:
                            self._forget(self._state.jobs[job])

    def _forget(self, job: Job) -> None:
        self._write({"what": "forget", "job": job.id})
        self._idle_since.pop(job.id, None)
        self._consumers.pop(job.id, None)

    # What is known

    def _registered(self, dataset: int | str) -> Registered:
        registered = self._state.datasets.get(dataset)
        if registered is None:
            raise NotFoundError(
                f"no dataset {dataset!r} is registered with this dispatcher; register_dataset gives the id. One "
                "that was started again knows the former ones only with fault_tolerant_mode"
            )
        return registered

    def _known_job(self, job: str) -> Job:
        known = self._state.jobs.get(job)
        if known is None:
            raise FailedPreconditionError(
                f"the dispatcher has no job {job!r}: it was started again without fault_tolerant_mode, or nobody read "
                "the job for job_gc_timeout_ms; iterate over the dataset again"
            )
        return known

    def _wait_for_news(self, fields: Fields) -> None:
        wait = min(float(fields["wait"]), _LONGEST_WAIT_SECONDS, self._limits.worker / 3)
        self._news.wait_for(lambda: self._stopped or self._version != fields["version"], wait)

    def _write(self, entry: Entry, *, news: bool = True) -> None:
        if self._journal is not None:
            self._journal.append(entry)
        self._state.apply(entry)
        if news:
            self._tell()

    def _tell(self) -> None:
        self._version += 1
        self._news.notify_all()

    def _keep(self, digest: str, payload: bytes) -> None:
        if self._folder is None:
            self._bytes[digest] = payload
            return
        path = os.path.join(self._folder, digest)
        with storage(path):
            replace_file(path, payload)

    def _kept(self, digest: str) -> bytes:
        if self._folder is None:
            return self._bytes[digest]
        path = os.path.join(self._folder, digest)
        with open(path, "rb") as file:
            payload = file.read()
        if hashlib.sha256(payload).hexdigest() != digest:
            raise DataLossError(f"the registered dataset in {path!r} is damaged; register it again")
        return payload


def _described(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "name": job.name,
        "iteration": job.iteration,
        "dataset": job.dataset,
        "mode": job.mode,
        "num_consumers": job.num_consumers,
    }
