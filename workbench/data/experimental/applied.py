"""Transformations under the names of tf.data.experimental, for `Dataset.apply`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import numpy as np

from workbench import tree
from workbench.arguments import optional_flag, whole_number
from workbench.backends.numpy import STRING
from workbench.data.dataset import Dataset
from workbench.data.spec import UNKNOWN_CARDINALITY, TensorSpec, required_spec
from workbench.data.stages.computing.reduce_by_key import ReduceByKey, Reducer
from workbench.data.stages.observed import BytesProducedStats, LatencyStats
from workbench.data.stages.to_device import ToDevice
from workbench.errors import InvalidArgumentError

Transformation = Callable[[Dataset], Dataset]


def shuffle_and_repeat(buffer_size: int, count: int | None = None, seed: int | None = None) -> Transformation:
    """For `Dataset.apply`: `shuffle(buffer_size, seed)`, a new order each time, then `repeat(count)`.

    Args:
      buffer_size: See `Dataset.shuffle`.
      count: See `Dataset.repeat`.
      seed: See `Dataset.shuffle`.
    """
    return lambda dataset: dataset.shuffle(buffer_size, seed, reshuffle_each_iteration=True).repeat(count)


def snapshot(
    path: str,
    compression: str | None = "AUTO",
    reader_func: Callable[[Dataset], Dataset] | None = None,
    shard_func: Callable[..., Any] | None = None,
) -> Transformation:
    """For `Dataset.apply`: writes the first complete pass below `path`, and reads it from then on.

    Args:
      path: See `Dataset.snapshot`, for all arguments.
      compression: "AUTO", "GZIP", "SNAPPY" or None.
      reader_func: Arranges the parts of the snapshot when it is read.
      shard_func: Chooses the part that an element is written to.
    """
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """For `Dataset.apply`: the elements before the first one for which the predicate returns False."""
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


def copy_to_device(target_device: Any, source_device: str = "/cpu:0") -> Transformation:
    """For `Dataset.apply`: elements as arrays in the memory of a device of this machine.

    Arrays and numbers become CuPy's on a GPU, JAX's on one of `jax.devices()` or a TPU, and stay NumPy's on the CPU;
    text and dates stay as they are. Use it at the end: later functions of JAX arrays return NumPy's again, and CuPy
    raises an error. A dataset for a strategy needs no copies: arguments of a replica are on its device.

    The code for GPUs has run with a simulated CuPy only.

    Args:
      target_device: A name, such as "/gpu:0" or "GPU:0", or a device of JAX.
      source_device: Where elements are: the CPU.

    Raises:
      InvalidArgumentError: if the target is not a device of this machine, or the source is not the CPU; in a pass, if
        whole numbers do not fit into the 32 bits that JAX has by default.
      BackendUnavailable: in a pass, if CuPy, JAX or the device is missing.
    """
    if ToDevice.of(source_device, "copy_to_device").describe() != "to_device(CPU:0)":
        raise InvalidArgumentError(
            f"copy_to_device: source_device is {source_device!r}; elements of a dataset are on the CPU"
        )
    return lambda dataset: dataset.with_stage(ToDevice.of(target_device, "copy_to_device"))


def prefetch_to_device(device: Any, buffer_size: int | None = None) -> Transformation:
    """For `Dataset.apply`: as `copy_to_device(device)`, by a thread, `buffer_size` elements ahead of their use.

    As in the reference, it should come last.

    Args:
      device: See `copy_to_device`.
      buffer_size: Elements that wait on the device; None for as many as the reader needs to avoid waiting.
    """
    return lambda dataset: dataset.with_stage(ToDevice.of(device, "prefetch_to_device")).prefetch(buffer_size)


def enumerate_dataset(start: int = 0) -> Transformation:
    """For `Dataset.apply`: pairs of a number and the element."""
    return lambda dataset: dataset.enumerate(start)


def scan(initial_state: Any, scan_func: Callable[[Any, Any], Any]) -> Transformation:
    """For `Dataset.apply`: computes with a state and each element, as `Dataset.scan`."""
    return lambda dataset: dataset.scan(initial_state, scan_func)


def ignore_errors(log_warning: bool = False) -> Transformation:
    """For `Dataset.apply`: skips elements that could not be made."""
    return lambda dataset: dataset.ignore_errors(log_warning)


def rejection_resample(
    class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None, seed: int | None = None
) -> Transformation:
    """For `Dataset.apply`: drops elements at random, as `Dataset.rejection_resample`.

    Args:
      class_func: Returns an element's class, a whole number.
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
      num_parallel_batches: Batches made in parallel: `batch_size` calls for each.
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
      map_func: Returns a dataset for an element.
      cycle_length: Datasets open at a time.
      block_length: Consecutive elements to take from one dataset.
      sloppy: Whether the order may differ from pass to pass.
      buffer_output_elements: Without effect.
      prefetch_input_elements: Without effect.
    """
    in_order = not optional_flag(sloppy, "parallel_interleave: sloppy")
    return lambda dataset: dataset.interleave(
        map_func, cycle_length, block_length, num_parallel_calls=cycle_length, deterministic=in_order
    )


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Transformation:
    """For `Dataset.apply`: folds the elements of each key into one value; values come in ascending order of keys.

    Raises:
      TypeError: if `reducer` is not a `Reducer`.
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
      key_func: Returns an element's key, an int64 scalar.
      reduce_func: Takes a key and the dataset of its elements; returns a dataset.
      window_size: Elements of a window.
      window_size_func: The same by key; one of the two is given.
    """
    return lambda dataset: dataset.group_by_window(key_func, reduce_func, window_size, window_size_func)


def pad_to_cardinality(cardinality: int, mask_key: str = "valid") -> Transformation:
    """For `Dataset.apply`: adds elements of zeros and empty texts up to a number of elements.

    Args:
      cardinality: The number of elements to reach.
      mask_key: A key that each element gets; its value is False for those that are added.

    Raises:
      InvalidArgumentError: by `apply`, if the number of elements is unknown, infinite or greater than `cardinality`, if
        elements are not dicts, or if they differ in shape.

    >>> dataset = wb.data.Dataset.from_tensor_slices({"a": np.arange(7, 9)})
    >>> [(int(x["a"]), bool(x["valid"])) for x in dataset.apply(wb.data.experimental.pad_to_cardinality(3))]
    [(7, True), (8, True), (0, False)]
    """
    wanted = whole_number(cardinality, "pad_to_cardinality: cardinality")

    def padded(dataset: Dataset) -> Dataset:
        count = dataset.cardinality()
        if not 0 <= count <= wanted:
            remedy = (
                "state it with assert_cardinality" if count == UNKNOWN_CARDINALITY else "take as many first"
            )
            raise InvalidArgumentError(
                f"pad_to_cardinality({wanted}) takes a dataset of at most {wanted} elements, whose number is known, "
                f"got {dataset!r}; {remedy}"
            )
        spec = required_spec(dataset, "pad_to_cardinality")
        if not isinstance(spec, dict):
            raise InvalidArgumentError(f"pad_to_cardinality: elements must be dicts, got {spec}")
        filler = {**tree.map(_zero, spec), mask_key: False}
        rest = Dataset.from_tensors(filler).repeat(wanted - count)
        return dataset.map(_Marked(mask_key)).concatenate(rest)

    return padded


@dataclass(frozen=True, slots=True)
class _Marked:
    """Marks an element that existed before."""

    key: str

    def __call__(self, element: dict[str, Any]) -> dict[str, Any]:
        return {**element, self.key: True}


def _zero(spec: Any) -> Any:
    if not isinstance(spec, TensorSpec) or not spec.is_static:
        raise InvalidArgumentError(
            f"pad_to_cardinality: the shape of elements to add is unknown: {spec}; batch with drop_remainder, or "
            "after padding"
        )
    zeros = np.zeros(cast("tuple[int, ...]", spec.shape), spec.dtype)
    if spec.dtype == STRING:
        zeros.fill(b"")
    return zeros


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
      element_length_func: Returns an element's length.
      bucket_boundaries: Upper ends of all buckets but the last.
      bucket_batch_sizes: Elements per batch, by bucket.
      padded_shapes: See `Dataset.padded_batch`.
      padding_values: See `Dataset.padded_batch`.
      pad_to_bucket_boundary: Whether unknown dimensions are as long as the bucket allows.
      no_padding: Whether elements of a batch already have the same shape.
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
    """For `Dataset.apply`, which raises an error: workbench has no ragged arrays.

    Args:
      batch_size: Elements per batch.
      drop_remainder: Whether to leave out a smaller last batch.
      row_splits_dtype: Dtype of the ends of rows.
    """
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def dense_to_sparse_batch(batch_size: int, row_shape: Any) -> Callable[[Dataset], NoReturn]:
    """For `Dataset.apply`, which raises an error: workbench has no sparse arrays."""
    return lambda dataset: dataset.sparse_batch(batch_size, row_shape)
