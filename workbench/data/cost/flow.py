"""The model of input pipelines' cost: stages in order, rates, own time, queues, and the busiest stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from workbench.data.cost.profile import PipelineProfile, StageProfile
from workbench.telemetry.added import ADDED
from workbench.telemetry.formatting import significant, size_text
from workbench.telemetry.snapshot import SampledSteps

_BUSY: Final = 0.05  # of the time; a stage below this is not worth mentioning
_STARVING: Final = 0.2


@dataclass(frozen=True, slots=True)
class StageFlow:
    """A stage of a pipeline, or its source.

    Attributes:
      name: The name in the plan, such as "map(parse)".
      depth: 0 for the pipeline's own stages; the stages of an input come before the stage that reads it, one level
        deeper.
      is_source: Whether a pipeline begins with it.
      elements: How many elements it produced.
      failures: How many elements it could not make.
      elements_per_second: Rate at which it produced them.
      recent_per_second: The same in the last seconds, or None if that is equal or unknown.
      bytes_per_second: Rate in bytes over the whole time, or None if sizes are unknown.
      own_seconds: Time of its own work, over all of its workers.
      own_us: The same per element, in µs, or None before the first.
      busy_share: The share of the time, 0 to 1, in which its workers worked, on average.
      waited_seconds: Time in which it waited for the stages above.
      blocked_seconds: Time in which its workers waited for its consumer.
      workers: How many workers it has; 0 if the reading thread does the work.
      worker_kind: "threads", "processes", or "".
      workers_chosen: Whether AUTOTUNE chose their number.
      queue_fill: Elements that waited behind it on average, or None without a queue.
      queue_capacity: The most that may wait, or None.
      queue_chosen: Whether AUTOTUNE chose the capacity.
      held_bytes: Memory of the waiting elements; 0 if unknown.
      block_rows: Rows for which its function is computed at a time; 0 if it is called for each element.
      note: How it works, and how many elements it left out; or "".
      workers_text: Its workers, such as "4 threads (AUTOTUNE)"; or "".
      queue_text: What waits behind it, such as "3.70 of 8 (AUTOTUNE), 3 MiB"; or "".
    """

    name: str
    depth: int
    is_source: bool
    elements: int
    failures: int
    elements_per_second: float
    recent_per_second: float | None
    bytes_per_second: float | None
    own_seconds: float
    own_us: float | None
    busy_share: float
    waited_seconds: float
    blocked_seconds: float
    workers: int
    worker_kind: str
    workers_chosen: bool
    queue_fill: float | None
    queue_capacity: int | None
    queue_chosen: bool
    held_bytes: int
    block_rows: int
    note: str
    workers_text: str = field(default="", metadata=ADDED)
    queue_text: str = field(default="", metadata=ADDED)


@dataclass(frozen=True, slots=True)
class StageRange:
    """How much one stage varies between hosts with the same pipeline.

    Attributes:
      elements_per_second: The lowest and the highest rate.
      busy_share: The same for the share of the time in which its workers worked.
      queue_fill: The same for the elements that waited behind it; zeros without a queue.
    """

    elements_per_second: tuple[float, float]
    busy_share: tuple[float, float]
    queue_fill: tuple[float, float]


@dataclass(frozen=True, slots=True)
class PipelineFlow:
    """The input pipeline of one host or of this process; or the medians of many hosts with equal pipelines.

    Attributes:
      host: Number of the host; for many, of the first one.
      name: The host's name.
      processes: How many processes read it.
      elements_per_second: Rate at which elements come out.
      recent_per_second: The same in the last seconds, or None if that is equal or unknown.
      stages: Source first.
      bottleneck: Index of the stage that limits the others, -1 if none does.
      why: What is special about it, such as "replica 7 starves", or "".
      hosts: Names of the hosts that it represents; empty if it is that of one.
      rates: For each of these hosts, elements that come out per second.
      busy_percent: For each of these hosts, the share of the time in which `bottleneck` worked; empty if no stage is
        busy.
      ranges: By stage, how much these hosts vary.
    """

    host: int
    name: str
    processes: int
    elements_per_second: float
    recent_per_second: float | None
    stages: tuple[StageFlow, ...]
    bottleneck: int
    why: str = field(default="", metadata=ADDED)
    hosts: tuple[str, ...] = field(default=(), metadata=ADDED)
    rates: tuple[float, ...] = field(default=(), metadata=ADDED)
    busy_percent: tuple[float, ...] = field(default=(), metadata=ADDED)
    ranges: tuple[StageRange, ...] = field(default=(), metadata=ADDED)


@dataclass(frozen=True, slots=True)
class ReplicaWait:
    """How long a replica waited for its batches.

    Attributes:
      replica: Its number.
      host: Number of its host.
      waited_seconds: How long, in this epoch.
      waited_share: The share of the time, 0 to 1.
      starving: Whether that is a fifth of the time or more.
    """

    replica: int
    host: int
    waited_seconds: float
    waited_share: float
    starving: bool


@dataclass(frozen=True, slots=True)
class InputFlow:
    """What the input of a program costs.

    Attributes:
      status: "measured" after `Dataset.explain`, "live" while replicas read, "stopped" when their cluster is closed.
      sentence: What limits the input, or that nothing does.
      advice: What would help, or "".
      elapsed_seconds: How long the measurement took.
      limit: Why the measurement ended, in words, or "".
      pipelines: One per host; for many hosts, the unusual ones, then one for all equal ones.
      hidden_pipelines: How many hosts none of them represents.
      replicas: All if there are at most 32, otherwise the 8 that waited longest.
      hidden_replicas: How many more there are.
      sampled: Where the fetches of replicas lie among their steps; None if no replicas read.
      waited_percent: By fetch, oldest first: the share of the time since the previous fetch that the longest-waiting
        replica waited.
      replica_percent: By replica, the share of the time that it waited.
    """

    status: str
    sentence: str
    advice: str
    elapsed_seconds: float
    limit: str
    pipelines: tuple[PipelineFlow, ...]
    hidden_pipelines: int
    replicas: tuple[ReplicaWait, ...]
    hidden_replicas: int
    sampled: SampledSteps | None = field(default=None, metadata=ADDED)
    waited_percent: tuple[float, ...] = field(default=(), metadata=ADDED)
    replica_percent: tuple[float, ...] = field(default=(), metadata=ADDED)


def pipeline_flow(
    profile: PipelineProfile, recent: PipelineProfile | None = None, *, host: int = 0, name: str = "here"
) -> PipelineFlow:
    """The model of one pipeline.

    Args:
      profile: What it cost.
      recent: What was added in the last seconds, or None if that is everything or unknown.
      host: Number of its host.
      name: The host's name.
    """
    stages = tuple(_rows(profile, recent, 0))
    return PipelineFlow(
        host=host,
        name=name,
        processes=profile.processes,
        elements_per_second=stages[-1].elements_per_second,
        recent_per_second=stages[-1].recent_per_second,
        stages=stages,
        bottleneck=busiest_stage(stages),
    )


def busiest_stage(stages: Sequence[StageFlow]) -> int:
    """Index of the stage that limits the others of its pipeline, -1 if none does."""
    busiest = max(range(len(stages)), key=lambda index: stages[index].busy_share)
    return busiest if stages[-1].elements and stages[busiest].busy_share >= _BUSY else -1


def replica_waits(
    waited_seconds: Sequence[float], hosts: Sequence[int], elapsed_seconds: float
) -> tuple[ReplicaWait, ...]:
    """How long each replica waited; those that waited for a fifth of the time are starving.

    Args:
      waited_seconds: Per replica.
      hosts: Per replica, number of its host.
      elapsed_seconds: How long they have been reading.
    """
    return tuple(
        ReplicaWait(
            replica=replica,
            host=host,
            waited_seconds=waited,
            waited_share=(share := min(1.0, waited / elapsed_seconds) if elapsed_seconds else 0.0),
            starving=share >= _STARVING,
        )
        for replica, (waited, host) in enumerate(zip(waited_seconds, hosts, strict=True))
    )


def _rows(profile: PipelineProfile, recent: PipelineProfile | None, depth: int) -> Iterator[StageFlow]:
    for number, stage in enumerate(profile.stages):
        added = None if recent is None else recent.stages[number]
        for index, pipeline in enumerate(stage.inputs):
            inner = None if recent is None or added is None else added.inputs[index]
            yield from _rows(
                replace(pipeline, elapsed_seconds=profile.elapsed_seconds),
                None
                if recent is None or inner is None
                else replace(inner, elapsed_seconds=recent.elapsed_seconds),
                depth + 1,
            )
        rate = None if recent is None or added is None else _rate(added.elements, recent.elapsed_seconds)
        yield _row(stage, profile, rate, _Place(depth, number == 0))


@dataclass(frozen=True, slots=True)
class _Place:
    depth: int
    is_source: bool


def _rate(amount: float, seconds: float) -> float:
    return amount / seconds if seconds else 0.0


def _row(
    stage: StageProfile, profile: PipelineProfile, recent_per_second: float | None, place: _Place
) -> StageFlow:
    seconds = profile.elapsed_seconds
    workers, queue = stage.workers, stage.queue
    produced = stage.produced_bytes
    at_once = profile.processes if workers is None else max(1, workers.count)
    row = StageFlow(
        name=stage.name,
        depth=place.depth,
        is_source=place.is_source,
        elements=stage.elements,
        failures=stage.failures,
        elements_per_second=_rate(stage.elements, seconds),
        recent_per_second=recent_per_second,
        bytes_per_second=None if produced is None else _rate(produced, seconds),
        own_seconds=stage.own_seconds,
        own_us=1e6 * stage.own_seconds / stage.elements if stage.elements else None,
        busy_share=min(1.0, _rate(stage.own_seconds, seconds) / at_once),
        waited_seconds=stage.waited_seconds,
        blocked_seconds=stage.blocked_seconds,
        workers=0 if workers is None else workers.count,
        worker_kind="" if workers is None else workers.kind,
        workers_chosen=workers is not None and workers.chosen,
        queue_fill=None if queue is None else queue.fill,
        queue_capacity=None if queue is None else queue.capacity,
        queue_chosen=queue is not None and queue.chosen,
        held_bytes=0 if queue is None else queue.held_bytes,
        block_rows=stage.block_rows,
        note=_note(stage),
    )
    return with_texts(row)


def with_texts(stage: StageFlow, spread: StageRange | None = None) -> StageFlow:
    """The stage with words for its workers and its queue.

    Args:
      stage: The stage of one host, or the medians of many.
      spread: How much the hosts vary.
    """
    return replace(stage, workers_text=_workers_text(stage), queue_text=_queue_text(stage, spread))


def _workers_text(stage: StageFlow) -> str:
    if not stage.workers:
        return ""
    kind = (
        stage.worker_kind if stage.workers > 1 else {"processes": "process"}.get(stage.worker_kind, "thread")
    )
    return f"{stage.workers} {kind}{' (AUTOTUNE)' if stage.workers_chosen else ''}"


def _queue_text(stage: StageFlow, spread: StageRange | None) -> str:
    if stage.queue_fill is None or stage.queue_capacity is None:
        return ""
    chosen = " (AUTOTUNE)" if stage.queue_chosen else ""
    held = f", {size_text(stage.held_bytes)}" if stage.held_bytes and spread is None else ""
    fill = significant(stage.queue_fill) if spread is None else ends_text(spread.queue_fill, significant)
    return f"{fill} of {stage.queue_capacity}{chosen}{held}"


def ends_text(ends: tuple[float, float], text: Callable[[float], str]) -> str:
    """The lowest and the highest, such as "3 to 5"; one number if both look the same."""
    return " to ".join(dict.fromkeys(map(text, ends)))


def _note(stage: StageProfile) -> str:
    left_out = (
        f"left out {stage.left_out:,} element{'' if stage.left_out == 1 else 's'}" if stage.left_out else ""
    )
    return "; ".join(filter(None, (stage.note, left_out)))
