"""`wb.distribute.experimental.partitioners`: the number of shards of a variable."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.arguments import count, whole_number
from workbench.backends.numpy import STRING, as_dtype
from workbench.errors import InvalidArgumentError, WrongType

__all__ = ["FixedShardsPartitioner", "MaxSizePartitioner", "MinSizePartitioner", "Partitioner"]


class Partitioner(ABC):
    """Decides how a variable is divided (as tf.distribute.experimental.partitioners.Partitioner).

    To write your own partitioner, subclass it with a `__call__`.
    """

    @abstractmethod
    def __call__(self, shape: Sequence[int], dtype: Any, axis: int = 0) -> list[int]:
        """The number of partitions along each dimension.

        Args:
          shape: The shape of the variable.
          dtype: The dtype of the variable: a NumPy dtype, its name, or "string".
          axis: The dimension that is divided; negative ones count from the last.

        Returns:
          A number per dimension: 1 except for `axis`.
        """

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"
        )


class FixedShardsPartitioner(Partitioner):
    """Makes `num_shards` shards, or one per row of smaller variables.

        wb.distribute.experimental.partitioners.FixedShardsPartitioner(2)((10, 3), "float32")  # [2, 1]

    Attributes:
      num_shards: Number of shards; as in TensorFlow, numbers below 1 are accepted.

    >>> wb.distribute.partitioners.FixedShardsPartitioner(2)((1000, 16), np.float32)
    [2, 1]
    """

    def __init__(self, num_shards: int) -> None:
        self.num_shards = whole_number(num_shards, "num_shards")

    def __call__(self, shape: Sequence[int], dtype: Any, axis: int = 0) -> list[int]:
        """The number of partitions along each dimension; see `Partitioner`."""
        return _along(axis, shape, min(self.num_shards, _length(shape, axis)))


class MinSizePartitioner(Partitioner):
    """Makes as many shards as possible that are not much smaller than `min_shard_bytes`.

    Their number is rounded up, as in TensorFlow, so they can be smaller than that.

    Args:
      min_shard_bytes: 256 KiB by default.
      max_shards: The most shards, 1 by default.
      bytes_per_string: How many bytes an element counts in a variable of strings.

    Raises:
      ValueError: if a number is below 1.
    """

    def __init__(
        self, min_shard_bytes: int = 256 << 10, max_shards: int = 1, bytes_per_string: int = 16
    ) -> None:
        self.min_shard_bytes = count(min_shard_bytes, "min_shard_bytes")
        self.max_shards = count(max_shards, "max_shards")
        self.bytes_per_string = count(bytes_per_string, "bytes_per_string")

    def __call__(self, shape: Sequence[int], dtype: Any, axis: int = 0) -> list[int]:
        """The number of partitions along each dimension; see `Partitioner`."""
        rows = _length(shape, axis)
        size_bytes = _elements(shape) * _element_bytes(dtype, self.bytes_per_string)
        wanted = math.ceil(size_bytes / self.min_shard_bytes)
        return _along(axis, shape, max(1, min(wanted, self.max_shards, rows)))


class MaxSizePartitioner(Partitioner):
    """Makes as few shards as possible that are not larger than `max_shard_bytes`; a shard has at least one row.

    Args:
      max_shard_bytes: The size of a shard.
      max_shards: The most shards, with priority over their size; None and 0 for any number.
      bytes_per_string: How many bytes an element counts in a variable of strings.

    Raises:
      ValueError: if a number is below 1 (`max_shards`: 0).
    """

    def __init__(
        self, max_shard_bytes: int, max_shards: int | None = None, bytes_per_string: int = 16
    ) -> None:
        self.max_shard_bytes = count(max_shard_bytes, "max_shard_bytes")
        self.max_shards = None if max_shards in (None, 0) else count(max_shards, "max_shards")
        self.bytes_per_string = count(bytes_per_string, "bytes_per_string")

    def __call__(self, shape: Sequence[int], dtype: Any, axis: int = 0) -> list[int]:
        """The number of partitions along each dimension; see `Partitioner`."""
        rows = _length(shape, axis)
        row_bytes = _elements(shape) * _element_bytes(dtype, self.bytes_per_string) // max(rows, 1)
        rows_per_shard = max(1, self.max_shard_bytes // row_bytes) if row_bytes else max(rows, 1)
        shards = math.ceil(rows / rows_per_shard)
        return _along(axis, shape, shards if self.max_shards is None else min(shards, self.max_shards))


def _along(axis: int, shape: Sequence[int], shards: int) -> list[int]:
    partitions = [1] * len(shape)
    partitions[axis] = shards
    return partitions


def _length(shape: Sequence[int], axis: int) -> int:
    if not isinstance(shape, list | tuple):
        raise WrongType(f"a partitioner divides a shape, such as (1000, 64), got {shape!r:.60}")
    if not -len(shape) <= whole_number(axis, "axis") < len(shape):
        raise np.exceptions.AxisError(f"a variable of shape {tuple(shape)} has no dimension {axis} to divide")
    _elements(shape)
    return int(shape[axis])


def _elements(shape: Sequence[int]) -> int:
    if any(size is None or whole_number(size, "a size of a variable") < 0 for size in shape):
        raise InvalidArgumentError(f"a variable has sizes of 0 and more, got shape {tuple(shape)}")
    return math.prod(shape)


def _element_bytes(dtype: Any, bytes_per_string: int) -> int:
    kind = as_dtype(dtype)
    return bytes_per_string if kind == STRING else kind.itemsize
