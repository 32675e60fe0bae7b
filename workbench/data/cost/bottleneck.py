"""One sentence on what delays input pipelines, and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from workbench.data.cost.flow import PipelineFlow, ReplicaWait, StageFlow
from workbench.telemetry.formatting import percent

_ENOUGH: Final = 0.05  # of the time
_ALIKE: Final = 0.8  # of the longest wait of a replica
_SATURATED: Final = 0.8  # of each worker's time
_PARALLEL: Final = "give it num_parallel_calls=wb.data.AUTOTUNE"
_AHEAD: Final = (
    "end the dataset with prefetch(wb.data.AUTOTUNE), so that this happens while the last batch is used"
)
_CHEAPER: Final = "make it cheaper, or keep its results with cache()"
_ADVICE: Final = {
    "map": _PARALLEL,
    "interleave": _PARALLEL,
    "flat_map": "use interleave(…, num_parallel_calls=wb.data.AUTOTUNE) in its place",
    "filter": "put it behind the stages that drop most, or compute the condition in a map with num_parallel_calls",
    "scan": "it takes one element after the other; keep it short and do the rest in a map with num_parallel_calls",
    "generator": "let the generator yield many rows at a time and unbatch them, or read files",
    "batch": _AHEAD,
    "padded_batch": _AHEAD,
    "even_split": _AHEAD,
    "regroup": _AHEAD,
    "shuffle": "shuffle before the elements are made, such as file names or row numbers, or take a smaller buffer",
    "unique": "drop duplicates when the data is written, or compare fewer elements",
    "cache": "the first pass fills it; later ones only read",
    "snapshot": "the first pass writes it; later ones read",
}
_FILES: Final = "read several files at a time: files.interleave(reader, num_parallel_calls=wb.data.AUTOTUNE)"
_READERS: Final = ("text lines", "records", "fixed-length records", "CSV rows", "Arrow rows", "Parquet rows")


def verdict(pipelines: Sequence[PipelineFlow], replicas: Sequence[ReplicaWait]) -> tuple[str, str]:
    """What limits the input, and what would help; "" if nothing needs help.

    Args:
      pipelines: One per host.
      replicas: How long each waited; empty if only this process reads.
    """
    if not pipelines:
        return "Nothing was read yet.", "numbers come with the first batches"
    if not any(stage.elements or stage.failures for pipeline in pipelines for stage in pipeline.stages):
        return "Nothing was read yet.", ""
    longest = max((each.waited_share for each in replicas), default=1.0)
    if longest < _ENOUGH:
        return f"Input keeps up: replicas waited {percent(longest)} of the time for it.", ""
    found = [
        (pipeline.stages[pipeline.bottleneck], pipeline) for pipeline in pipelines if pipeline.bottleneck >= 0
    ]
    if not found:
        return _no_stage(replicas)
    here = [] if _all_alike(replicas) else [each for each in found if each[1].host == _longest(replicas).host]
    # The slowest stage does not explain why one replica waits longer than the others.
    stage, pipeline = max(here or found, key=lambda each: each[0].busy_share)
    if here and 2 * _as_busy(pipelines, stage) > len(pipelines) > 1:
        return _no_stage(replicas, f" on {pipeline.name} is busier than on other hosts")
    waits = ""
    if replicas:
        waits = f"{_who_waits(replicas)} of the time for input: "
    return waits + _takes(stage, _where(pipelines, pipeline, stage)), _advice(stage, pipeline)


def _where(pipelines: Sequence[PipelineFlow], pipeline: PipelineFlow, stage: StageFlow) -> str:
    """Where a stage is this busy; "on every host" if it is nearly as busy on all."""
    if len(pipelines) == 1:
        return ""
    alike = _as_busy(pipelines, stage)
    if alike == len(pipelines):
        return " on every host"
    return f" on {pipeline.name}" if alike <= 1 else f" on {alike:,} of {len(pipelines):,} hosts"


def _as_busy(pipelines: Sequence[PipelineFlow], stage: StageFlow) -> int:
    """How many pipelines have the same stage at least nearly as busy."""
    least = _ALIKE * stage.busy_share
    return sum(
        any(other.name == stage.name and other.busy_share >= least for other in each.stages)
        for each in pipelines
    )


def _takes(stage: StageFlow, where: str) -> str:
    if stage.workers > 1:
        busy = percent(stage.busy_share)
        return f"{stage.name} keeps its {stage.workers} {stage.worker_kind} busy {busy} of the time{where}."
    return f"{stage.name} takes {percent(stage.busy_share)} of the time{where}."


def _advice(stage: StageFlow, pipeline: PipelineFlow) -> str:
    kind = _kind(stage)
    reader = _reader(stage, pipeline)
    if reader is not None and _kind(reader) in ("interleave", "flat_map") and not reader.workers:
        return f"{reader.name} can run it for several inputs at a time: " + (
            _PARALLEL if _kind(reader) == "interleave" else _ADVICE["flat_map"]
        )
    if stage.workers:
        if stage.busy_share < _SATURATED or stage.workers_chosen:
            return (
                "its function takes most of the time; make it cheaper, let it work on batches, or keep its results "
                "with cache()"
            )
        return f"{stage.workers} {stage.worker_kind} are not enough: {_PARALLEL}"
    if stage.block_rows:
        return f"its function is computed for {stage.block_rows:,} rows at a time already; {_CHEAPER}"
    if kind in _READERS:
        return _FILES
    advice = _ADVICE.get(kind, "")
    ends_ahead = pipeline.stages[-1].name.startswith("prefetch")
    if advice == _AHEAD and ends_ahead:
        return "smaller elements, or a cheaper dtype until they reach the device, would make less to copy"
    return advice


def _kind(stage: StageFlow) -> str:
    """A stage's name, without arguments and without the user's label."""
    return stage.name.partition("(")[0].partition(" '")[0]


def _reader(stage: StageFlow, pipeline: PipelineFlow) -> StageFlow | None:
    """The stage that has this nested one as an input."""
    behind = pipeline.stages[pipeline.stages.index(stage) + 1 :]
    return next((other for other in behind if other.depth < stage.depth), None)


def _no_stage(replicas: Sequence[ReplicaWait], is_busy: str = " is busy") -> tuple[str, str]:
    if replicas:
        return (
            f"{_who_waits(replicas)} of the time for input, though no stage{is_busy}.",
            "larger batches, or fetching further ahead with prefetch(wb.data.AUTOTUNE), make fewer round trips",
        )
    return (
        "Handing elements over one by one takes most of the time.",
        "batch them with dataset.batch(n)",
    )


def _who_waits(replicas: Sequence[ReplicaWait]) -> str:
    who = _longest(replicas)
    name = "Every replica" if _all_alike(replicas) and len(replicas) > 1 else f"Replica {who.replica}"
    return f"{name} waits {percent(who.waited_share)}"


def _longest(replicas: Sequence[ReplicaWait]) -> ReplicaWait:
    return max(replicas, key=lambda each: each.waited_share)


def _all_alike(replicas: Sequence[ReplicaWait]) -> bool:
    """Whether all replicas wait about equally long."""
    return (
        not replicas
        or min(each.waited_share for each in replicas) >= _ALIKE * _longest(replicas).waited_share
    )
