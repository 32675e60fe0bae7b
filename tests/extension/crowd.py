"""Models of runs with any number of replicas, as their producers make them: rings, a feed, explanations."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from tests.extension.gallery import model
from tests.telemetry.simulation import MS, Call, Replicas
from workbench.backends.summary import summary
from workbench.data.cost.flow import pipeline_flow, replica_waits
from workbench.data.cost.profile import PipelineProfile, QueueProfile, StageProfile, Workers
from workbench.data.dataset import Dataset
from workbench.data.explanation import input_flow
from workbench.data.sharding.explain import explain_sharding
from workbench.data.sharding.model import Shape
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.recording.drain import Drain
from workbench.telemetry.snapshot import SampledSteps
from workbench.telemetry.told import ResultCourse
from workbench.ui.inspect.spread import spread_of
from workbench.ui.models.cluster import (
    DeviceNode,
    Devices,
    DeviceUse,
    HostNode,
    ReplicaNode,
    StrategyNode,
    Topology,
    WorkerNode,
)
from workbench.ui.models.collectives_model import collectives_model
from workbench.ui.models.inspected import InspectedValue, ReplicaSummary, Values
from workbench.ui.models.sharding import ArrayPart, ArraySharding
from workbench.ui.render.plain_values import plain
from workbench.ui.sharding.dataset_model import dataset_model

A_WORKER: Final = 8
"""Replicas of a worker, which are all of its host."""


@dataclass(slots=True)
class Crowd:
    """A run of `replicas`, of which one is late step after step; what it tells goes through rings into a feed.

    Attributes:
      replicas: How many; each worker has eight.
      capacity: Records that a ring holds: whoever does not drain them in time loses some.
      feed: What views are drawn of.
    """

    replicas: int
    capacity: int = 8
    feed: Feed = field(default_factory=Feed)
    _rings: Replicas = field(init=False)
    _drains: list[Drain] = field(init=False)
    _random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    _step: int = 0

    def __post_init__(self) -> None:
        hosts = [f"host-{replica // A_WORKER}" for replica in range(self.replicas)]
        self._rings = Replicas(hosts, capacity=self.capacity)
        self._drains = [Drain() for _ in range(0, self.replicas, A_WORKER)]

    def work(self, steps: int, *, at_ns: int | None = None) -> None:
        """Makes so many steps, which wait in the rings; they begin now, or at another time by `time.monotonic_ns`."""
        for _ in range(steps):
            start = time.monotonic_ns() if at_ns is None else at_ns
            late = self._random.gamma(2.0, 0.2 * MS, self.replicas)
            late[self.replicas // 3] += 5 * MS
            enter = (start + late).astype(np.int64).tolist()
            op, nbytes = ("all_reduce", 1 << 20) if self._step % 3 else ("all_gather", 4096)
            self._rings.record(Call(enter, max(enter) + MS, step=self._step, op=op, nbytes=nbytes))
            self._step += 1

    def speak(self, lines: int) -> None:
        """Makes replicas print."""
        for line in range(lines):
            ring = self._rings.rings[(self._step + line) % self.replicas]
            ring.emit(
                "log", "stdout", f"step {self._step}: loss {self._random.random():.3f}", step=self._step
            )

    def batches(self) -> Iterator[bytes]:
        """What has come since the last call, as workers ship it."""
        for at, drain in enumerate(self._drains):
            rings = self._rings.rings[at * A_WORKER : (at + 1) * A_WORKER]
            if batch := drain.take((ring, None) for ring in rings):
                yield batch

    def deliver(self) -> None:
        """Brings the feed up to date."""
        for batch in self.batches():
            self.feed.ingest(batch)

    def collectives(self) -> dict[str, Any]:
        """The model of timings."""
        return plain(collectives_model(self.feed.snapshot(), status="live"))

    def topology(self, *, workers: int, hosts: int) -> dict[str, Any]:
        """Where the replicas are: spread evenly over `workers` on `hosts`."""
        each = self.replicas // workers
        nodes = [
            WorkerNode(str(worker), 1000 + worker, "live", "", 1 << 28, 0.1, self._devices(worker, each))
            for worker in range(workers)
        ]
        on = workers // hosts
        parts = [HostNode(f"host-{at}", tuple(nodes[at * on : (at + 1) * on])) for at in range(hosts)]
        strategy = StrategyNode("MirroredStrategy", self.replicas, "live", "threads", 1, self._step)
        return plain(Topology("crowd", "live", tuple(parts), (strategy,)))

    def devices(self) -> dict[str, Any]:
        """How much of each device is in use: one idles, and the memory of another is nearly full."""
        percents = self._random.normal(70, 4, self.replicas).round(1)
        percents[self.replicas // 4] = 2.5
        memory = self._random.normal(0.25, 0.005, self.replicas)
        memory[self.replicas // 2] = 0.96
        uses = [
            DeviceUse(
                *(str(at), f"host-{at // 8}", f"worker {at}", "CPU", "live", use, int(share * (1 << 30))),
                *(1 << 30, (use,) * 32),
            )
            for at, (use, share) in enumerate(zip(percents.tolist(), memory.tolist(), strict=True))
        ]
        return plain(Devices("crowd", "live", tuple(uses)))

    def array(self) -> dict[str, Any]:
        """Who holds which part of an array."""
        parts = [
            ArrayPart(at, f"host-{at // 8}", "cpu:0", (8 * at, 0), (8 * at + 8, 64), 2048)
            for at in range(self.replicas)
        ]
        size = 2048 * self.replicas
        sentence = f"axis 0 split {self.replicas} ways"
        shape = (8 * self.replicas, 64)
        return plain(ArraySharding("w", "PerReplica", shape, "float32", tuple(parts), size, 0.0, sentence))

    def dataset(self) -> dict[str, Any]:
        """Who reads what."""
        data = Dataset.range(4 * self.replicas + 3).batch(self.replicas)
        return plain(dataset_model(explain_sharding(data, Shape(1, self.replicas))))

    def input(self) -> dict[str, Any]:
        """What input costs, with a host for each replica, of which three stand out."""
        slow, other, starving = (self.replicas * part // 8 for part in (1, 3, 5))
        parse = self._random.normal(4, 0.2, self.replicas).tolist()
        parse[slow] = 9.4
        waits = self._random.uniform(0.2, 0.8, self.replicas).tolist()
        waits[starving] = 4.1
        pipelines = []
        for host in range(self.replicas):
            given = 4000 + host % 37
            queue = QueueProfile(8, chosen=True, fills=300 + host % 50, looks=100, held_bytes=3 << 20)
            stages = [
                StageProfile("text lines", given, produced_bytes=given << 10, own_seconds=0.3),
                StageProfile("map(parse)", given, own_seconds=parse[host], workers=Workers(2)),
                StageProfile("batch(32)", given // 32, own_seconds=0.2),
                StageProfile("prefetch", given // 32, workers=Workers(1), queue=queue),
            ]
            if host == other:
                stages.insert(2, StageProfile("shuffle(1000)", given, own_seconds=0.4))
            profile = PipelineProfile(tuple(stages), 10.0)
            pipelines.append(pipeline_flow(profile, host=host, name=f"host-{host}"))
        told = replica_waits(waits, range(self.replicas), 10.0)
        flow = input_flow(pipelines, told, status="live", elapsed_seconds=10.0, limit="epoch 3")
        sampled = SampledSteps("crowd", "MirroredStrategy/1", tuple(range(100, 140)))
        percent = tuple(self._random.uniform(30, 45, 40).round(1).tolist())
        return plain(replace(flow, sampled=sampled, waited_percent=percent))

    def data_service(self) -> dict[str, Any]:
        """A data service with a job and a worker for each replica."""
        one = model("service_live")
        jobs = [one["jobs"][1] | {"name": f"job {replica}"} for replica in range(self.replicas)]
        workers = [
            one["workers"][0] | {"address": f"10.0.{replica // 250}.{replica % 250}:5000"}
            for replica in range(self.replicas)
        ]
        return one | {"jobs": jobs, "workers": workers}

    def servers(self) -> dict[str, Any]:
        """Parameter servers, and workers that run functions: as many of each as there are replicas."""
        one = model("servers_live")
        servers = [one["servers"][0] | {"name": f"ps:{replica}"} for replica in range(self.replicas)]
        workers = [one["workers"][0] | {"name": f"worker:{replica}"} for replica in range(self.replicas)]
        return one | {"servers": servers, "workers": workers}

    def values(self) -> dict[str, Any]:
        """Arrays that differ from replica to replica, of which one is not finite and one is far from the others."""
        rows = self._random.normal(0, 1, (self.replicas, 40))
        rows[self.replicas // 5] += 30
        rows[self.replicas // 2, 3] = np.nan
        return self._inspected("activations", list(rows))

    def losses(self) -> dict[str, Any]:
        """A number of each replica and how it has gone, of which one is not finite and two are far from the others."""
        steps = 60
        noise = self._random.normal(0, 0.02, (steps, self.replicas))
        losses = 2 / (1 + np.arange(steps) / 8)[:, None] + noise
        losses[-1, self.replicas // 5] += 0.4
        losses[-1, self.replicas - 3] -= 0.25
        losses[-1, self.replicas // 2] = np.nan
        low, mean, high = np.nanquantile(losses, (0.1, 0.5, 0.9), axis=1).tolist()
        course = ResultCourse(
            "loss", "train_step", tuple(range(steps)), tuple(mean), (), tuple(low), tuple(high)
        )
        return self._inspected("loss", list(losses[-1]), course)

    def _inspected(self, name: str, arrays: list[Any], course: ResultCourse | None = None) -> dict[str, Any]:
        replicas = tuple(
            ReplicaSummary(at, f"host-{at // A_WORKER}", f"cpu:{at % A_WORKER}", found, 0.2, step=59)
            for at, found in enumerate(map(summary, arrays))
        )
        value = InspectedValue(
            *(name, "PerReplica", replicas, None),
            spread=spread_of(replicas),
            run_id="crowd",
            group="MirroredStrategy/1",
            course=course,
        )
        return plain(Values((value,), None, time.time(), None))

    def _devices(self, worker: int, each: int) -> tuple[DeviceNode, ...]:
        doing = f"step {self._step}: all_reduce #0, waiting"
        return tuple(
            DeviceNode(
                f"cpu:{at}", "CPU", (ReplicaNode("MirroredStrategy", worker * each + at, True, doing),)
            )
            for at in range(each)
        )
