"""InputPlan: the part of a distributed dataset that each host reads, and how its replicas get theirs."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workbench.data.sharding.distributed import HostPipeline
from workbench.data.sharding.model import Shape
from workbench.data.sources.combine import Concatenated, Zipped
from workbench.data.sources.counting import Counting
from workbench.data.sources.memory import Slices, Whole
from workbench.data.spec import UnknownSpec
from workbench.data.stage import Pipeline
from workbench.data.stages.grouping.batch import Batch
from workbench.data.stages.grouping.split import EvenSplit, Regroup
from workbench.data.stages.ordering.select import AssertCardinality, Repeat, Shard, Skip, Take
from workbench.data.stages.ordering.shuffle import Shuffle
from workbench.data.stages.prefetch import Prefetch
from workbench.device_names import Device
from workbench.distribute.input.read_step import SharedPlace
from workbench.errors import InvalidArgumentError

# Sources and stages that only compute row numbers of arrays in memory. Repeating them in another process has no cost
# and changes nothing.
_PURE_SOURCES = (Counting, Slices, Whole)
_PURE_STAGES = (AssertCardinality, Batch, EvenSplit, Prefetch, Regroup, Repeat, Shard, Shuffle, Skip, Take)
_COMBINATIONS = (Concatenated, Zipped)


@dataclass(frozen=True, slots=True)
class InputPlan:
    """How the input of one strategy is read.

    A host with all replicas in one process has one reader. With several processes there are two ways. A pipeline that
    only computes with row numbers is read in each process: every replica gathers its own rows, and nothing has to be
    passed on. Any other pipeline, with user functions or files, runs once per host: in an input process beside the
    worker of the host's first replica (`input_process`), or in that worker. Batches are passed through shared memory.

    Attributes:
      pipelines: One per host.
      places: For each replica, its host's number and its position on the host.
      leaders: The first replica of each host.
      pure: Whether the pipelines only compute with row numbers, and so are read in each process.
      input_process: Whether a separate process reads pipelines that are not pure; None lets the host decide.
    """

    pipelines: tuple[HostPipeline, ...]
    places: tuple[tuple[int, int], ...]
    leaders: tuple[int, ...]
    pure: bool
    input_process: bool | None = None

    def without_data(self) -> InputPlan:
        """The plan for processes that do not read: without pipelines, but with the element specs."""
        return replace(self, pipelines=tuple(pipeline.without_data() for pipeline in self.pipelines))

    def pipeline_of(self, rank: int) -> HostPipeline:
        """The pipeline that feeds a replica."""
        return self.pipelines[self.places[rank][0]]

    def ranks_of_host(self, host: int) -> list[int]:
        """The replicas of a host, by position."""
        return [rank for rank, (number, _) in enumerate(self.places) if number == host]

    def exchanges(self, devices: Sequence[Device]) -> bool:
        """Whether batches are passed from one process to another."""
        return not self.pure and any(
            len({devices[rank].worker for rank in self.ranks_of_host(host)}) > 1
            for host in range(len(self.pipelines))
        )


@dataclass(frozen=True, slots=True)
class PickledPlan:
    """A plan, pickled for other processes.

    Attributes:
      plan: The plan without its pipelines.
      pipelines: The pipelines, pickled without their arrays.
      arrays: The bytes of the arrays.
    """

    plan: InputPlan
    pipelines: bytes
    arrays: Sequence[Any]

    def unpickled(self) -> InputPlan:
        """The plan; its arrays are views of `arrays`."""
        return replace(self.plan, pipelines=pickle.loads(self.pipelines, buffers=self.arrays))


@dataclass(frozen=True, slots=True)
class SharedPlan:
    """A plan for other processes of this machine, which find its pipelines in this process's memory.

    Attributes:
      plan: The plan without its pipelines.
      pipelines: The place of the pipelines.
    """

    plan: InputPlan
    pipelines: SharedPlace


def input_shape(devices: Sequence[Device]) -> Shape:
    """Number of hosts, and of replicas on each, for the input of replicas on `devices`.

    Raises:
      InvalidArgumentError: if hosts have different numbers of replicas.
    """
    counts = Counter(device.host for device in devices)
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{host}: {count}" for host, count in counts.items())
        raise InvalidArgumentError(
            f"a dataset can only be distributed over hosts with equally many replicas, got {found}; choose the same "
            f"number of devices on each host"
        )
    return Shape(len(counts), len(devices) // len(counts))


def plan_input(
    devices: Sequence[Device],
    make: Callable[[int, int, int], HostPipeline],
    input_process: bool | None = None,
) -> InputPlan:
    """Plans the input of replicas on `devices`.

    Args:
      devices: One per replica.
      make: Called as `make(number of hosts, host, replicas per host)` for each host.
      input_process: See `InputOptions`.

    Raises:
      InvalidArgumentError: if hosts have different numbers of replicas.
    """
    hosts = list(dict.fromkeys(device.host for device in devices))
    positions = dict.fromkeys(hosts, 0)
    places = []
    for device in devices:
        places.append((hosts.index(device.host), positions[device.host]))
        positions[device.host] += 1
    per_host = input_shape(devices).replicas_per_host
    pipelines = tuple(make(len(hosts), host, per_host) for host in range(len(hosts)))
    _learn_specs(pipelines)
    leaders = tuple(
        next(r for r, (number, _) in enumerate(places) if number == host) for host in range(len(hosts))
    )
    pure = input_process is not True and all(
        is_pure(dataset) for pipeline in pipelines for dataset in pipeline.datasets
    )
    return InputPlan(pipelines, tuple(places), leaders, pure, input_process)


def _learn_specs(pipelines: Sequence[HostPipeline]) -> None:
    """Finds the element specs here, so that replicas need not call user functions for them again."""
    known = [pipeline.element_spec for pipeline in pipelines]
    learnt = next((spec for spec in known if not isinstance(spec, UnknownSpec)), UnknownSpec())
    for pipeline, spec in zip(pipelines, known, strict=True):
        if isinstance(spec, UnknownSpec):
            pipeline.learn(learnt)


def is_pure(dataset: Pipeline) -> bool:
    """Whether reading a dataset only computes with row numbers of arrays in memory."""
    if not all(isinstance(stage, _PURE_STAGES) for stage in dataset.stages):
        return False
    if isinstance(dataset.source, _COMBINATIONS):
        return all(is_pure(inner) for inner in dataset.source.inputs())
    return isinstance(dataset.source, _PURE_SOURCES)
