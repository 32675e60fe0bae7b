"""Kinds that split batches over replicas and pipelines over workers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from tests.reference.interpreter.codec import Json
from tests.reference.interpreter.pipelines import build
from tests.reference.interpreter.world import World
from tests.reference.observation import Observed
from tests.reference.outcomes import answer, api, unpublished


def legacy_rebatch(given: Json, world: World, observed: Observed) -> None:
    observed.phase = "build"
    split = unpublished("data.stages.grouping.split", "EvenSplit")(given["num_replicas"])
    _read(build(given["pipeline"], world.scratch).with_stage(split), observed)


def rebatch(given: Json, world: World, observed: Observed) -> None:
    observed.phase = "build"
    sizes = given["batch_sizes"]
    regroup = unpublished("data.stages.grouping.split", "Regroup")
    stage = regroup(tuple(sizes) if isinstance(sizes, list) else (sizes,), given.get("drop_remainder", False))
    _read(build(given["pipeline"], world.scratch).with_stage(stage), observed)


def batch_sizes_for_worker(given: Json, world: World, observed: Observed) -> None:
    names = ("global_batch_size", "num_workers", "num_replicas_per_worker", "worker_index")
    sizes = api("data.batch_sizes_for_worker")(*(given[name] for name in names))
    observed.fields["result"] = [int(size) for size in sizes]


def compute_batch_size(given: Json, world: World, observed: Observed) -> None:
    dataset = build(given["pipeline"], world.scratch)
    found = api("data.compute_batch_size")(dataset)
    observed.fields["result"] = -1 if found is None else int(found)


def auto_shard(given: Json, world: World, observed: Observed) -> None:
    dataset = build(given["pipeline"], world.scratch)
    shard, workers = api("data.auto_shard"), given["num_workers"]
    _per_worker(lambda w: shard(dataset, workers, w).dataset, workers, observed)


def multi_worker_distribute(given: Json, world: World, observed: Observed) -> None:
    dataset = build(given["pipeline"], world.scratch)
    distribute, workers = api("data.distribute_for_host"), given["num_workers"]

    def dealt(worker: int) -> list[Any]:
        """The elements that the replicas of `worker` dequeue in turn."""
        replicas = given["replicas_per_worker"]
        (stream,) = distribute(dataset, num_hosts=workers, host=worker, replicas_per_host=replicas).datasets
        return list(stream)

    _per_worker(dealt, workers, observed)


def _per_worker(pipeline_of: Callable[[int], Iterable[Any]], workers: int, observed: Observed) -> None:
    """Reads the pipeline of each worker."""
    found = [answer(functools.partial(_elements, pipeline_of, worker)) for worker in range(workers)]
    observed.fields["workers"] = found
    if all(isinstance(entry, Exception) for entry in found):
        observed.common_error = found[0]


def _elements(pipeline_of: Callable[[int], Iterable[Any]], worker: int) -> list[Any]:
    return list(pipeline_of(worker))


def _read(dataset: Any, observed: Observed) -> None:
    observed.fields["element_spec"] = dataset.element_spec
    observed.phase = "iterate"
    observed.fields["elements"] = list(dataset)


KINDS = {
    fn.__name__: fn
    for fn in (
        legacy_rebatch,
        rebatch,
        batch_sizes_for_worker,
        compute_batch_size,
        auto_shard,
        multi_worker_distribute,
    )
}
