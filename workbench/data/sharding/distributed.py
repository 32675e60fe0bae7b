"""One host's share of a distributed dataset: what each of its replicas gets in each step.

Pure: the input is a description, the output lists of element trees. Higher layers move these to replicas.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from workbench import tree
from workbench.data.context import InputContext, InputOptions
from workbench.data.dataset import Dataset
from workbench.data.meter import UNMEASURED, StageMeter, Unmeasured
from workbench.data.options import AutoShardPolicy
from workbench.data.passes import Pass
from workbench.data.rebatch import UNKNOWN_BATCH_SIZE, batch_sizes_for_worker, compute_batch_size
from workbench.data.sharding.autoshard import PolicyChoice, auto_shard, choose_policy
from workbench.data.spec import TensorSpec, UnknownSpec, spec_if_learnt
from workbench.data.stages.grouping.batch import Batch
from workbench.data.stages.grouping.batches import BatchTable, SegmentTable
from workbench.data.stages.grouping.split import EvenSplit, Regroup
from workbench.data.stages.ordering.select import Shard
from workbench.data.stages.prefetch import Prefetch
from workbench.data.stages.to_device import ToDevice
from workbench.data.structure import Array
from workbench.data.tables import NO_IDS, Failed, Table
from workbench.errors import FailedPreconditionError

EVEN_SPLIT = "even split"
SCHEDULE = "schedule"
AS_GIVEN = "as given"
_NEW_ELEMENTS = (
    "no element of this dataset could be made when it was distributed, or none of those that were tried for some "
    "seconds, so it was not known what elements look like; now it has some: distribute it again, or, if the first ones "
    "still fail, let its functions take made-up values too"
)
_Item = tuple[Any, Array]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Step:
    """What the replicas of one host get in one step.

    Attributes:
      values: One element tree per replica.
      ids: Per replica, numbers of its source elements; empty if they are unknown or were not requested.
    """

    values: list[Any]
    ids: list[Array]


@dataclass(frozen=True, slots=True)
class Placement:
    """What one replica gets in one step, without the data.

    Attributes:
      rows: Number of rows.
      ids: Numbers of the source elements behind them; empty if unknown.
    """

    rows: int
    ids: Array


NOTHING = Placement(0, NO_IDS)


@dataclass(frozen=True)
class HostPipeline:
    """The input pipeline of one host.

    Attributes:
      datasets: One dataset whose elements go to the replicas in turn, or one dataset per replica.
      replicas: Number of replicas on this host.
      pad_last: Whether an incomplete last step is filled with empty batches instead of dropped.
      algorithm: "even split", "schedule", or "as given" if nothing was split.
      choice: The sharding policy, or None if a function made the dataset.
      sizes: The schedule's sizes, or () for another algorithm.
    """

    datasets: tuple[Dataset, ...]
    replicas: int
    pad_last: bool
    algorithm: str = AS_GIVEN
    choice: PolicyChoice | None = None
    sizes: tuple[int, ...] = ()

    @cached_property
    def element_spec(self) -> Any:
        """The spec of one replica's elements. Once known, it is sent along, because finding it may call user functions.

        It is `UnknownSpec()` for a dataset without elements whose functions raise for made-up values.
        """
        return spec_if_learnt(self.datasets[0])

    def learn(self, element_spec: Any) -> None:
        """Takes over the element spec of another host, if this one has no element to learn it from."""
        self.__dict__["element_spec"] = element_spec

    def without_data(self) -> HostPipeline:
        """Only the element spec, for a process that does not read."""
        stripped = replace(self, datasets=())
        # Known already, because `plan_input` has read it.
        stripped.learn(self.element_spec)
        return stripped

    @property
    def read_ahead(self) -> int:
        """How many elements `prefetch` keeps ready; without it, the number of replicas."""
        stages = self.datasets[0].stages
        sizes = [
            stage.buffer_size for stage in stages if isinstance(stage, Prefetch) and stage.buffer_size >= 0
        ]
        return sizes[-1] if sizes else self.replicas

    def steps(self, *, epoch: int = 0, provenance: bool = False) -> Iterator[Step]:
        """Iterates over one epoch.

        Args:
          epoch: Number of the epoch; all hosts must use the same one, so that they shuffle alike.
          provenance: Whether to include which source elements each replica got.
        """
        streams = [
            _stream(dataset, _numbered_pass(dataset, epoch, provenance=provenance))
            for dataset in self._read()
        ]
        for group in _raised(_dealt(streams, self.replicas)):
            if None in group and not self.pad_last:
                return
            items = [(self.empty(), NO_IDS) if item is None else item for item in group]
            yield Step([value for value, _ in items], [ids for _, ids in items])

    def values_for(
        self,
        replicas: Sequence[int],
        *,
        epoch: int = 0,
        first: int = 0,
        meter: StageMeter | Unmeasured = UNMEASURED,
    ) -> Iterator[list[Any] | Failed]:
        """As `steps`, but only for some replicas of the host; the rows of others are not gathered.

        Args:
          replicas: Positions among the host's replicas.
          epoch: Number of the epoch.
          first: Number of the first step; nothing is gathered for earlier ones.
          meter: Measures what the stages cost.

        Yields:
          One element tree per entry of `replicas`; or a `Failed` for this step.
        """
        datasets = tuple(self._read())
        meter.expect(datasets)
        streams = [
            _located(dataset, replace(_numbered_pass(dataset, epoch), meter=meter)) for dataset in datasets
        ]
        unknown = isinstance(self.element_spec, UnknownSpec)
        for number, group in enumerate(_dealt(streams, self.replicas)):
            if unknown and not isinstance(group, Failed):
                yield Failed(FailedPreconditionError(_NEW_ELEMENTS))
                return
            if isinstance(group, Failed):
                if number >= first:
                    yield group
                continue
            if None in group and not self.pad_last:
                return
            if number >= first:
                try:
                    step: list[Any] | Failed = [self._value(group[replica]) for replica in replicas]
                except Exception as error:  # gathering its rows failed
                    step = Failed(error)
                yield step

    def _read(self) -> Iterator[Dataset]:
        """The datasets in the form that replicas need.

        Leaves out prefetching, parallel batching and copies to a device at their ends: the reader for the replicas does
        this, and knows which rows it needs.
        """
        for dataset in self.datasets:
            end = len(dataset.stages)
            while end and isinstance(
                dataset.stages[end - 1], Prefetch | ToDevice | EvenSplit | Regroup | Shard
            ):
                end -= 1
            last = [stage for stage in dataset.stages[end:] if not isinstance(stage, Prefetch | ToDevice)]
            first = [
                replace(stage, num_parallel_calls=0) if isinstance(stage, Batch) else stage
                for stage in dataset.stages[max(0, end - 1) : end]
            ]
            yield dataset.with_source(dataset.source, (*dataset.stages[: max(0, end - 1)], *first, *last))

    def _value(self, place: tuple[Table, int] | None) -> Any:
        if place is None:
            return self.empty()
        table, index = place
        return table.structure.pack(table.row(index))

    def placements(self, *, epoch: int = 0) -> Iterator[list[Placement]]:
        """As `steps`, but only says what would go where; batches in memory are not gathered."""
        streams = [
            _placed(dataset, _numbered_pass(dataset, epoch, provenance=True)) for dataset in self._read()
        ]
        for group in _raised(_dealt(streams, self.replicas)):
            if None in group and not self.pad_last:
                return
            yield [NOTHING if placement is None else placement for placement in group]

    def empty(self) -> Any:
        """An element without rows: dtypes and known dimensions kept, unknown ones zero."""
        return tree.map(_empty, self.element_spec)

    def empty_step(self) -> Step:
        """What this host's replicas get while other hosts still have data."""
        return Step([self.empty() for _ in range(self.replicas)], [NO_IDS] * self.replicas)


def distribute_for_host(
    dataset: Dataset,
    *,
    num_hosts: int = 1,
    host: int = 0,
    replicas_per_host: int = 1,
    options: InputOptions | None = None,
) -> HostPipeline:
    """The pipeline of one host for a dataset whose batches are global.

    If the batch size is known, batches are split among all replicas: by the even split with policy DATA, or AUTO
    without files, and otherwise by the schedule. Then the policy divides the data among hosts. A single replica gets
    the dataset unchanged.

    Args:
      dataset: The dataset, batched.
      num_hosts: Number of hosts.
      host: Which one this is.
      replicas_per_host: Replicas on each host.
      options: Checked for unsupported settings.

    Raises:
      InvalidArgumentError: if elements are scalars.
      NotFoundError: if FILE is requested and nothing reads files.
      NotImplementedError: for `PER_REPLICA`.
    """
    (options or InputOptions()).check_for_dataset()
    replicas = num_hosts * replicas_per_host
    if replicas == 1:
        return HostPipeline((dataset,), 1, pad_last=False, choice=choose_policy(dataset))
    choice = choose_policy(dataset)
    size = UNKNOWN_BATCH_SIZE if choice.used is AutoShardPolicy.DATA else compute_batch_size(dataset)
    sizes: tuple[int, ...] = ()
    if size == UNKNOWN_BATCH_SIZE:
        split = dataset.with_stage(EvenSplit(replicas))
    else:
        sizes = tuple(batch_sizes_for_worker(size, num_hosts, replicas_per_host, host))
        split = dataset.with_stage(Regroup(sizes).knowing(lambda: dataset.element_spec))
    pad_last = num_hosts > 1 or not is_static(spec_if_learnt(split))
    mine = auto_shard(split, num_hosts, host).dataset
    return HostPipeline(
        (mine,), replicas_per_host, pad_last, SCHEDULE if sizes else EVEN_SPLIT, choice, sizes
    )


def distribute_function_for_host(
    dataset_fn: Callable[[InputContext], Dataset],
    *,
    num_hosts: int = 1,
    host: int = 0,
    replicas_per_host: int = 1,
    options: InputOptions | None = None,
) -> HostPipeline:
    """The pipeline of one host for datasets that a function makes; their batches are those of one replica.

    Args:
      dataset_fn: Called once on each host, or for each replica with `PER_REPLICA`.
      num_hosts: Number of hosts.
      host: Which one this is.
      replicas_per_host: Replicas on each host.
      options: Replication mode and placement.

    Raises:
      ValueError: for options that contradict each other.
      TypeError: if the function does not return a dataset.
    """
    options = options or InputOptions()
    options.check_for_function()
    replicas = num_hosts * replicas_per_host
    if options.per_replica:
        first = host * replicas_per_host
        contexts = [InputContext(replicas, first + replica, replicas) for replica in range(replicas_per_host)]
    else:
        contexts = [InputContext(num_hosts, host, replicas)]
    datasets = tuple(_made(dataset_fn, context) for context in contexts)
    pad_last = num_hosts > 1 or not is_static(spec_if_learnt(datasets[0]))
    return HostPipeline(datasets, replicas_per_host, pad_last)


def lockstep(
    pipelines: list[HostPipeline], *, epoch: int = 0, provenance: bool = False
) -> Iterator[list[Step]]:
    """Steps of all hosts together: a host that has ended gets empty batches until all have ended.

    Args:
      pipelines: The pipeline of each host, in their order.
      epoch: Number of the epoch.
      provenance: Whether steps include the ids of their elements.
    """
    hosts = [pipeline.steps(epoch=epoch, provenance=provenance) for pipeline in pipelines]
    for steps in itertools.zip_longest(*hosts):
        yield [
            pipeline.empty_step() if step is None else step
            for pipeline, step in zip(pipelines, steps, strict=True)
        ]


def _made(dataset_fn: Callable[[InputContext], Dataset], context: InputContext) -> Dataset:
    dataset = dataset_fn(context)
    if not isinstance(dataset, Dataset):
        raise TypeError(
            f"the dataset function must return a Dataset, got {type(dataset).__name__} for {context}"
        )
    return dataset


def _numbered_pass(dataset: Dataset, epoch: int, *, provenance: bool = False) -> Pass:
    """A pass that yields the same elements in the same order if they are read again after a loss."""
    return replace(dataset.numbered_pass(epoch, provenance=provenance), in_order=True)


def _stream(dataset: Dataset, current: Pass) -> Iterator[_Item | Failed]:
    for run in dataset.open(current):
        if isinstance(run, Failed):
            yield run
            continue
        table = run.table
        pack = table.structure.pack
        for index in run.indices():
            ids = table.ids(range(index, index + 1)) if current.provenance else NO_IDS
            yield pack(table.row(index)), ids


def _located(dataset: Dataset, current: Pass) -> Iterator[tuple[Table, int] | Failed]:
    for run in dataset.open(current):
        if isinstance(run, Failed):
            yield run
            continue
        table = run.table
        for index in run.indices():
            yield table, index


def _placed(dataset: Dataset, current: Pass) -> Iterator[Placement | Failed]:
    for located in _located(dataset, current):
        if isinstance(located, Failed):
            yield located
            continue
        table, index = located
        if isinstance(table, BatchTable | SegmentTable):
            segment = table.segment(index)
            yield Placement(len(segment), segment.ids())
        else:
            shape = np.shape(table.row(index)[0])
            yield Placement(shape[0] if shape else 1, table.ids(range(index, index + 1)))


def _dealt(streams: Sequence[Iterator[_T | Failed]], replicas: int) -> Iterator[Sequence[_T | None] | Failed]:
    """Groups of one item per replica: in turn from one stream, or one each from several.

    A failed item is yielded alone, before the group that it would have belonged to.
    """
    turns = [streams[0]] * replicas if len(streams) == 1 else streams
    while True:
        group: list[_T | None] = []
        for stream in turns:
            while isinstance(item := next(stream, None), Failed):
                yield item
            group.append(item)
        if all(item is None for item in group):
            return
        yield group


def _raised(groups: Iterator[Sequence[_T | None] | Failed]) -> Iterator[Sequence[_T | None]]:
    """The groups, for code that reads a whole epoch: the first failure ends it."""
    for group in groups:
        if isinstance(group, Failed):
            raise group.taken()
        yield group


def is_static(element_spec: Any) -> bool:
    """Whether all sizes of elements are known."""
    return not isinstance(element_spec, UnknownSpec) and all(
        isinstance(spec, TensorSpec) and spec.is_static for spec in tree.flatten(element_spec)[0]
    )


def _empty(spec: TensorSpec) -> Array:
    return np.empty((0, *(size or 0 for size in (spec.shape or (0,))[1:])), spec.dtype)
