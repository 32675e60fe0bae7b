"""IndexedSlices among the arguments and results of traced programs: two arrays that travel, the rest is fixed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Slices:
    """What is fixed of IndexedSlices in a program.

    Attributes:
      kind: Their class.
      dense_shape: Shape of the whole array, or None if unknown.
    """

    kind: type
    dense_shape: tuple[int, ...] | None

    @classmethod
    def of(cls, value: Any) -> Slices | None:
        """What is fixed of `value`, None if it is something else."""
        if type(value).__name__ != "IndexedSlices":
            return None
        shape = value.dense_shape
        return cls(type(value), None if shape is None else tuple(int(n) for n in np.asarray(shape)))

    def with_arrays(self, values: Any, indices: Any) -> Any:
        """The slices with these rows."""
        return self.kind(values, indices, self.dense_shape)


@dataclass(frozen=True, slots=True)
class SlicesRows:
    """IndexedSlices of all replicas, as a program leaves them.

    Attributes:
      fixed: What is the same for all.
      values: Rows of the values.
      indices: Rows of the indices.
    """

    fixed: Slices
    values: Any
    indices: Any


Plan = tuple[Slices | None, ...]


def expanded(leaves: Sequence[Any]) -> tuple[list[Any], Plan]:
    """Leaves with two arrays in the place of slices, and how to put them together again."""
    plan = tuple(Slices.of(leaf) for leaf in leaves)
    flat: list[Any] = []
    for leaf, fixed in zip(leaves, plan, strict=True):
        flat += [leaf] if fixed is None else [leaf.values, leaf.indices]
    return flat, plan


def contracted(flat: Sequence[Any], plan: Plan) -> Iterator[Any]:
    """The inverse of `expanded`, for what a program left on the devices."""
    arrays = iter(flat)
    for fixed in plan:
        first = next(arrays)
        yield first if fixed is None else SlicesRows(fixed, first, next(arrays))
