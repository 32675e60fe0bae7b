"""Names that tf.data.experimental has: for `Dataset.apply`, for iterators and specs, and for options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from workbench.data import service
from workbench.data.cost.statistics import StatsAggregator
from workbench.data.databases import SqlDataset
from workbench.data.dataset import Dataset
from workbench.data.exports.writers import TFRecordWriter
from workbench.data.formats.csv_reference import CsvDataset, make_csv_dataset
from workbench.data.iterator import DatasetIterator, Optional
from workbench.data.options import (
    AUTOTUNE,
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    StatsOptions,
    ThreadingOptions,
)
from workbench.data.spec import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from workbench.data.stages.observed import BytesProducedStats, LatencyStats
from workbench.data.stages.random_access import from_position, obstacle
from workbench.data.stages.reduce_by_key import ReduceByKey, Reducer
from workbench.data.stages.select import SHARD_HINT
from workbench.errors import InvalidArgumentError, OutOfRangeError

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "SHARD_HINT",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "AutotuneAlgorithm",
    "AutotuneOptions",
    "Counter",
    "CsvDataset",
    "DistributeOptions",
    "ExternalStatePolicy",
    "OptimizationOptions",
    "Optional",
    "RandomDataset",
    "Reducer",
    "SqlDataset",
    "StatsAggregator",
    "StatsOptions",
    "TFRecordWriter",
    "ThreadingOptions",
    "assert_cardinality",
    "at",
    "bucket_by_sequence_length",
    "bytes_produced_stats",
    "cardinality",
    "choose_from_datasets",
    "dense_to_ragged_batch",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "from_variant",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "latency_stats",
    "load",
    "make_csv_dataset",
    "map_and_batch",
    "parallel_interleave",
    "rejection_resample",
    "sample_from_datasets",
    "save",
    "scan",
    "service",
    "shuffle_and_repeat",
    "snapshot",
    "take_while",
    "to_variant",
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


def latency_stats(tag: str) -> Transformation:
    """For `Dataset.apply`: how long each element takes to be made, in µs, for the `StatsAggregator` of the options.

    Elements are made one by one for it; without an aggregator it does nothing.
    """
    return lambda dataset: dataset.with_stage(LatencyStats(tag))


def bytes_produced_stats(tag: str) -> Transformation:
    """For `Dataset.apply`: the size of each element in bytes, for the `StatsAggregator` of the options."""
    return lambda dataset: dataset.with_stage(BytesProducedStats(tag))


def cardinality(dataset: Dataset) -> int:
    """Number of elements, -1 for infinite, -2 for unknown."""
    return dataset.cardinality()


# Sources


def Counter(start: Any = 0, step: Any = 1, dtype: Any = np.int64) -> Dataset:
    """As `Dataset.counter`: numbers without end."""
    return Dataset.counter(start, step, dtype)


def RandomDataset(seed: int | None = None) -> Dataset:
    """As `Dataset.random`: whole numbers from 0 to 2**32 - 1 without end."""
    return Dataset.random(seed)


def choose_from_datasets(
    datasets: Sequence[Dataset], choice_dataset: Dataset, stop_on_empty_dataset: bool = False
) -> Dataset:
    """As `Dataset.choose_from_datasets`, but a dataset that has ended is passed over unless told otherwise.

    Args:
      datasets: At least one.
      choice_dataset: Gives int64 scalars from 0 to `len(datasets) - 1`.
      stop_on_empty_dataset: Whether all ends when a dataset is chosen that has ended.
    """
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def sample_from_datasets(
    datasets: Sequence[Dataset],
    weights: Any = None,
    seed: int | None = None,
    stop_on_empty_dataset: bool = False,
) -> Dataset:
    """As `Dataset.sample_from_datasets`.

    Args:
      datasets: At least one.
      weights: How often each is chosen, in proportion; a dataset of such arrays; None for all alike.
      seed: Makes the choices repeatable.
      stop_on_empty_dataset: Whether all ends when a dataset is chosen that has ended.
    """
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)


def load(
    path: str,
    element_spec: Any = None,
    compression: str | None = None,
    reader_func: Callable[..., Any] | None = None,
) -> Dataset:
    """As `Dataset.load`.

    Args:
      path: The folder that `save` wrote.
      element_spec: The spec to check the stored one with, or None.
      compression: The one to check the stored one with, or None.
      reader_func: Makes the dataset out of a dataset of one dataset per file.
    """
    return Dataset.load(path, element_spec, compression, reader_func)


def save(
    dataset: Dataset, path: str, compression: str | None = None, shard_func: Callable[..., Any] | None = None
) -> None:
    """As `dataset.save`.

    Args:
      dataset: What to store.
      path: A folder of its own.
      compression: "GZIP", "SNAPPY", "AUTO" or None.
      shard_func: Gives the number of the file that an element goes to.
    """
    dataset.save(path, compression, shard_func)


# Transformations, for `Dataset.apply`


def enumerate_dataset(start: int = 0) -> Transformation:
    """For `Dataset.apply`: pairs of a number and the element."""
    return lambda dataset: dataset.enumerate(start)


def scan(initial_state: Any, scan_func: Callable[[Any, Any], Any]) -> Transformation:
    """For `Dataset.apply`: goes through the elements with a state, as `Dataset.scan`."""
    return lambda dataset: dataset.scan(initial_state, scan_func)


def ignore_errors(log_warning: bool = False) -> Transformation:
    """For `Dataset.apply`: leaves out elements that could not be made."""
    return lambda dataset: dataset.ignore_errors(log_warning)


def rejection_resample(
    class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None, seed: int | None = None
) -> Transformation:
    """For `Dataset.apply`: leaves out elements at random, as `Dataset.rejection_resample`.

    Args:
      class_func: Gives an element's class, a whole number.
      target_dist: The wanted share of each class.
      initial_dist: The share that each class has; None to count.
      seed: Makes the choices repeatable.
    """
    return lambda dataset: dataset.rejection_resample(class_func, target_dist, initial_dist, seed)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: int,
    num_parallel_batches: int | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: int | None = None,
) -> Transformation:
    """For `Dataset.apply`: `map(map_func)`, then `batch(batch_size)`.

    Args:
      map_func: The function of an element.
      batch_size: Elements per batch.
      num_parallel_batches: Batches worked at in parallel: so many times `batch_size` calls.
      drop_remainder: Whether to leave out a smaller last batch.
      num_parallel_calls: Calls in parallel; only one of the two may be given.

    Raises:
      InvalidArgumentError: if both are given, or the first is not positive.
    """
    if num_parallel_batches is not None:
        if num_parallel_calls is not None:
            raise InvalidArgumentError(
                "map_and_batch takes num_parallel_batches or num_parallel_calls, not both"
            )
        if num_parallel_batches < 1:
            raise InvalidArgumentError(
                f"map_and_batch: num_parallel_batches is {num_parallel_batches}, not positive"
            )
        num_parallel_calls = num_parallel_batches * batch_size
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: int,
    block_length: int = 1,
    sloppy: bool | None = False,
    buffer_output_elements: int | None = None,
    prefetch_input_elements: int | None = None,
) -> Transformation:
    """For `Dataset.apply`: `interleave` that reads `cycle_length` datasets in parallel.

    Args:
      map_func: Gives a dataset for an element.
      cycle_length: Datasets open at a time.
      block_length: Elements taken from one before the next has its turn.
      sloppy: Whether the order may differ from pass to pass.
      buffer_output_elements: Without effect.
      prefetch_input_elements: Without effect.
    """
    return lambda dataset: dataset.interleave(
        map_func, cycle_length, block_length, num_parallel_calls=cycle_length, deterministic=not sloppy
    )


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Transformation:
    """For `Dataset.apply`: folds the elements of each key into one value; values come in ascending order of keys.

    Raises:
      TypeError: if `reducer` is no `Reducer`.
    """
    if not isinstance(reducer, Reducer):
        raise TypeError(f"group_by_reducer takes a Reducer, got {type(reducer).__name__}")
    return lambda dataset: dataset.with_stage(ReduceByKey(key_func, reducer))


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[[Any, Any], Any],
    window_size: int | None = None,
    window_size_func: Callable[[Any], Any] | None = None,
) -> Transformation:
    """For `Dataset.apply`: as `Dataset.group_by_window`.

    Args:
      key_func: Gives an element's key, an int64 scalar.
      reduce_func: Gets a key and the dataset of its elements; returns a dataset.
      window_size: Elements of a window.
      window_size_func: The same by key; one of the two is given.
    """
    return lambda dataset: dataset.group_by_window(key_func, reduce_func, window_size, window_size_func)


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: list[int],
    bucket_batch_sizes: list[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """For `Dataset.apply`: batches elements of similar length, as `Dataset.bucket_by_sequence_length`.

    Args:
      element_length_func: Gives an element's length.
      bucket_boundaries: Upper ends of the buckets but the last.
      bucket_batch_sizes: Elements per batch, by bucket.
      padded_shapes: As for `Dataset.padded_batch`.
      padding_values: As for `Dataset.padded_batch`.
      pad_to_bucket_boundary: Whether unknown dimensions are as long as the bucket allows.
      no_padding: Whether elements of a batch have one shape already.
      drop_remainder: Whether to leave out smaller last batches.
    """
    return lambda dataset: dataset.bucket_by_sequence_length(
        element_length_func,
        bucket_boundaries,
        bucket_batch_sizes,
        padded_shapes,
        padding_values,
        pad_to_bucket_boundary,
        no_padding,
        drop_remainder,
    )


def dense_to_ragged_batch(
    batch_size: int, drop_remainder: bool = False, row_splits_dtype: Any = None
) -> Callable[[Dataset], NoReturn]:
    """For `Dataset.apply`, which refuses it: there are no ragged arrays here.

    Args:
      batch_size: Elements per batch.
      drop_remainder: Whether to leave out a smaller last batch.
      row_splits_dtype: Of the ends of rows.
    """
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def dense_to_sparse_batch(batch_size: int, row_shape: Any) -> Callable[[Dataset], NoReturn]:
    """For `Dataset.apply`, which refuses it: there are no sparse arrays here."""
    return lambda dataset: dataset.sparse_batch(batch_size, row_shape)


# Single elements, specs and descriptions


def at(dataset: Dataset, index: int) -> Any:
    """The element at position `index`, from 0.

    Of arrays, ranges, and map-style datasets of PyTorch or Hugging Face, with map, batch, take, skip and shard behind
    them, only that element is computed; else those before it are passed over.

    Raises:
      OutOfRangeError: if there is none.
    """
    count = dataset.cardinality()
    if index < 0 or 0 <= count <= index:
        raise OutOfRangeError(f"at: position {index} of {dataset!r} does not exist")
    if not obstacle(dataset):
        return from_position(dataset, index).first()
    return dataset.skip(index).first()


def get_single_element(dataset: Dataset) -> Any:
    """As `dataset.get_single_element()`."""
    return dataset.get_single_element()


def get_next_as_optional(iterator: DatasetIterator) -> Optional:
    """As `iterator.get_next_as_optional()`."""
    return iterator.get_next_as_optional()


def get_structure(dataset_or_iterator: Any) -> Any:
    """The nested spec of the elements of a dataset or iterator.

    Raises:
      TypeError: if it is neither.
    """
    try:
        return dataset_or_iterator.element_spec
    except AttributeError:
        name = type(dataset_or_iterator).__name__
        raise TypeError(f"get_structure takes a dataset or an iterator over one, got {name}") from None


def to_variant(dataset: Dataset) -> np.ndarray[Any, Any]:
    """An array of shape () and dtype object that holds the description of a dataset, for `from_variant`.

    Raises:
      TypeError: if it is no dataset.
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(f"to_variant takes a dataset, got {type(dataset).__name__}")
    variant = np.empty((), object)
    variant[()] = dataset
    return variant


def from_variant(variant: Any, structure: Any) -> Dataset:
    """The dataset that `to_variant` put into an array.

    Args:
      variant: The array.
      structure: The nested spec of its elements.

    Raises:
      InvalidArgumentError: if it holds none, or one of other elements.
    """
    dataset = variant.item() if isinstance(variant, np.ndarray) and variant.shape == () else variant
    if not isinstance(dataset, Dataset):
        raise InvalidArgumentError(f"from_variant takes what to_variant gave, got {variant!r:.80}")
    if dataset.element_spec != structure:
        raise InvalidArgumentError(
            f"from_variant: the dataset has elements {dataset.element_spec}, not {structure}"
        )
    return dataset
