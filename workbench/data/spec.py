"""What the elements of a dataset look like: `TensorSpec` for arrays, `DatasetSpec` for nested datasets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import tree

Shape = tuple[int | None, ...] | None
STRING = np.dtype(object)
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


@dataclass(frozen=True, slots=True, init=False)
class TensorSpec:
    """Shape and dtype of one component of an element.

    Attributes:
      shape: Dimensions, None for one that varies; None in place of the tuple for an unknown rank.
      dtype: NumPy dtype. Text and bytes have dtype `object` (their elements are `bytes`), named "string".
    """

    shape: Shape
    dtype: np.dtype[Any]

    def __init__(self, shape: Iterable[int | None] | None, dtype: Any = np.float32) -> None:
        object.__setattr__(self, "shape", None if shape is None else tuple(shape))
        object.__setattr__(self, "dtype", dtype_of(dtype))

    @property
    def dtype_name(self) -> str:
        """The dtype's name, "string" for bytes."""
        return "string" if self.dtype == STRING else self.dtype.name

    @property
    def is_static(self) -> bool:
        """Whether every dimension is known."""
        return self.shape is not None and None not in self.shape

    def batched(self, size: int | None) -> TensorSpec:
        """The spec of `size` such components stacked."""
        return TensorSpec(None if self.shape is None else (size, *self.shape), self.dtype)

    def unbatched(self) -> TensorSpec:
        """The spec of one row of such a component."""
        return TensorSpec(None if self.shape is None else self.shape[1:], self.dtype)

    def relaxed(self, other: TensorSpec) -> TensorSpec:
        """The closest spec that covers this one and `other`; dtypes must agree.

        Raises:
          TypeError: if the dtypes differ.
        """
        if self.dtype != other.dtype:
            raise TypeError(f"dtypes differ: {self.dtype_name} and {other.dtype_name}")
        if self.shape is None or other.shape is None or len(self.shape) != len(other.shape):
            return TensorSpec(None, self.dtype)
        shape = tuple(a if a == b else None for a, b in zip(self.shape, other.shape, strict=True))
        return TensorSpec(shape, self.dtype)

    def accepts(self, value: Any) -> bool:
        """Whether an array of this shape and dtype fits."""
        seen = spec_of(value)
        if not isinstance(seen, TensorSpec) or seen.dtype != self.dtype:
            return False
        if self.shape is None or seen.shape is None:
            return True
        return len(self.shape) == len(seen.shape) and all(
            want is None or want == got for want, got in zip(self.shape, seen.shape, strict=True)
        )

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype_name})"


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """An element component that is itself a dataset, such as a window."""

    element_spec: Any


def dtype_of(dtype: Any) -> np.dtype[Any]:
    """A NumPy dtype; "string", `str` and `bytes` mean bytes objects."""
    if dtype in ("string", str, bytes):
        return STRING
    resolved = np.dtype(dtype)
    return STRING if resolved.kind in "US" else resolved


def is_shape(node: Any) -> bool:
    """Whether a node of a nested structure is a shape: a tuple or list of numbers and None."""
    return isinstance(node, list | tuple) and all(size is None or isinstance(size, int) for size in node)


def spec_of(value: Any) -> TensorSpec | DatasetSpec:
    """The spec of one converted component: an array, a NumPy scalar, bytes, or a nested dataset."""
    if isinstance(value, np.ndarray | np.generic):
        return TensorSpec(value.shape, value.dtype)
    if isinstance(value, bytes):
        return TensorSpec((), STRING)
    return DatasetSpec(value.element_spec)


def relax(first: Any, second: Any) -> Any:
    """Covers two nested specs, component by component.

    Raises:
      TypeError: if structures or dtypes differ.
    """
    leaves, structure = tree.flatten(first)
    others, other = tree.flatten(second)
    if structure != other:
        raise TypeError(f"structures differ: {first} and {second}")
    return tree.unflatten(structure, [_relax_leaf(a, b) for a, b in zip(leaves, others, strict=True)])


def _relax_leaf(a: Any, b: Any) -> Any:
    if isinstance(a, TensorSpec) and isinstance(b, TensorSpec):
        return a.relaxed(b)
    if isinstance(a, DatasetSpec) and isinstance(b, DatasetSpec):
        return DatasetSpec(relax(a.element_spec, b.element_spec))
    raise TypeError(f"kinds differ: {a} and {b}")
