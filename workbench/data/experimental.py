"""Names that tf.data.experimental has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.data.databases import SqlDataset
from workbench.data.dataset import Dataset
from workbench.data.options import AutoShardPolicy, DistributeOptions, StatsOptions, ThreadingOptions
from workbench.data.spec import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from workbench.data.stages.select import SHARD_HINT
from workbench.data.writers import TFRecordWriter

__all__ = [
    "INFINITE_CARDINALITY",
    "SHARD_HINT",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "DistributeOptions",
    "SqlDataset",
    "StatsOptions",
    "TFRecordWriter",
    "ThreadingOptions",
    "assert_cardinality",
    "cardinality",
    "shuffle_and_repeat",
    "snapshot",
    "take_while",
    "unbatch",
    "unique",
]
Transformation = Callable[[Dataset], Dataset]


def shuffle_and_repeat(buffer_size: int, count: int | None = None, seed: int | None = None) -> Transformation:
    """For `Dataset.apply`: `shuffle(buffer_size, seed)`, a new order each time, then `repeat(count)`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed, reshuffle_each_iteration=True).repeat(count)


def snapshot(
    path: str,
    compression: str | None = "AUTO",
    reader_func: Callable[[Dataset], Dataset] | None = None,
    shard_func: Callable[..., Any] | None = None,
) -> Transformation:
    """For `Dataset.apply`: writes the first complete pass below `path`, and reads it from then on."""
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """For `Dataset.apply`: elements up to the first for which the predicate gives False."""
    return lambda dataset: dataset.take_while(predicate)


def unique() -> Transformation:
    """For `Dataset.apply`: first occurrences."""
    return lambda dataset: dataset.unique()


def unbatch() -> Transformation:
    """For `Dataset.apply`: rows of the elements as elements."""
    return lambda dataset: dataset.unbatch()


def assert_cardinality(expected_cardinality: int) -> Transformation:
    """For `Dataset.apply`: states the number of elements; iterating checks it."""
    return lambda dataset: dataset.assert_cardinality(expected_cardinality)


def cardinality(dataset: Dataset) -> int:
    """Number of elements, -1 for infinite, -2 for unknown."""
    return dataset.cardinality()
