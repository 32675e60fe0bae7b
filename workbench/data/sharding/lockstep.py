"""Iterates over the pipelines of all hosts together, to find what each gets; reads their common part once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from workbench.data.dataset import Dataset
from workbench.data.sharding.distributed import HostPipeline, Placement
from workbench.data.stages.grouping.split import EvenSplit, Regroup
from workbench.data.stages.ordering.select import Shard
from workbench.data.stages.prefetch import Prefetch

Group = list[Placement] | None
"""A step of one host; None once it has ended."""


def placements_of_hosts(pipelines: Sequence[HostPipeline], epoch: int) -> Iterator[list[Group]]:
    """Per step, what each host gets, until all have ended.

    With policy DATA, all hosts read the same elements and keep their part; with OFF, they keep everything. Without
    sharing, 64 hosts would take 64 times as long as one.

    Args:
      pipelines: One per host.
      epoch: Which epoch.
    """
    first = pipelines[0]
    if len(pipelines) > 1 and all(_alike(pipeline, first) for pipeline in pipelines):
        for placements in first.placements(epoch=epoch):
            yield [placements] * len(pipelines)
        return
    common = _before_dealing(pipelines)
    if common is None:
        hosts = [pipeline.placements(epoch=epoch) for pipeline in pipelines]
        yield from map(list, itertools.zip_longest(*hosts))
        return
    # All hosts as one: each host gets every `hosts`-th element of the shared pipeline.
    count, replicas = len(pipelines), first.replicas
    every = HostPipeline((common,), count * replicas, pad_last=True)
    for placements in every.placements(epoch=epoch):
        yield [placements[host::count] for host in range(count)]


def _alike(one: HostPipeline, other: HostPipeline) -> bool:
    """Whether two hosts read the same elements in the same way."""
    if (one.replicas, one.pad_last, one.sizes) != (other.replicas, other.pad_last, other.sizes):
        return False
    if len(one.datasets) != 1 or len(other.datasets) != 1:
        return False
    mine, others = one.datasets[0], other.datasets[0]
    # Stages that hold arrays cannot be compared by `==`; a stage that no policy rewrote is the same object.
    return (
        mine.source is others.source
        and len(mine.stages) == len(others.stages)
        and all(
            a is b or (type(a) is type(b) and isinstance(a, Regroup | EvenSplit) and a == b)
            for a, b in zip(mine.stages, others.stages, strict=True)
        )
    )


def _before_dealing(pipelines: Sequence[HostPipeline]) -> Dataset | None:
    """The dataset that the hosts divide element by element; None if each reads its own."""
    heads = [_head(pipeline, host, len(pipelines)) for host, pipeline in enumerate(pipelines)]
    if any(head is None for head in heads):
        return None
    known = [
        replace(pipeline, datasets=(head,)) for pipeline, head in zip(pipelines, heads, strict=True) if head
    ]
    return known[0].datasets[0] if all(_alike(one, known[0]) for one in known) else None


def _head(pipeline: HostPipeline, host: int, hosts: int) -> Dataset | None:
    """A host's dataset without the stage that keeps its part, if that is the last one."""
    if len(pipeline.datasets) != 1 or not pipeline.pad_last:
        return None
    (dataset,) = pipeline.datasets
    stages = dataset.stages
    while stages and isinstance(stages[-1], Prefetch):
        stages = stages[:-1]
    if not stages or type(stages[-1]) is not Shard or stages[-1] != Shard(hosts, host):
        return None
    return dataset.with_source(dataset.source, stages[:-1])
