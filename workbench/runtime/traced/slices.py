"""IndexedSlices among the arguments and results of traced programs: two arrays travel, the rest is fixed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Slices:
    """The fixed part of IndexedSlices in a program.

    Attributes:
      kind: Their class.
      dense_shape: Shape of the whole array, or None if unknown.
    """

    kind: type
    dense_shape: tuple[int, ...] | None

    @classmethod
    def of(cls, value: Any) -> Slices | None:
        """The fixed part of `value`, None if it is not IndexedSlices."""
        if type(value).__name__ != "IndexedSlices":
            return None
        shape = value.dense_shape
        return cls(type(value), None if shape is None else tuple(int(n) for n in np.asarray(shape)))

    def with_arrays(self, values: Any, indices: Any) -> Any:
        """The slices with these rows."""
        return self.kind(values, indices, self.dense_shape)


@dataclass(frozen=True, slots=True)
class SlicesRows:
    """IndexedSlices of all replicas, as a result of a program.

    Attributes:
      fixed: The part that is the same for all.
      values: Rows of the values.
      indices: Rows of the indices.
    """

    fixed: Slices
    values: Any
    indices: Any


Plan = tuple[Slices | None, ...]


def expanded(leaves: Sequence[Any]) -> tuple[list[Any], Plan]:
    """Replaces slices among leaves by two arrays; also returns the plan to reverse that."""
    plan = tuple(Slices.of(leaf) for leaf in leaves)
    flat: list[Any] = []
    for leaf, fixed in zip(leaves, plan, strict=True):
        flat += [leaf] if fixed is None else [leaf.values, leaf.indices]
    return flat, plan


def contracted(flat: Sequence[Any], plan: Plan) -> Iterator[Any]:
    """The inverse of `expanded`, for the results of a program on the devices."""
    arrays = iter(flat)
    for fixed in plan:
        first = next(arrays)
        yield first if fixed is None else SlicesRows(fixed, first, next(arrays))
