"""The cost of a pass over a dataset so far, stage by stage: numbers that can be sent, subtracted and merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

_Key = tuple[tuple[str, ...], int]


@dataclass(frozen=True, slots=True)
class Workers:
    """Threads or processes that work for a stage at the same time.

    Attributes:
      count: How many.
      kind: "threads" or "processes".
      chosen: Whether AUTOTUNE chose the number, not the user.
    """

    count: int
    kind: str = "threads"
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class QueueProfile:
    """Elements that wait behind a stage to be taken.

    Attributes:
      capacity: The most elements that may wait.
      chosen: Whether AUTOTUNE chose the capacity, not the user.
      fills: Sum of the observed fill levels.
      looks: How often the fill level was observed.
      held_bytes: Memory of the waiting elements at the last observation; 0 if unknown.
    """

    capacity: int
    chosen: bool = False
    fills: int = 0
    looks: int = 0
    held_bytes: int = 0

    @property
    def fill(self) -> float:
        """Elements that waited on average."""
        return self.fills / self.looks if self.looks else 0.0

    def since(self, earlier: QueueProfile | None) -> QueueProfile:
        """The observations of the queue since an earlier profile."""
        if earlier is None:
            return self
        return replace(self, fills=self.fills - earlier.fills, looks=self.looks - earlier.looks)


@dataclass(frozen=True, slots=True)
class StageProfile:
    """One stage of a pipeline, or its source.

    Attributes:
      name: The stage's text in the plan, such as "map(parse)".
      elements: How many elements it produced.
      failures: How many elements it could not make.
      left_out: How many failures of other stages it dropped.
      produced_bytes: Size of the elements, estimated from some of them; None if none was measured.
      own_seconds: Time that its own work took, over all of its workers, without the stages above.
      waited_seconds: Time that it waited for the stages above.
      blocked_seconds: Time that its workers waited for their results to be taken.
      workers: Its workers; None for the reading thread.
      queue: The queue behind it, or None.
      block_rows: Rows for which its function is computed at a time; 0 if it is called for each element.
      note: How it works, in words, if there is something to say.
      inputs: The pipelines that it reads itself: inputs of a combination, datasets that its function returned.
    """

    name: str
    elements: int = 0
    failures: int = 0
    left_out: int = 0
    produced_bytes: int | None = None
    own_seconds: float = 0.0
    waited_seconds: float = 0.0
    blocked_seconds: float = 0.0
    workers: Workers | None = None
    queue: QueueProfile | None = None
    block_rows: int = 0
    note: str = ""
    inputs: tuple[PipelineProfile, ...] = ()

    @property
    def worker_count(self) -> int:
        """How many work for it at a time."""
        return 1 if self.workers is None else self.workers.count

    def since(self, earlier: StageProfile) -> StageProfile:
        """What was added since `earlier`, an older profile of the same stage."""
        produced = self.produced_bytes
        if produced is not None:
            produced -= earlier.produced_bytes or 0
        known = _keyed(earlier.inputs)
        return replace(
            self,
            elements=self.elements - earlier.elements,
            failures=self.failures - earlier.failures,
            left_out=self.left_out - earlier.left_out,
            produced_bytes=produced,
            own_seconds=self.own_seconds - earlier.own_seconds,
            waited_seconds=self.waited_seconds - earlier.waited_seconds,
            blocked_seconds=self.blocked_seconds - earlier.blocked_seconds,
            queue=None if self.queue is None else self.queue.since(earlier.queue),
            inputs=tuple(
                pipeline.since(known[key]) if key in known else pipeline
                for key, pipeline in _keyed(self.inputs).items()
            ),
        )


@dataclass(frozen=True, slots=True)
class PipelineProfile:
    """The cost of a pipeline while it is read, or afterwards.

    Attributes:
      stages: The source and the stages, in order.
      elapsed_seconds: How long it has been open.
      processes: How many processes the numbers come from.
    """

    stages: tuple[StageProfile, ...]
    elapsed_seconds: float
    processes: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the source and the stages."""
        return tuple(stage.name for stage in self.stages)

    @property
    def elements(self) -> int:
        """How many elements came out of it."""
        return self.stages[-1].elements

    def since(self, earlier: PipelineProfile) -> PipelineProfile:
        """What was added since `earlier`, an older profile of the same pass; everything if it is of another pass."""
        if earlier.names != self.names or earlier.elapsed_seconds > self.elapsed_seconds:
            return self
        return replace(
            self,
            stages=tuple(now.since(then) for now, then in zip(self.stages, earlier.stages, strict=True)),
            elapsed_seconds=self.elapsed_seconds - earlier.elapsed_seconds,
        )


def merged(profiles: Sequence[PipelineProfile]) -> PipelineProfile:
    """Merges profiles of one pipeline in several processes: adds counts, times, workers and queues.

    Args:
      profiles: At least one; all with the same stages.

    Raises:
      ValueError: if they are of different pipelines.
    """
    if len({profile.names for profile in profiles}) != 1:
        found = [" → ".join(profile.names) for profile in profiles]
        raise ValueError(
            f"only profiles of one pipeline can be merged, got {found}; group them by their names first"
        )
    return PipelineProfile(
        tuple(_together(column) for column in zip(*(each.stages for each in profiles), strict=True)),
        max(profile.elapsed_seconds for profile in profiles),
        sum(profile.processes for profile in profiles),
    )


def _together(stages: tuple[StageProfile, ...]) -> StageProfile:
    sizes = [stage.produced_bytes for stage in stages if stage.produced_bytes is not None]
    queues = [stage.queue for stage in stages if stage.queue is not None]
    workers = [stage.workers for stage in stages if stage.workers is not None]
    inputs: dict[_Key, list[PipelineProfile]] = {}
    for stage in stages:
        for key, pipeline in _keyed(stage.inputs).items():
            inputs.setdefault(key, []).append(pipeline)
    return StageProfile(
        name=stages[0].name,
        elements=sum(stage.elements for stage in stages),
        failures=sum(stage.failures for stage in stages),
        left_out=sum(stage.left_out for stage in stages),
        produced_bytes=sum(sizes) if sizes else None,
        own_seconds=sum(stage.own_seconds for stage in stages),
        waited_seconds=sum(stage.waited_seconds for stage in stages),
        blocked_seconds=sum(stage.blocked_seconds for stage in stages),
        workers=replace(workers[0], count=sum(each.count for each in workers)) if workers else None,
        queue=_one_queue(queues) if queues else None,
        block_rows=max(stage.block_rows for stage in stages),
        note=next((stage.note for stage in stages if stage.note), ""),
        inputs=tuple(merged(group) for group in inputs.values()),
    )


def _keyed(inputs: Sequence[PipelineProfile]) -> dict[_Key, PipelineProfile]:
    """Keyed by name and by how often that name occurred before, because a dataset may be zipped with itself."""
    found: dict[_Key, PipelineProfile] = {}
    for pipeline in inputs:
        nth = 0
        while (pipeline.names, nth) in found:
            nth += 1
        found[pipeline.names, nth] = pipeline
    return found


def _one_queue(queues: Sequence[QueueProfile]) -> QueueProfile:
    # Mean levels are added, so that `fill` stays comparable with the summed capacity.
    looks = max(queue.looks for queue in queues)
    return replace(
        queues[0],
        capacity=sum(queue.capacity for queue in queues),
        fills=round(sum(queue.fill for queue in queues) * looks),
        looks=looks,
        held_bytes=sum(queue.held_bytes for queue in queues),
    )
