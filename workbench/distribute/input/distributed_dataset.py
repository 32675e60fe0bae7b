"""DistributedDataset and DistributedIterator: a dataset that the replicas of a strategy read step by step."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench import tree
from workbench.arguments import function
from workbench.data.context import InputContext, InputOptions
from workbench.data.dataset import Dataset
from workbench.data.explanation import InputExplanation
from workbench.data.formats.dask import lies_on_workers, placed
from workbench.data.iterator import Optional
from workbench.data.sharding.distributed import (
    HostPipeline,
    distribute_for_host,
    distribute_function_for_host,
)
from workbench.data.sharding.step_count import count_steps
from workbench.data.spec import UnknownSpec
from workbench.data.stored.position import Place, Position, fingerprint_of
from workbench.data.tables import Failed
from workbench.distribute import contexts
from workbench.distribute.copied_by_reference import CopiedByReference
from workbench.distribute.input.elements import HereElements, RemoteElements
from workbench.distribute.input.plan import InputPlan, plan_input
from workbench.distribute.input.progress import Trail
from workbench.distribute.input.source import InputSource, PlanFor
from workbench.distribute.placement_log import log_placement, places
from workbench.distribute.values.distributed_values import PerReplica, PerReplicaSpec
from workbench.errors import CaptureError, InvalidArgumentError, OutOfRangeError, WrongType
from workbench.runtime.placement_text import counted, one_line

if TYPE_CHECKING:
    from workbench.data.sharding.progress import InputProgress
    from workbench.distribute.described_strategy import DescribedStrategy

_NOTHING = object()


class DistributedDataset(CopiedByReference):
    """A dataset divided among replicas (as tf.distribute.DistributedDataset); iterate over it, nothing else.

    Each element is a `PerReplica`, or the dataset's structure with a `PerReplica` for each array. The data stays on the
    replicas; the notebook gets handles. Iterating again starts a new epoch.

    A lost worker costs no element. The process that replaces it reads its batches again, in the same order: a dataset
    without a seed draws one when you describe it. If a step is lost (`ReplicaLost`), you can pass its batch to
    `Strategy.run` again; otherwise the iterator returns that batch again, before the next one. So successful steps use
    each element once, whether a loop retries or continues. Workbench itself repeats steps of a `wb.function` that were
    in progress, before any other.

    If a strategy continues with fewer replicas, or with more again (`minimum_replicas` of `wb.connect`), batches are
    split differently from the next element on; a batch that you already have is split again when a step takes it. With
    one input pipeline, or hosts that take turns over the elements, each global batch stays the same. Hosts that read
    their own files then read different ones: elements may be missing or occur twice in that epoch. A function that
    makes the datasets is called again.

    Reading again repeats side effects: the process that replaces a host's reader opens files and calls generators and
    functions of stages for the whole epoch so far. Elements that differ on each call (random numbers without a seed, a
    queue) will differ, and `cache()` in memory is filled again. On TPUs, all hosts restart when one is lost: batches
    are read again, and you have to assign the values of variables again.

    Attributes:
      input: The input of the replicas; None with the default strategy.
    """

    def __init__(self, strategy: DescribedStrategy, plan_for: PlanFor, source: Dataset | None = None) -> None:
        """Distributes by a plan; `source` is the original dataset, or None if a function made several."""
        self._strategy = strategy
        self._planned = plan_for(strategy.devices)
        self._source = source
        self._trail = Trail()
        self._epochs = itertools.count()
        self.input: InputSource | None = None
        if not strategy.is_default:
            self.input = InputSource(self._planned, strategy.group, strategy.inputs, plan_for)
            if source is not None:
                strategy.inputs.follow(source, self._trail)
            log_placement(
                strategy, lambda: f"a distributed dataset is {self.read_by}, for {places(strategy.devices)}"
            )

    @property
    def _plan(self) -> InputPlan:
        """The plan for the current replicas."""
        return self._planned if self.input is None else self.input.plan

    @property
    def element_spec(self) -> Any:
        """The specs of elements: a `PerReplicaSpec` for each array.

        Raises:
          OutOfRangeError: if it is unknown: there is no element, and functions of the dataset refuse made-up ones.
        """
        if isinstance(self._plan.pipelines[0].element_spec, UnknownSpec):
            raise OutOfRangeError(
                "what elements look like cannot be found out: the dataset has none that could be made, and a function "
                "of it refuses made-up values"
            )
        specs = [
            tree.flatten(self._plan.pipeline_of(rank).element_spec) for rank in range(len(self._plan.places))
        ]
        columns = zip(*[leaves for leaves, _ in specs], strict=True)
        return tree.unflatten(specs[0][1], [PerReplicaSpec(column) for column in columns])

    @property
    def cardinality(self) -> int:
        """Number of steps of an epoch, as `Dataset.cardinality`: infinite (-1) or unknown (-2) if negative."""
        if self._source is not None:
            return count_steps(self._source, self._plan.pipelines)
        pipeline = self._plan.pipelines[0]
        known = pipeline.datasets[0].cardinality()
        if known < 0 or len(pipeline.datasets) > 1:  # each replica has its own dataset
            return known
        return -(-known // pipeline.replicas) if pipeline.pad_last else known // pipeline.replicas

    @property
    def pipelines(self) -> tuple[HostPipeline, ...]:
        """The input pipeline of each host."""
        return self._plan.pipelines

    @property
    def read_by(self) -> str:
        """Where its pipelines run, in words.

        An input process reads if functions of stages are called or files are read, replicas are in separate processes,
        and the host has a core besides one for a replica; see `InputOptions.input_process`.
        """
        if self.input is None:
            return "read here"
        if self.input.has_process:
            return "read by input processes"
        if self._plan.pure:
            return "read by replicas"
        return "read by first replicas"

    @property
    def source(self) -> Dataset | None:
        """The original dataset; None if a function made one for each pipeline."""
        return self._source

    @property
    def strategy(self) -> DescribedStrategy:
        """The strategy of the replicas."""
        return self._strategy

    @property
    def progress(self) -> InputProgress | None:
        """The replicas' progress in the newest epoch, and how long each waited for its input; None before the first."""
        return self._trail.now()

    @property
    def trail(self) -> Trail:
        """Provides the `progress` even when this dataset is gone."""
        return self._trail

    def explain(self) -> InputExplanation:
        """Shows the cost of the hosts' input pipelines while replicas read them, and which replica waits longest.

        It does not read elements: the processes that read for the replicas measure, and report with their batches. In a
        notebook, the view follows a training loop. The numbers are for the newest epoch.

        Raises:
          RuntimeError: with the default strategy, which reads in the notebook; explain the dataset itself instead.
        """
        if self.input is None:
            raise RuntimeError(
                "explain: with the default strategy the notebook itself reads; use dataset.explain() of the dataset "
                "that was distributed, or distribute it with a strategy"
            )
        trail, gang = self._trail, self.input.group.gang
        return InputExplanation(trail.flow(), follow=trail.flow, ended=lambda: gang.closed)

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """Folds the elements into one: `state = reduce_func(state, element)` for each, in the notebook.

        Args:
          initial_state: The first state.
          reduce_func: Gets the state and an element, a `PerReplica` for each array, and returns the next state.

        Returns:
          The last state.
        """
        state = initial_state
        for element in self:
            state = reduce_func(state, element)
        return state

    def __iter__(self) -> DistributedIterator:
        epoch = next(self._epochs)
        return DistributedIterator(self, epoch, self._elements(epoch, 0))

    def _elements(self, epoch: int, first: int) -> RemoteElements | HereElements:
        """Yields the elements of an epoch, from number `first` on."""
        if self.input is None:
            steps = self._plan.pipelines[0].values_for([0], epoch=epoch)
            return HereElements(map(_in_one_replica, steps), first)
        log = self._trail.begin(epoch, self.input.group, first, elements=self.cardinality)
        return RemoteElements(self.input, epoch, log, first)

    def position(self, epoch: int, given: int) -> Position:
        """A position in an epoch, by the number of elements returned; see `DistributedIterator.position`.

        Raises:
          InvalidArgumentError: if it could be a position in another dataset; see `DatasetIterator.save`.
        """
        return Position(self._fingerprint(), epoch, given, 0)

    def _fingerprint(self) -> str:
        return fingerprint_of(self._source or self._plan.pipelines[0].datasets[0])

    def check(self, position: Position) -> None:
        """Refuses a position in another dataset.

        Raises:
          InvalidArgumentError: if it is a position in another dataset.
        """
        if position.pipeline != self._fingerprint():
            raise InvalidArgumentError(
                f"the position belongs to a dataset other than {self!r}; build it as it was then, with a seed for each "
                f"shuffle, and let its functions not change what they refer to"
            )

    def elements_at(self, position: Position) -> RemoteElements | HereElements:
        """The elements from a position on; later epochs have higher numbers.

        Raises:
          InvalidArgumentError: if it is a position in another dataset.
        """
        self.check(position)
        self._epochs = itertools.count(position.epoch + 1)
        return self._elements(position.epoch, position.given)

    def __reduce__(self) -> tuple[Any, ...]:
        raise CaptureError(_KEEP_OUT.format("a distributed dataset"))

    def __repr__(self) -> str:
        pipeline = self._plan.pipelines[0]
        policy = "" if pipeline.choice is None else f"policy {pipeline.choice}"
        replicas, hosts = (
            counted(len(self._plan.places), "replica"),
            counted(len(self._plan.pipelines), "host"),
        )
        # `one_line` first drops the part before the last.
        return one_line(
            "DistributedDataset", f"{replicas} on {hosts}", policy, self.read_by, pipeline.algorithm
        )


class DistributedIterator:
    """Iterates over a distributed dataset once (as tf.distribute.DistributedIterator).

    `iter(distributed_dataset)` makes one.
    """

    def __init__(
        self, dataset: DistributedDataset, epoch: int, elements: RemoteElements | HereElements
    ) -> None:
        self._dataset = dataset
        self._epoch = epoch
        self._elements = elements

    def position(self) -> Position:
        """Its position, for `go_to`. Elements of lost steps that have not run again come again from there.

        Raises:
          InvalidArgumentError: if functions of the dataset refer to objects that cannot be compared, such as a lock.
        """
        return self._dataset.position(self._epoch, self._elements.next_number)

    def go_to(self, position: Position) -> None:
        """Moves to the position of an iterator over the same dataset, even with other replicas or in another process.

        Global batches stay the same if one input pipeline makes them; see `DistributedDataset`. The epoch is read again
        up to there.

        Raises:
          InvalidArgumentError: if it is a position in another dataset.
        """
        self._elements = self._dataset.elements_at(position)
        self._epoch = position.epoch

    @property
    def place(self) -> Place:
        """Its progress, regardless of elements that are returned again because a step was lost."""
        return Place(self._epoch, self._elements.reached, self._elements.id)

    def check(self, position: Position) -> None:
        """Refuses a position in another dataset.

        Raises:
          InvalidArgumentError: if it is a position in another dataset.
        """
        self._dataset.check(position)

    @property
    def element_spec(self) -> Any:
        """The specs of elements, as `DistributedDataset.element_spec`."""
        return self._dataset.element_spec

    def __repr__(self) -> str:
        return f"<DistributedIterator of {self._dataset!r}: {self._elements.next_number} given>"

    def __iter__(self) -> DistributedIterator:
        return self

    def __next__(self) -> Any:
        strategy = self._dataset._strategy
        try:
            contexts.require_cross_replica(strategy, "next(iterator of a distributed dataset)")
        except RuntimeError as error:
            raise ValueError(str(error)) from None  # the class of TensorFlow's error
        if self._dataset.input is not None and strategy.restorer is not None and strategy.group.stale:
            strategy.group.make_ready()  # may move this iterator to its position in a checkpoint
        elements = self._elements
        element = next(elements, _NOTHING)
        if elements is not self._elements:  # it was moved meanwhile, so that element comes again
            return next(self)
        if element is _NOTHING:
            raise StopIteration
        return element

    def get_next(self) -> Any:
        """The next element.

        Raises:
          OutOfRangeError: if there is none; further calls raise it again.
          ValueError: in a replica function.
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
        raise CaptureError(_KEEP_OUT.format("an iterator of a distributed dataset"))


def _in_one_replica(step: Any) -> Any:
    return step if isinstance(step, Failed) else tree.map(lambda leaf: PerReplica((leaf,)), step[0])


_KEEP_OUT = (
    "{} cannot be used in a replica function; take elements outside and pass them as arguments: "
    "for batch in distributed: strategy.run(step, args=(batch,))"
)


def _check_options(options: InputOptions | None) -> None:
    if not isinstance(options, InputOptions | None):
        raise WrongType(f"options must be a wb.distribute.InputOptions or None, got {options!r:.60}")


def distribute_dataset(
    strategy: DescribedStrategy, dataset: Dataset, options: InputOptions | None
) -> DistributedDataset:
    """See `Strategy.distribute_dataset`."""
    if not isinstance(dataset, Dataset):
        raise WrongType(
            f"distribute_dataset needs a wb.data.Dataset, got {type(dataset).__name__}; for arrays write "
            f"wb.data.Dataset.from_tensor_slices(arrays).batch(global_batch_size)"
        )
    _check_options(options)

    read = dataset
    if not strategy.is_default:
        # Only once, because with a different order after a loss, elements would be read twice or never.
        workers: dict[str, set[str]] = {}
        for device in strategy.devices:
            workers.setdefault(device.host, set()).add(device.worker)
        read = placed(dataset, [frozenset(addresses) for addresses in workers.values()])

    def make(hosts: int, host: int, per_host: int) -> HostPipeline:
        return distribute_for_host(
            read, num_hosts=hosts, host=host, replicas_per_host=per_host, options=options
        )

    input_process = None if options is None else options.input_process
    if input_process is None and lies_on_workers(dataset):
        input_process = False  # another process would have to fetch the worker's data
    return DistributedDataset(strategy, partial(plan_input, make=make, input_process=input_process), dataset)


def distribute_datasets_from_function(
    strategy: DescribedStrategy, dataset_fn: Callable[[InputContext], Dataset], options: InputOptions | None
) -> DistributedDataset:
    """See `Strategy.distribute_datasets_from_function`."""
    function(dataset_fn, "distribute_datasets_from_function: dataset_fn")
    _check_options(options)

    def make(hosts: int, host: int, per_host: int) -> HostPipeline:
        return distribute_function_for_host(
            dataset_fn, num_hosts=hosts, host=host, replicas_per_host=per_host, options=options
        )

    plan_for = partial(
        plan_input, make=make, input_process=None if options is None else options.input_process
    )
    return DistributedDataset(strategy, plan_for)
