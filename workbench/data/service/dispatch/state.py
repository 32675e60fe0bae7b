"""What a dispatcher knows: datasets, jobs and their lanes. Every change is an entry, so entries rebuild the state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from workbench.data.service.dispatch.acknowledged import Acknowledged
from workbench.data.service.dispatch.journal import Entry
from workbench.data.service.policy import ShardingPolicy
from workbench.data.service.splits import ENDLESS
from workbench.errors import DataLossError

Pairs = list[tuple[int, int]]


@dataclass(slots=True)
class Registered:
    """A registered dataset.

    Attributes:
      id: Its id.
      fingerprint: Identifies the dataset.
      digest: SHA-256 of its bytes.
      splits: How many splits each of its sources has; None if one cannot be split, for the reason in `unsplittable`.
      endless: Whether it is known to be infinite.
      compression: The compression of its elements in transit.
      finite: Whether it is known to be finite.
      kind: Identifies the dataset, ignoring seeds of shuffles and drawn seeds.
      spec: The nested spec of its elements, from `spec_json`; None if an earlier version registered it.
    """

    id: int | str
    fingerprint: str
    digest: str
    splits: list[int] | None
    unsplittable: str
    endless: bool
    compression: str
    finite: bool = False
    kind: str = ""
    spec: Any = None


@dataclass(slots=True)
class Lane:
    """The stream of elements of one worker.

    Attributes:
      number: Its number in the job.
      worker: Id of the worker that computes it or computed it last.
      moves: How often it was moved to another worker.
      deals: By source and visit, the splits that it received, in order.
      total: Its number of elements; None until it ends.
      acked: The acknowledged elements.
      failed: How many of them could not be made.
      verdicts: By consumer, its last acknowledgement and what was accepted, because it may repeat the request.
    """

    number: int
    worker: str
    moves: int = 0
    deals: dict[str, list[int]] = field(default_factory=dict)
    total: int | None = None
    acked: Acknowledged = field(default_factory=Acknowledged)
    failed: int = 0
    verdicts: dict[str, tuple[int, Pairs]] = field(default_factory=dict)

    @property
    def described(self) -> dict[str, Any]:
        """All of it, for `of`."""
        names = ("number", "worker", "moves", "deals", "total", "failed", "verdicts")
        return {**{name: getattr(self, name) for name in names}, "acked": self.acked.ranges}

    @staticmethod
    def of(described: dict[str, Any]) -> Lane:
        """The lane that was described."""
        verdicts = {
            consumer: (number, [(start, stop) for start, stop in accepted])
            for consumer, (number, accepted) in described["verdicts"].items()
        }
        acked = Acknowledged((start, stop) for start, stop in described["acked"])
        return Lane(**{**described, "verdicts": verdicts, "acked": acked})

    @property
    def complete(self) -> bool:
        """Whether every element was acknowledged."""
        return self.total is not None and self.acked.prefix >= self.total


@dataclass(slots=True)
class Job:
    """One pass of all consumers over a dataset.

    Attributes:
      id: Its id.
      name: The name that consumers share, "" for a job of one consumer.
      iteration: The number of the pass under this name.
      dataset: Id of the dataset.
      mode: Value of the `ShardingPolicy`.
      num_consumers: How many consumers read in rounds; 0 if they do not.
      cached: Whether trainers share its elements; each trainer gets all of them.
      target_workers: "LOCAL" if consumers read from workers in their own processes only.
      lanes: Its lanes, by number.
      dealt: By source and visit, the next split to assign.
      closed: Whether no further lane will be added.
      local: Addresses of the workers in its consumers' processes, as far as reported.
    """

    id: str
    name: str
    iteration: int
    dataset: int | str
    mode: int
    num_consumers: int
    cached: bool = False
    target_workers: str = "AUTO"
    lanes: list[Lane] = field(default_factory=list)
    dealt: dict[str, int] = field(default_factory=dict)
    closed: bool = False
    local: set[str] = field(default_factory=set)

    @property
    def terms(self) -> dict[str, Any]:
        """The terms that all consumers of a job must agree on."""
        return {
            "dataset": self.dataset,
            "processing_mode": ShardingPolicy(self.mode).name,
            "num_consumers": self.num_consumers,
            "cross_trainer_cache": self.cached,
            "target_workers": self.target_workers,
        }

    @property
    def described(self) -> dict[str, Any]:
        """The description that recreates the job, without its lanes."""
        names = ("id", "name", "iteration", "dataset", "mode", "num_consumers", "cached", "target_workers")
        return {name: getattr(self, name) for name in names}

    def may_use(self, address: str) -> bool:
        """Whether the worker at this address may compute lanes of it."""
        return self.target_workers != "LOCAL" or address in self.local

    def round_of(self, index: int) -> int:
        """The first round whose element a consumer that reads in rounds has not acknowledged."""
        rounds = []
        for lane in self.lanes:
            nth = lane.acked.prefix // self.num_consumers if self.num_consumers else 0
            while self.num_consumers and nth * self.num_consumers + index in lane.acked:
                nth += 1
            rounds.append(nth * len(self.lanes) + lane.number)
        return min(rounds, default=0)

    @property
    def complete(self) -> bool:
        """Whether every element of every lane was acknowledged."""
        return self.closed and all(lane.complete for lane in self.lanes)


class State:
    """Datasets and jobs according to the entries.

    Attributes:
      datasets: The datasets, by id.
      jobs: The jobs, by id.
      names: Ids of jobs by name and iteration.
      workers: Ids of the workers that are there, or were when the dispatcher ended.
    """

    def __init__(self) -> None:
        self.datasets: dict[int | str, Registered] = {}
        self.jobs: dict[str, Job] = {}
        self.names: dict[tuple[str, int], str] = {}
        self.workers: set[str] = set()

    def apply(self, entry: Entry) -> None:
        """Makes the change that an entry describes.

        Raises:
          DataLossError: if it does not match the earlier ones.
        """
        try:
            self._apply(entry)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise DataLossError(
                f"the dispatcher's journal has an entry that fits no other: {entry}"
            ) from error

    def entries(self) -> Iterator[Entry]:
        """The fewest entries that make this state."""
        for worker in sorted(self.workers):
            yield {"what": "joined", "worker": worker}
        for registered in self.datasets.values():
            yield {"what": "dataset", "dataset": asdict(registered)}
        for job in self.jobs.values():
            yield {"what": "job", "job": job.described}
            for lane in job.lanes:
                yield {"what": "lane_so_far", "job": job.id, "lane": lane.described}
            yield {"what": "dealt_so_far", "job": job.id, "dealt": job.dealt}
            if job.closed:
                yield {"what": "close", "job": job.id}

    def _apply(self, entry: Entry) -> None:
        match entry["what"]:
            case "joined":
                self.workers.add(entry["worker"])
            case "lost":
                self.workers.discard(entry["worker"])
            case "dataset":
                registered = Registered(**entry["dataset"])
                self.datasets[registered.id] = registered
            case "job":
                job = Job(**entry["job"])
                self.jobs[job.id] = job
                if job.name:
                    self.names[job.name, job.iteration] = job.id
            case "lane":
                job = self.jobs[entry["job"]]
                job.lanes.append(Lane(len(job.lanes), entry["worker"]))
            case "lane_so_far":
                self.jobs[entry["job"]].lanes.append(Lane.of(entry["lane"]))
            case "dealt_so_far":
                self.jobs[entry["job"]].dealt = dict(entry["dealt"])
            case "move":
                lane = self._lane(entry)
                lane.worker, lane.moves = entry["worker"], lane.moves + 1
            case "deal":
                key, split = entry["key"], entry["split"]
                self._lane(entry).deals.setdefault(key, []).append(split)
                self.jobs[entry["job"]].dealt[key] = split + 1
            case "end":
                self._lane(entry).total = entry["total"]
            case "close":
                self.jobs[entry["job"]].closed = True
            case "ack":
                self._acknowledge(self._lane(entry), entry)
            case "forget":
                job = self.jobs.pop(entry["job"])
                self.names.pop((job.name, job.iteration), None)
            case _:
                raise ValueError(entry["what"])

    def _lane(self, entry: Entry) -> Lane:
        return self.jobs[entry["job"]].lanes[entry["lane"]]

    def _acknowledge(self, lane: Lane, entry: Entry) -> None:
        accepted = [(int(start), int(stop)) for start, stop in entry["accepted"]]
        for start, stop in accepted:
            lane.acked.add(start, stop)
        lane.failed += entry["failed"]
        lane.verdicts[entry["consumer"]] = entry["number"], accepted

    def next_split(self, job: Job, provider: int, key: str) -> int | None:
        """The next split to assign; None if all are assigned.

        Args:
          job: The job.
          provider: Number of the source in the dataset.
          key: The source in this repetition.
        """
        counts: Any = self.datasets[job.dataset].splits
        split = job.dealt.get(key, 0)
        return split if counts[provider] == ENDLESS or split < counts[provider] else None

    def has_splits(self, job: Job) -> bool:
        """Whether a lane that starts now would get a split."""
        registered = self.datasets[job.dataset]
        return registered.endless or any(
            self.next_split(job, provider, f"{provider}/0") is not None
            for provider in range(len(registered.splits or ()))
        )
