"""DistributedDataset and DistributedIterator: a dataset as the replicas of a strategy get it, step by step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import cloudpickle

from workbench import tree
from workbench.data.context import InputContext, InputOptions
from workbench.data.dataset import Dataset
from workbench.data.distributed import HostPipeline, distribute_for_host, distribute_function_for_host
from workbench.data.iterator import Optional
from workbench.distribute import contexts
from workbench.distribute.identity import new_id
from workbench.distribute.input_elements import HEAD, RemoteElements
from workbench.distribute.input_plan import InputPlan, plan_input
from workbench.distribute.input_programs import ByReference, Request, fetch, open_input
from workbench.distribute.input_progress import Trail
from workbench.distribute.values import PerReplica, PerReplicaSpec
from workbench.errors import CaptureError, OutOfRangeError
from workbench.runtime.captures import explain_unpicklable
from workbench.runtime.handles import Handle
from workbench.runtime.placement_text import counted, one_line

if TYPE_CHECKING:
    from workbench.data.progress import InputProgress
    from workbench.distribute.strategy import Strategy
    from workbench.runtime.shipping import Prepared

_NOTHING = object()


class DistributedDataset:
    """A dataset divided among replicas (as tf.distribute.DistributedDataset); iterate over it, nothing else.

    Each element is a `PerReplica`, or the dataset's structure with a `PerReplica` for each array. The data stays on the
    replicas: what comes here are handles. Iterating again starts a new epoch.
    """

    def __init__(self, strategy: Strategy, plan: InputPlan, source: Dataset | None = None) -> None:
        """Distributes what a plan says; `source` is the dataset that was asked for, None if a function made several."""
        self._strategy = strategy
        self._plan = plan
        self._source = source
        self._trail = Trail()
        self._id = new_id()
        self._epochs = itertools.count()
        self._fetchers: dict[int, Prepared] = {}
        if not strategy.is_default:
            self.open_on()
            strategy.inputs.add(self._id, self)

    @property
    def element_spec(self) -> Any:
        """What elements look like: a `PerReplicaSpec` for each array."""
        specs = [
            tree.flatten(self._plan.pipeline_of(rank).element_spec) for rank in range(len(self._plan.places))
        ]
        columns = zip(*[leaves for leaves, _ in specs], strict=True)
        return tree.unflatten(specs[0][1], [PerReplicaSpec(column) for column in columns])

    @property
    def cardinality(self) -> int:
        """Number of steps of an epoch, as `Dataset.cardinality`: negative where it is infinite (-1) or unknown (-2)."""
        return (self._source or self._plan.pipelines[0].datasets[0]).cardinality()

    @property
    def pipelines(self) -> tuple[HostPipeline, ...]:
        """The input pipeline of each host."""
        return self._plan.pipelines

    @property
    def source(self) -> Dataset | None:
        """The dataset that was distributed; None if a function made one for each pipeline."""
        return self._source

    @property
    def strategy(self) -> Strategy:
        """Whose replicas get it."""
        return self._strategy

    @property
    def progress(self) -> InputProgress | None:
        """How far replicas are in the newest epoch, and how long each waited for its input; None before the first."""
        return self._trail.now()

    @property
    def trail(self) -> Trail:
        """What tells the `progress` also when this dataset is gone."""
        return self._trail

    def __iter__(self) -> DistributedIterator:
        epoch = next(self._epochs)
        if self._strategy.is_default:
            return DistributedIterator(self, self._here(epoch))
        return DistributedIterator(self, self._from_replicas(epoch))

    def open_on(self, ranks: list[int] | None = None) -> None:
        """Makes the dataset known to the processes of all replicas, or of those that were replaced."""
        group = self._strategy.group
        if group.gang.shipping.by_reference:
            plan: bytes | ByReference = ByReference(self._plan)
        else:
            plan = _pickled(self._plan)
        self._strategy.run_internal(open_input, (self._id, plan), ranks=ranks)

    def _here(self, epoch: int) -> Iterator[Any]:
        for (value,) in self._plan.pipelines[0].values_for([0], epoch=epoch):
            yield tree.map(lambda leaf: PerReplica((leaf,)), value)

    def _from_replicas(self, epoch: int) -> RemoteElements:
        iterator = new_id()
        inputs, name = self._strategy.inputs, self._id
        fetch = partial(self._fetch, iterator, epoch)
        group = self._strategy.group
        log = self._trail.begin(epoch, group)
        return RemoteElements(
            self._plan,
            fetch,
            forget=lambda: inputs.forget(name, iterator),
            on_given=lambda: log.give(group.number),
            on_waited=log.wait,
        )

    def _fetch(self, iterator: str, epoch: int, first: int, count: int, *, ahead: bool) -> tuple[Handle, ...]:
        strategy = self._strategy
        group = strategy.group
        prepared = self._fetchers.get(count)
        if prepared is None:
            prepared = self._fetchers[count] = self._fetcher(count)
        request = Request(self._id, iterator, epoch, first, count, ahead, strategy.inputs.take_forgotten())
        found: tuple[Handle, ...] = group.run(prepared, (request,), pipelined=True)
        return found

    def _fetcher(self, count: int) -> Prepared:
        group = self._strategy.group
        # Where batches are exchanged the replicas communicate, and collectives are counted by step.
        is_step = self._plan.exchanges(group.devices)
        prepared = group.prepare(fetch, user_function=fetch if is_step else None)
        width = tree.flatten(self._plan.pipelines[0].element_spec)[1].num_leaves
        # Known, so no fetch is waited for.
        prepared.structure = tree.flatten((0,) * (HEAD + count * width))[1]
        return prepared

    def __reduce__(self) -> tuple[Any, ...]:
        raise CaptureError(_KEEP_OUT.format("distributed dataset"))

    def __repr__(self) -> str:
        pipeline = self._plan.pipelines[0]
        policy = "" if pipeline.choice is None else f"policy {pipeline.choice}"
        replicas, hosts = (
            counted(len(self._plan.places), "replica"),
            counted(len(self._plan.pipelines), "host"),
        )
        return one_line("DistributedDataset", f"{replicas} on {hosts}", policy, pipeline.algorithm)


def _pickled(plan: InputPlan) -> bytes:
    """The plan for other processes; functions of a notebook go by value.

    Raises:
      CaptureError: Naming what a function of a stage captures that cannot be pickled.
    """
    try:
        data: bytes = cloudpickle.dumps(plan, protocol=5)
        return data
    except Exception as error:  # pickling calls code of whatever is in there
        for dataset in plan.pipelines[0].datasets:
            for stage in dataset.stages:
                function: Any = getattr(stage, "fn", None)
                try:
                    cloudpickle.dumps(function)
                except Exception as reason:
                    raise explain_unpicklable(function, reason) from error
        raise


class DistributedIterator:
    """Goes through a distributed dataset once (as tf.distribute.DistributedIterator)."""

    def __init__(self, dataset: DistributedDataset, elements: Iterator[Any]) -> None:
        self._dataset = dataset
        self._elements = elements

    @property
    def element_spec(self) -> Any:
        """What elements look like, as `DistributedDataset.element_spec`."""
        return self._dataset.element_spec

    def __iter__(self) -> DistributedIterator:
        return self

    def __next__(self) -> Any:
        strategy = self._dataset._strategy
        try:
            contexts.require_cross_replica(strategy, "next(iterator of a distributed dataset)")
        except RuntimeError as error:
            raise ValueError(str(error)) from None  # the class that the reference has for it
        return next(self._elements)

    def get_next(self) -> Any:
        """The next element.

        Raises:
          OutOfRangeError: If there is none, also when asked again.
          ValueError: In a replica function.
        """
        element = next(self, _NOTHING)
        if element is _NOTHING:
            raise OutOfRangeError("the distributed dataset has no further element; iterate over it again")
        return element

    def get_next_as_optional(self) -> Optional:
        """The next element, or an `Optional` without a value at the end."""
        element = next(self, _NOTHING)
        return Optional() if element is _NOTHING else Optional(element)

    def __reduce__(self) -> tuple[Any, ...]:
        raise CaptureError(_KEEP_OUT.format("iterator of a distributed dataset"))


_KEEP_OUT = (
    "a {} cannot be used in a replica function; take elements outside and pass them as arguments: "
    "for batch in distributed: strategy.run(step, args=(batch,))"
)


def distribute_dataset(
    strategy: Strategy, dataset: Dataset, options: InputOptions | None
) -> DistributedDataset:
    """See `Strategy.distribute_dataset`."""
    if not isinstance(dataset, Dataset):
        raise TypeError(
            f"distribute_dataset needs a wb.data.Dataset, got {type(dataset).__name__}; for arrays write "
            f"wb.data.Dataset.from_tensor_slices(arrays).batch(global_batch_size)"
        )

    def make(hosts: int, host: int, per_host: int) -> HostPipeline:
        return distribute_for_host(
            dataset, num_hosts=hosts, host=host, replicas_per_host=per_host, options=options
        )

    return DistributedDataset(strategy, plan_input(strategy.devices, make), dataset)


def distribute_datasets_from_function(
    strategy: Strategy, dataset_fn: Callable[[InputContext], Dataset], options: InputOptions | None
) -> DistributedDataset:
    """See `Strategy.distribute_datasets_from_function`."""

    def make(hosts: int, host: int, per_host: int) -> HostPipeline:
        return distribute_function_for_host(
            dataset_fn, num_hosts=hosts, host=host, replicas_per_host=per_host, options=options
        )

    return DistributedDataset(strategy, plan_input(strategy.devices, make))
