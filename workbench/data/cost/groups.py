"""Pipelines of many hosts as a few flows: one for each unusual pipeline, and one for all equal ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import median, median_low, quantiles
from typing import Final

from workbench.data.cost.flow import (
    PipelineFlow,
    ReplicaWait,
    StageFlow,
    StageRange,
    busiest_stage,
    with_texts,
)

MOST_FLOWS: Final = 6
MOST_SINGLE: Final = 4
"""Up to this many pipelines are shown one by one; of more, at most this many unusual ones."""
FAR: Final = 1.25
"""Multiples of the median; hosts below it count as alike."""
_FENCE: Final = 3.0  # multiples of the interquartile range beyond the quartile
_WORTH: Final = 0.2  # of the time; a stage that is busy for less delays nothing

_Plan = tuple[tuple[str, int], ...]


def shown_pipelines(
    pipelines: Sequence[PipelineFlow], replicas: Sequence[ReplicaWait]
) -> tuple[tuple[PipelineFlow, ...], int]:
    """At most `MOST_FLOWS` flows for all pipelines, unusual ones first; and how many pipelines they leave out.

    Args:
      pipelines: One per host.
      replicas: How long each waited.
    """
    if len(pipelines) <= MOST_SINGLE:
        return tuple(pipelines), 0
    plans: dict[_Plan, list[PipelineFlow]] = {}
    for pipeline in pipelines:
        plans.setdefault(plan_of(pipeline), []).append(pipeline)
    largest, *others = sorted(plans.values(), key=len, reverse=True)
    reasons = (
        _starving(pipelines, replicas),
        _slow(largest),
        ((members[0], "another plan") for members in others if len(members) == 1),
    )
    single: dict[int, tuple[PipelineFlow, str]] = {}
    for found in filter(None, itertools.chain.from_iterable(itertools.zip_longest(*reasons))):
        single.setdefault(id(found[0]), found)
    kept = dict(itertools.islice(single.items(), MOST_SINGLE))
    flows = [replace(pipeline, why=why) for pipeline, why in kept.values()]
    left = [[one for one in members if id(one) not in kept] for members in (largest, *others)]
    groups = [members for members in left if members]
    for number, members in enumerate(groups[: MOST_FLOWS - len(flows)]):
        why = "another plan" if number else ""
        flows.append(replace(members[0], why=why) if len(members) == 1 else _group(members, bool(kept), why))
    return tuple(flows), sum(len(members) for members in groups[MOST_FLOWS - len(kept) :])


def plan_of(pipeline: PipelineFlow) -> _Plan:
    """What equal pipelines have in common."""
    return tuple((stage.name, stage.depth) for stage in pipeline.stages)


def far_beyond(values: Sequence[float]) -> float:
    """The threshold of outliers: beyond the outer fence, and above `FAR` times the median."""
    low, _, high = quantiles(values, n=4)
    return max(FAR * median(values), high + _FENCE * (high - low))


def _starving(
    pipelines: Sequence[PipelineFlow], replicas: Sequence[ReplicaWait]
) -> Iterator[tuple[PipelineFlow, str]]:
    """Hosts whose replicas starve more than others, the longest waiting first."""
    limit = FAR * median(each.waited_share for each in replicas) if replicas else 0.0
    for wait in sorted(replicas, key=lambda each: -each.waited_share):
        if wait.starving and wait.waited_share > limit:
            yield from (
                (one, f"replica {wait.replica} starves") for one in pipelines if one.host == wait.host
            )


def _slow(alike: Sequence[PipelineFlow]) -> Iterator[tuple[PipelineFlow, str]]:
    """Pipelines with a stage that is far slower than the same stage of equal pipelines, the slowest first."""
    found: list[tuple[float, PipelineFlow, str]] = []
    for stages in zip(*(pipeline.stages for pipeline in alike), strict=True):
        own = [stage.own_us or 0.0 for stage in stages]
        if len(own) < 2:
            continue
        usual, limit = median(own), far_beyond(own)
        found += [
            (own_us / usual, pipeline, f"slow {stage.name}")
            for own_us, stage, pipeline in zip(own, stages, alike, strict=True)
            if own_us > limit > 0 and usual and stage.busy_share >= _WORTH
        ]
    yield from ((pipeline, why) for _, pipeline, why in sorted(found, key=lambda each: -each[0]))


def _group(members: Sequence[PipelineFlow], has_others: bool, why: str) -> PipelineFlow:
    """One flow for equal pipelines: the medians, and for each stage the range of its figures."""
    stages = tuple(map(_stage, zip(*(member.stages for member in members), strict=True)))
    bottleneck = busiest_stage([stage for stage, _ in stages])
    return PipelineFlow(
        host=members[0].host,
        name=f"{len(members):,} {'other ' if has_others and not why else ''}hosts",
        processes=sum(member.processes for member in members),
        elements_per_second=median(member.elements_per_second for member in members),
        recent_per_second=_median(member.recent_per_second for member in members),
        stages=tuple(stage for stage, _ in stages),
        bottleneck=bottleneck,
        why=why,
        hosts=tuple(member.name for member in members),
        rates=tuple(float(f"{member.elements_per_second:.4g}") for member in members),
        busy_percent=()
        if bottleneck < 0
        else tuple(round(100 * member.stages[bottleneck].busy_share, 1) for member in members),
        ranges=tuple(spread for _, spread in stages),
    )


def _stage(same: Sequence[StageFlow]) -> tuple[StageFlow, StageRange]:
    def middle(of: Callable[[StageFlow], float | None]) -> float | None:
        return _median(of(stage) for stage in same)

    def whole(of: Callable[[StageFlow], int]) -> int:
        return median_low(of(stage) for stage in same)

    def ends(of: Callable[[StageFlow], float | None]) -> tuple[float, float]:
        known = [value for stage in same if (value := of(stage)) is not None]
        return (min(known), max(known)) if known else (0.0, 0.0)

    first = same[0]
    capacities = [stage.queue_capacity for stage in same if stage.queue_capacity is not None]
    stage = replace(
        first,
        elements=whole(lambda stage: stage.elements),
        failures=sum(stage.failures for stage in same),
        elements_per_second=middle(lambda stage: stage.elements_per_second) or 0.0,
        recent_per_second=middle(lambda stage: stage.recent_per_second),
        bytes_per_second=middle(lambda stage: stage.bytes_per_second),
        own_seconds=middle(lambda stage: stage.own_seconds) or 0.0,
        own_us=middle(lambda stage: stage.own_us),
        busy_share=middle(lambda stage: stage.busy_share) or 0.0,
        waited_seconds=middle(lambda stage: stage.waited_seconds) or 0.0,
        blocked_seconds=middle(lambda stage: stage.blocked_seconds) or 0.0,
        workers=whole(lambda stage: stage.workers),
        workers_chosen=any(stage.workers_chosen for stage in same),
        queue_fill=middle(lambda stage: stage.queue_fill),
        queue_capacity=median_low(capacities) if capacities else None,
        held_bytes=whole(lambda stage: stage.held_bytes),
        note=first.note if all(stage.note == first.note for stage in same) else "",
    )
    spread = StageRange(
        ends(lambda stage: stage.elements_per_second),
        ends(lambda stage: stage.busy_share),
        ends(lambda stage: stage.queue_fill),
    )
    return with_texts(stage, spread), spread


def _median(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
