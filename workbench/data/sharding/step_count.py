"""The number of steps of a distributed dataset."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.data.dataset import Dataset
from workbench.data.options import AutoShardPolicy
from workbench.data.sharding.distributed import SCHEDULE, HostPipeline, is_static
from workbench.data.spec import UNKNOWN_CARDINALITY, spec_if_learnt
from workbench.data.stages.ordering.select import Repeat


def count_steps(dataset: Dataset, pipelines: Sequence[HostPipeline]) -> int:
    """The number of steps of all hosts' pipelines, as a cardinality; unknown if it depends on the rows.

    Args:
      dataset: The dataset that they divide.
      pipelines: The pipeline of each host, as `distribute_for_host` makes it.
    """
    known = dataset.cardinality()
    if known < 0 or pipelines[0].algorithm != SCHEDULE:
        return known
    choice = pipelines[0].choice
    divided = len(pipelines) > 1 and choice is not None and choice.used is not AutoShardPolicy.OFF
    return UNKNOWN_CARDINALITY if divided or _has_several_short_batches(dataset) else known


def _has_several_short_batches(dataset: Dataset) -> bool:
    """Whether more than one batch may be short. A schedule joins a short batch with the rows that follow."""
    if is_static(spec_if_learnt(dataset)):
        return False
    for stage in reversed(dataset.stages):
        if getattr(stage, "batch_size", None) is not None:
            return False
        if isinstance(stage, Repeat) and stage.count != 1:
            return True
    return True
