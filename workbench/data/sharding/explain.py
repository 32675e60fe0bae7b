"""Which replica reads which elements at which step, and why: a model of a distributed dataset, without a cluster."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from workbench.arguments import count
from workbench.data.dataset import Dataset
from workbench.data.failing import raised
from workbench.data.options import AutoShardPolicy, Options
from workbench.data.passes import Pass
from workbench.data.provenance import FILE_SHIFT
from workbench.data.rebatch import UNKNOWN_BATCH_SIZE, compute_batch_size
from workbench.data.sharding.autoshard import Labels, PolicyChoice, choose_policy, file_reader
from workbench.data.sharding.distributed import NOTHING, HostPipeline, Placement, distribute_for_host
from workbench.data.sharding.lockstep import placements_of_hosts
from workbench.data.sharding.model import ReplicaStep, Shape, Sharding
from workbench.data.spec import INFINITE_CARDINALITY
from workbench.errors import InvalidArgumentError

DEFAULT_MAX_STEPS = 1000
DEFAULT_MAX_ELEMENTS = 200_000
_MOST_COUNTED, _LEAST_SECONDS = 10_000_000, 1.0
FROM_FUNCTION = PolicyChoice(
    AutoShardPolicy.OFF, AutoShardPolicy.OFF, "a function made the dataset of each input pipeline"
)


def explain_sharding(
    dataset: Dataset,
    shape: Any = None,
    *,
    hosts: int | None = None,
    replicas_per_host: int | None = None,
    policy: AutoShardPolicy | str | None = None,
    epoch: int = 0,
    max_steps: int = DEFAULT_MAX_STEPS,
    max_elements: int = DEFAULT_MAX_ELEMENTS,
) -> Sharding:
    """Finds out which replica gets which elements, by running the pipelines of all hosts in this process.

    It does not gather batches in memory, but calls the functions of map and filter stages.

    Args:
      dataset: The dataset, batched for all replicas together.
      shape: A `Shape`, a number of replicas, or a strategy.
      hosts: Instead of a shape: a number of hosts, which need not exist.
      replicas_per_host: Replicas on each host, one by default.
      policy: A policy to try instead of that of the dataset's options.
      epoch: Which epoch; matters for shuffled datasets.
      max_steps: How many steps to inspect.
      max_elements: How many elements to inspect.

    Raises:
      TypeError: if `dataset` is not a dataset, or `shape` is none of these.
      InvalidArgumentError: if elements have no batch dimension, if a shape is combined with `hosts` or
        `replicas_per_host`, or if a number is invalid or too low.
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(
            f"explain_sharding needs a wb.data.Dataset, got {type(dataset).__name__}; for arrays write "
            f"wb.data.Dataset.from_tensor_slices(arrays).batch(global_batch_size)"
        )
    where = shape_of(shape, hosts, replicas_per_host)
    epoch = count(epoch, "epoch", 0)
    max_steps, max_elements = count(max_steps, "max_steps"), count(max_elements, "max_elements")
    if policy is not None:
        asked = dataset.options().merge(Options())
        asked.experimental_distribute.auto_shard_policy = policy
        dataset = Dataset(dataset.source, dataset.stages, asked.frozen())
    pipelines = [
        distribute_for_host(
            dataset, num_hosts=where.hosts, host=host, replicas_per_host=where.replicas_per_host
        )
        for host in range(where.hosts)
    ]
    return explain_pipelines(pipelines, dataset, epoch=epoch, max_steps=max_steps, max_elements=max_elements)


def explain_pipelines(
    pipelines: Sequence[HostPipeline],
    dataset: Dataset | None,
    *,
    epoch: int = 0,
    max_steps: int = DEFAULT_MAX_STEPS,
    max_elements: int = DEFAULT_MAX_ELEMENTS,
    max_seconds: float = math.inf,
) -> Sharding:
    """As `explain_sharding`, for existing pipelines.

    Args:
      pipelines: One per host, all with equally many replicas.
      dataset: The dataset they were made from; None if a function made the dataset of each.
      epoch: Which epoch.
      max_steps: How many steps to inspect.
      max_elements: How many elements to inspect.
      max_seconds: How long to run.
    """
    begins = time.monotonic()
    steps, limit = _walked(list(pipelines), epoch, max_steps, max_elements, max_seconds)
    where = Shape(len(pipelines), pipelines[0].replicas)
    return _model(dataset, where, pipelines, steps, limit, time.monotonic() - begins)


def shape_of(shape: Any, hosts: int | None = None, replicas_per_host: int | None = None) -> Shape:
    """Interprets a `Shape`, a number of replicas, a strategy, or numbers of hosts and of replicas on each.

    Args:
      shape: A `Shape`, a number of replicas, or a strategy; None if `hosts` is given.
      hosts: Number of hosts.
      replicas_per_host: Number of replicas on each host; None for one.

    Raises:
      TypeError: if it is none of these.
      InvalidArgumentError: if more than one of these is given, or there is no host or replica.
    """
    if hosts is not None or replicas_per_host is not None:
        if shape is not None:
            raise InvalidArgumentError(
                f"a shape, here {shape!r:.60}, has its hosts and replicas already; leave it out, or hosts= and "
                f"replicas_per_host="
            )
        shape = Shape(1 if hosts is None else hosts, 1 if replicas_per_host is None else replicas_per_host)
    if shape is None:
        return Shape()
    if isinstance(shape, Shape):
        return Shape(count(shape.hosts, "hosts"), count(shape.replicas_per_host, "replicas_per_host"))
    if isinstance(shape, Integral | np.bool_ | np.ndarray):
        return Shape(1, count(shape, "replicas_per_host"))
    known = getattr(shape, "input_shape", None)
    if isinstance(known, Shape):
        return known
    replicas = getattr(shape, "num_replicas_in_sync", None)
    if isinstance(replicas, Integral):
        return Shape(1, int(replicas))
    raise TypeError(
        "explain_sharding needs a Shape(hosts=, replicas_per_host=), a number of replicas or a strategy, "
        f"got {shape!r:.60}"
    )


def _walked(
    pipelines: list[HostPipeline], epoch: int, max_steps: int, max_elements: int, max_seconds: float
) -> tuple[list[list[Placement]], str]:
    """The first steps of all hosts together, one placement per replica."""
    hosts = placements_of_hosts(pipelines, epoch)
    steps: list[list[Placement]] = []
    seen = 0
    ends = time.monotonic() + max_seconds
    while True:
        groups = next(hosts, None)
        if groups is None:
            return steps, ""
        if len(steps) == max_steps:
            return steps, f"only the first {max_steps:,} steps were looked at"
        if seen >= max_elements or time.monotonic() > ends:
            return steps, f"only the first {len(steps):,} steps ({seen:,} rows) were looked at"
        step = [
            placement
            for group, pipeline in zip(groups, pipelines, strict=True)
            for placement in (group or [NOTHING] * pipeline.replicas)
        ]
        steps.append(step)
        seen += sum(placement.rows for placement in step)


def _model(
    given: Dataset | None,
    where: Shape,
    pipelines: Sequence[HostPipeline],
    steps: list[list[Placement]],
    limit: str,
    seconds: float,
) -> Sharding:
    dataset = pipelines[0].datasets[0] if given is None else given
    choice = FROM_FUNCTION if given is None else choose_policy(dataset)
    rows = np.array([[placement.rows for placement in step] for step in steps], np.int64).reshape(
        len(steps), where.replicas
    )
    ids = [placement.ids for step in steps for placement in step]
    every = np.concatenate(ids) if ids else np.empty(0, np.int64)
    distinct = np.unique(every)
    labels = Labels(dataset)
    files = _files(labels, where, steps)
    named = bool(files) or (len(distinct) > 0 and int(distinct[-1]) >> FILE_SHIFT > 0)
    followed = len(every) > 0 or not rows.sum()
    dropped, dropped_unknown = None, ""
    if not followed:
        dropped_unknown = "elements cannot be followed to the replicas"
    elif given is None:
        dropped_unknown = "each input pipeline has a source of its own"
    elif not limit:
        dropped, dropped_unknown = _dropped(dataset, distinct, max(_LEAST_SECONDS, 2 * seconds))
    return Sharding(
        policy=str(choice),
        policy_asked=choice.asked.name,
        policy_used=choice.used.name,
        reason=choice.reason,
        algorithm=pipelines[0].algorithm,
        schedule=tuple(pipeline.sizes for pipeline in pipelines),
        hosts=where.hosts,
        replicas_per_host=where.replicas_per_host,
        steps=tuple(tuple(ReplicaStep(p.rows, tuple(p.ids.tolist())) for p in step) for step in steps),
        counts=tuple(rows.sum(axis=0).tolist()),
        elements=len(distinct) if followed else int(rows.sum()),
        duplicates=len(every) - len(distinct),
        dropped=dropped,
        dropped_unknown=dropped_unknown,
        empty=tuple((int(step), int(replica)) for step, replica in np.argwhere(rows == 0)),
        remainder=tuple(rows[-1].tolist()) if len(rows) > 1 and rows[-1].sum() < rows[0].sum() else (),
        files=files,
        labels={element: labels(element) for element in distinct.tolist()} if named else {},
        limit=limit,
        batch_size=UNKNOWN_BATCH_SIZE if given is None else compute_batch_size(given),
    )


def _dropped(
    dataset: Dataset, delivered: np.ndarray[Any, np.dtype[np.int64]], most_seconds: float
) -> tuple[int | None, str]:
    """How many elements of the source no replica got; None, and the reason, if that is unknown.

    Args:
      dataset: The dataset.
      delivered: Numbers of the elements that replicas got.
      most_seconds: The longest time to count. Should exceed the time that the dataset took, so that slow sources are
        counted.
    """
    source = Dataset(dataset.source)
    reader = None if dataset.source.inputs() else file_reader(dataset)
    if reader is not None:
        source = Dataset(reader)
    elif not dataset.source.inputs() and len(delivered) and int(delivered.max()) >> FILE_SHIFT:
        return None, "stages have renumbered the elements"
    known = source.cardinality()
    if known == INFINITE_CARDINALITY:
        return None, "the source has no end"
    if known >= len(delivered) and not source.source.inputs():  # its elements have one id each
        return known - len(delivered), ""
    most = max(_MOST_COUNTED, 2 * len(delivered))
    if known > most:
        return None, f"the source has {known:,} elements, too many to count"
    available: list[np.ndarray[Any, np.dtype[np.int64]]] = []
    count, ends = 0, time.monotonic() + most_seconds
    try:
        for run in raised(source.open(Pass(Dataset, provenance=True))):
            count += len(run)
            if count > most or time.monotonic() > ends:  # a generator may be endless
                return None, f"the source has at least {count:,} elements, and was not read further"
            available.append(run.ids())
    except Exception as error:  # the error of an element that no replica requested
        return None, f"the source fails after {count:,} elements: {type(error).__name__}: {error!s:.200}"
    everything = np.concatenate(available) if available else np.empty(0, np.int64)
    return len(np.setdiff1d(everything, delivered)), ""


def _files(labels: Labels, where: Shape, steps: list[list[Placement]]) -> tuple[tuple[str, ...], ...]:
    hosts = []
    for host in range(where.hosts):
        replicas = slice(host * where.replicas_per_host, (host + 1) * where.replicas_per_host)
        ids = [placement.ids for step in steps for placement in step[replicas]]
        # One element of each file is enough to look up its path.
        firsts = np.unique(np.concatenate(ids) >> FILE_SHIFT) << FILE_SHIFT if ids else np.empty(0, np.int64)
        hosts.append(tuple(path for first in firsts.tolist() if (path := labels.path_of(first))))
    return tuple(hosts) if any(hosts) else ()
