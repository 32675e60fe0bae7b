"""IndexedSlices: some rows of a large array, by their indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True, eq=False)
class IndexedSlices:
    """Rows of an array of shape `dense_shape`, as a gradient of a table look-up has them (as tf.IndexedSlices).

    Attributes:
      values: Shape `(n, ...)`: the rows.
      indices: Shape `(n,)`: which rows they are; where one occurs twice the rows add up.
      dense_shape: Shape of the whole array, or None if unknown.

    >>> rows = wb.IndexedSlices(values=np.ones((2, 3)), indices=np.array([7, 1]))  # rows 7 and 1 of a large array
    """

    values: Any
    indices: Any
    dense_shape: Any = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the rows."""
        dtype: np.dtype[Any] = np.asarray(self.values).dtype
        return dtype

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The dense shape, or None if unknown."""
        return None if self.dense_shape is None else tuple(int(n) for n in np.asarray(self.dense_shape))

    def dense(self) -> np.ndarray[Any, Any]:
        """The whole array, zero where there is no row.

        Raises:
          InvalidArgumentError: if `dense_shape` is not known.
        """
        if self.shape is None:
            raise InvalidArgumentError(
                "IndexedSlices without dense_shape cannot become a dense array; give dense_shape=(rows, ...)"
            )
        values = np.asarray(self.values)
        dense = np.zeros(self.shape, values.dtype)
        np.add.at(dense, np.asarray(self.indices), values)
        return dense

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.dense() if dtype is None else self.dense().astype(dtype)


def concatenate(parts: Sequence[IndexedSlices]) -> IndexedSlices:
    """All rows of all `parts`, duplicates kept: the sum of what they stand for.

    Raises:
      InvalidArgumentError: if dtypes or dense shapes differ.
    """
    first = parts[0]
    for replica, part in enumerate(parts):
        if part.dtype != first.dtype or part.shape != first.shape:
            raise InvalidArgumentError(
                f"IndexedSlices differ: replica 0 has {first.dtype}{first.shape}, replica {replica} has "
                f"{part.dtype}{part.shape}; all must have one dtype and dense_shape"
            )
    values = np.concatenate([np.asarray(part.values) for part in parts])
    indices = np.concatenate([np.asarray(part.indices) for part in parts])
    return IndexedSlices(values, indices, first.dense_shape)
