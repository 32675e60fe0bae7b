"""Access to the element at a position, if possible without reading those before it."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from workbench.data.options import Options
from workbench.data.stage import Pipeline, Stage
from workbench.data.stages.computing.functions import Map
from workbench.data.stages.grouping.batch import Batch
from workbench.data.stages.ordering.select import SHARD_HINT, Shard, Skip, Take
from workbench.data.stages.prefetch import Prefetch

_Kind = TypeVar("_Kind", bound=Pipeline)


def obstacle(dataset: Pipeline) -> str:
    """The source or stage that prevents access by position, by name, or ""."""
    if not dataset.source.random_access:
        return dataset.source.text
    return next((stage.text for stage in dataset.stages if not _is_by_position(stage, dataset.options())), "")


def from_position(dataset: _Kind, position: int) -> _Kind:
    """The dataset starting at the element at `position`: functions are called only for that and later elements.

    Args:
      dataset: A dataset without an `obstacle`.
      position: The position of an element, from 0.
    """
    stages: list[Stage] = []
    for stage in reversed(dataset.stages):
        match stage:
            case Batch():
                position *= stage.batch_size
            case Take() if stage.count >= 0:
                stage = replace(stage, count=max(0, stage.count - position))
            case Skip():
                position += stage.count
                continue
            case Shard():
                position = position * stage.num_shards + stage.index
                stage = replace(stage, index=0)
        stages.append(stage)
    return dataset.with_source(dataset.source, (Skip(position), *reversed(stages)))


def _is_by_position(stage: Stage, options: Options) -> bool:
    match stage:
        case Skip():
            return stage.count >= 0
        case Shard():
            return stage.num_shards != SHARD_HINT
        case Map() | Batch():
            return stage.keeps_order(options)
    return isinstance(stage, Take | Prefetch)
