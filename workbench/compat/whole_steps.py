"""Whole steps: iterators of TensorFlow 1 end when there is no longer an element for each replica."""

from __future__ import annotations

from typing import Any

from workbench.data import Dataset
from workbench.data.spec import INFINITE_CARDINALITY
from workbench.data.stages.grouping.whole_groups import WholeGroups


def whole_steps(dataset: Any, replicas: int) -> Any:
    """The elements up to the last one at which all replicas have received equally many.

    Args:
      dataset: A dataset whose elements replicas take in turn; anything else is returned unchanged.
      replicas: The number of replicas.
    """
    if not isinstance(dataset, Dataset):
        return dataset
    count = int(dataset.cardinality())
    if count == INFINITE_CARDINALITY:
        return dataset
    if count >= 0:
        return dataset.take(count - count % replicas)
    return dataset.with_stage(WholeGroups(replicas))
