"""Functions, under the names of tf.data.experimental, that make or inspect datasets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from workbench.data.dataset import Dataset
from workbench.data.exports.random_access import from_position, obstacle
from workbench.data.iterator import DatasetIterator, Optional
from workbench.data.sources.memory import Listed
from workbench.errors import InvalidArgumentError, OutOfRangeError


def Counter(start: Any = 0, step: Any = 1, dtype: Any = np.int64) -> Dataset:
    """As `Dataset.counter`: endless numbers."""
    return Dataset.counter(start, step, dtype)


def RandomDataset(seed: int | None = None) -> Dataset:
    """As `Dataset.random`: endless random whole numbers from 0 to 2**32 - 1."""
    return Dataset.random(seed)


def from_list(elements: list[Any], name: str | None = None) -> Dataset:
    """The elements of a list. Unlike rows of `from_tensor_slices`, they may differ in shape.

    Args:
      elements: At least one element; a tuple or dict is a structure, a list is an array.
      name: Name of the dataset.

    Raises:
      InvalidArgumentError: if there is no element, or structures differ.
      TypeError: if dtypes differ.

    >>> list(wb.data.experimental.from_list([[1], [2, 3]]))
    [array([1], dtype=int32), array([2, 3], dtype=int32)]
    """
    return Dataset.of_source(Listed.given(elements), name)


def choose_from_datasets(
    datasets: Sequence[Dataset], choice_dataset: Dataset, stop_on_empty_dataset: bool = False
) -> Dataset:
    """As `Dataset.choose_from_datasets`, but skips exhausted datasets by default.

    Args:
      datasets: At least one.
      choice_dataset: A dataset of int64 scalars from 0 to `len(datasets) - 1`.
      stop_on_empty_dataset: Whether to end when an exhausted dataset is chosen.
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
      weights: How often each is chosen, in proportion; or a dataset of such arrays; None for equal weights.
      seed: Makes the choices repeatable.
      stop_on_empty_dataset: Whether to end when an exhausted dataset is chosen.
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
      reader_func: Makes the dataset from a dataset of one dataset per file.
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
      shard_func: Returns the number of the file that an element goes to.
    """
    dataset.save(path, compression, shard_func)


def cardinality(dataset: Dataset) -> int:
    """Number of elements, -1 for infinite, -2 for unknown."""
    return dataset.cardinality()


def at(dataset: Dataset, index: int) -> Any:
    """The element at position `index`, from 0.

    For arrays, ranges, and map-style datasets of PyTorch or Hugging Face, followed only by map, batch, take, skip and
    shard, only that element is computed; otherwise, the elements before it are read first.

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
      TypeError: if it is not a dataset.
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
      InvalidArgumentError: if it holds no dataset, or one with other elements.
    """
    dataset = variant.item() if isinstance(variant, np.ndarray) and variant.shape == () else variant
    if not isinstance(dataset, Dataset):
        raise InvalidArgumentError(f"from_variant takes what to_variant gave, got {variant!r:.80}")
    if dataset.element_spec != structure:
        raise InvalidArgumentError(
            f"from_variant: the dataset has elements {dataset.element_spec}, not {structure}"
        )
    return dataset
