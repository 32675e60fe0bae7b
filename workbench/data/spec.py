"""What the elements of a dataset look like: `TensorSpec` for arrays, `DatasetSpec` for nested datasets."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from workbench import tree
from workbench.backends.numpy import STRING, as_dtype
from workbench.errors import InvalidArgumentError, OutOfRangeError

Shape = tuple[int | None, ...] | None
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


class Cardinality(int):
    """A number of elements.

    As an element of another dataset it becomes int64, while other Python numbers become int32.
    """


class Spec(ABC):
    """What specs of all kinds have in common; the names are those of tf.TypeSpec."""

    __slots__ = ()

    @classmethod
    @abstractmethod
    def from_value(cls, value: Any) -> Spec:
        """The spec of `value`.

        Raises:
          TypeError: if no spec of this kind describes it.
        """

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a spec or value has the same kind, structure and dtype, and the same sizes where both are known."""
        try:
            other = spec_or_value if isinstance(spec_or_value, Spec) else self.from_value(spec_or_value)
        except TypeError:
            return False
        return self._fits(other)

    def most_specific_compatible_type(self, other: Any) -> Self:
        """The most specific spec that covers this one and `other`.

        Raises:
          ValueError: if there is none: kinds, structures or dtypes differ.
        """
        try:
            return self._covering(other)
        except TypeError as error:
            raise InvalidArgumentError(f"no spec covers {self} and {other}: {error}") from None

    @abstractmethod
    def _fits(self, other: Spec) -> bool:
        """Whether a value could match both specs."""

    @abstractmethod
    def _covering(self, other: Any) -> Self:
        """The most specific spec that covers both; TypeError if there is none."""


@dataclass(frozen=True, slots=True, init=False)
class TensorSpec(Spec):
    """Shape and dtype of one component of an element.

    Attributes:
      shape: Dimensions, None for one that varies; None in place of the tuple for an unknown rank.
      dtype: NumPy dtype. Text and bytes have dtype `object` (their elements are `bytes`), named "string".
      name: A label for readers, or None; ignored when specs are compared.
    """

    shape: Shape
    dtype: np.dtype[Any]
    name: str | None = field(default=None, compare=False)

    def __init__(
        self, shape: Iterable[int | None] | None, dtype: Any = np.float32, name: str | None = None
    ) -> None:
        object.__setattr__(self, "shape", None if shape is None else tuple(shape))
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "name", name)

    @property
    def dtype_name(self) -> str:
        """The dtype's name, "string" for bytes."""
        return "string" if self.dtype == STRING else self.dtype.name

    @property
    def is_static(self) -> bool:
        """Whether every dimension is known."""
        return self.shape is not None and None not in self.shape

    def unnamed(self) -> TensorSpec:
        """The same without a name."""
        return TensorSpec(self.shape, self.dtype)

    def batched(self, size: int | None) -> TensorSpec:
        """The spec of `size` such components stacked."""
        return TensorSpec(None if self.shape is None else (size, *self.shape), self.dtype)

    def unbatched(self) -> TensorSpec:
        """The spec of one row of such a component."""
        return TensorSpec(None if self.shape is None else self.shape[1:], self.dtype)

    def of_any_size(self) -> TensorSpec:
        """The spec of arrays with as many dimensions, of any size."""
        return TensorSpec(None if self.shape is None else (None,) * len(self.shape), self.dtype)

    def of_any_rank(self) -> TensorSpec:
        """The spec of arrays of any shape."""
        return TensorSpec(None, self.dtype)

    def relaxed(self, other: TensorSpec) -> TensorSpec:
        """The most specific spec that covers this one and `other`; dtypes must agree.

        Raises:
          TypeError: if the dtypes differ.
        """
        if self.dtype != other.dtype:
            raise TypeError(f"dtypes differ: {self.dtype_name} and {other.dtype_name}")
        if self.shape is None or other.shape is None or len(self.shape) != len(other.shape):
            return TensorSpec(None, self.dtype)
        return TensorSpec(_covering_shape(self.shape, other.shape), self.dtype)

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

    @classmethod
    def from_value(cls, value: Any) -> TensorSpec:
        """The spec of an array, a number, text or bytes; lists of these are arrays.

        Raises:
          TypeError: if it is something else.
        """
        given = np.asarray(value)
        if given.dtype == STRING and not all(isinstance(part, bytes | str) for part in given.flat):
            raise TypeError(f"{type(value).__name__} is not an array: {value!r:.80}")
        return TensorSpec(given.shape, given.dtype)

    def _fits(self, other: Spec) -> bool:
        return (
            isinstance(other, TensorSpec) and other.dtype == self.dtype and may_agree(self.shape, other.shape)
        )

    def _covering(self, other: Any) -> TensorSpec:
        if not isinstance(other, TensorSpec):
            raise TypeError("kinds differ")
        covering = self.relaxed(other)
        return TensorSpec(covering.shape, self.dtype, self.name if self.name == other.name else None)

    def __repr__(self) -> str:
        name = "" if self.name is None else f", name={self.name!r}"
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype_name}{name})"


@dataclass(frozen=True, slots=True)
class ElementsSpec(Spec):
    """The spec of something that has elements of one spec.

    Attributes:
      element_spec: The nested spec of its elements.
    """

    element_spec: Any

    def __hash__(self) -> int:
        leaves, structure = tree.flatten_records(self.element_spec)  # it may contain dicts
        return hash((type(self), structure, tuple(leaves)))

    def unnamed(self) -> Self:
        """Itself, as it has no name."""
        return self

    def batched(self, size: int | None) -> ElementsSpec:
        """The spec of `size` of them stacked.

        Raises:
          TypeError: always: only datasets can be stacked.
        """
        raise TypeError(f"elements that hold {self} cannot be batched; map them to what it holds")

    def unbatched(self) -> ElementsSpec:
        """The spec of one row.

        Raises:
          TypeError: always: only arrays of datasets have rows.
        """
        raise TypeError(f"elements that hold {self} have no rows; map them to what it holds")

    def of_any_size(self) -> Self:
        """The same kind of spec for elements of any size."""
        return replace(self, element_spec=any_size(self.element_spec))

    def of_any_rank(self) -> Self:
        """The same kind of spec for elements of any shape."""
        return replace(self, element_spec=any_rank(self.element_spec))

    def _fits(self, other: Spec) -> bool:
        return type(other) is type(self) and fits(self.element_spec, other.element_spec)

    def _covering(self, other: Any) -> Self:
        if type(other) is not type(self):
            raise TypeError("kinds differ")
        return replace(self, element_spec=relax(self.element_spec, other.element_spec))


@dataclass(frozen=True, slots=True)
class DatasetSpec(ElementsSpec):
    """An element component that is itself a dataset, such as a window.

    Attributes:
      dataset_shape: Dimensions of an array of datasets; () for one.
    """

    dataset_shape: tuple[int | None, ...] = ()

    __hash__ = ElementsSpec.__hash__

    def __post_init__(self) -> None:
        object.__setattr__(self, "dataset_shape", tuple(self.dataset_shape))

    def _fits(self, other: Spec) -> bool:
        return (
            isinstance(other, DatasetSpec)
            and may_agree(self.dataset_shape, other.dataset_shape)
            and ElementsSpec._fits(self, other)
        )

    def _covering(self, other: Any) -> DatasetSpec:
        covering = ElementsSpec._covering(self, other)
        if len(self.dataset_shape) != len(other.dataset_shape):
            raise TypeError(f"ranks differ: {self.dataset_shape} and {other.dataset_shape}")
        return replace(covering, dataset_shape=_covering_shape(self.dataset_shape, other.dataset_shape))

    def batched(self, size: int | None) -> DatasetSpec:
        """The spec of an array of `size` such arrays of datasets."""
        return replace(self, dataset_shape=(size, *self.dataset_shape))

    def of_any_size(self) -> DatasetSpec:
        """The spec of arrays of any size, of datasets with elements of any size."""
        sizes = (None,) * len(self.dataset_shape)
        return DatasetSpec(any_size(self.element_spec), sizes)

    def unbatched(self) -> DatasetSpec:
        """The spec of one of the array's rows."""
        return replace(self, dataset_shape=self.dataset_shape[1:])

    @classmethod
    def from_value(cls, value: Any) -> DatasetSpec:
        """The spec of a dataset.

        Raises:
          TypeError: if it is something else.
        """
        if not is_dataset(value):
            raise TypeError(f"{type(value).__name__} is not a dataset: {value!r:.80}")
        return DatasetSpec(value.element_spec)


def is_dataset(value: Any) -> bool:
    """Whether a value is a dataset, and not an iterator or optional, which also have an `element_spec`."""
    kind = type(value)  # reading the value's own spec could call user functions
    return hasattr(kind, "element_spec") and hasattr(kind, "cardinality")


class UnknownSpec(NamedTuple):
    """The spec of a dataset without an element to learn it from: a tree without leaves, but not `()`."""


def spec_if_learnt(dataset: Any) -> Any:
    """The nested spec of a dataset's elements; `UnknownSpec()` if there are none, or none could be made."""
    try:
        return dataset.element_spec
    except OutOfRangeError:
        return UnknownSpec()


def required_spec(dataset: Any, what: str) -> Any:
    """The nested spec of a dataset's elements, for callers that cannot work without it.

    Args:
      dataset: The dataset.
      what: What needs it, for errors.

    Raises:
      InvalidArgumentError: if there are none, or none could be made. `OutOfRangeError` would look like the end of data.
    """
    try:
        return dataset.element_spec
    except OutOfRangeError as error:
        raise InvalidArgumentError(f"{what} has to know what elements look like, but {error}") from error


def spec_unread(dataset: Any) -> Any:
    """As `spec_if_learnt`, but reads no element."""
    return spec_if_learnt(dataset.unread())


def any_size(spec: Any) -> Any:
    """A nested spec with arrays of any size, also inside of datasets; only the numbers of dimensions stay known."""
    return tree.map(lambda part: part.of_any_size(), spec)


def any_rank(spec: Any) -> Any:
    """A nested spec with arrays of any shape, also inside of datasets."""
    return tree.map(lambda part: part.of_any_rank(), spec)


def is_shape(node: Any) -> bool:
    """Whether a node of a nested structure is a shape: a tuple or list of numbers and None."""
    return isinstance(node, list | tuple) and all(
        size is None or isinstance(size, int | np.integer) for size in node
    )


def may_agree(shape: Shape, other: Shape) -> bool:
    """Whether an array could have both shapes: sizes agree where both are known."""
    if shape is None or other is None:
        return True
    return len(shape) == len(other) and all(
        None in (size, known) or size == known for size, known in zip(shape, other, strict=True)
    )


def _covering_shape(shape: tuple[int | None, ...], other: tuple[int | None, ...]) -> tuple[int | None, ...]:
    return tuple(a if a == b else None for a, b in zip(shape, other, strict=True))


def fits(spec: Any, other: Any) -> bool:
    """Whether two nested specs have the same structure, and every component is compatible."""
    leaves, structure = tree.flatten_records(spec)
    others, found = tree.flatten_records(other)
    return structure == found and all(
        leaf.is_compatible_with(seen) for leaf, seen in zip(leaves, others, strict=True)
    )


def spec_of(value: Any) -> TensorSpec | ElementsSpec:
    """The spec of one converted component: an array, a NumPy scalar, bytes, or something that has elements."""
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype == STRING and value.size:
            parts: list[Any] = value.reshape(-1).tolist()
            if is_dataset(parts[0]):
                return DatasetSpec(
                    functools.reduce(relax, [part.element_spec for part in parts]), value.shape
                )
        return TensorSpec(value.shape, value.dtype)
    if isinstance(value, bytes):
        return TensorSpec((), STRING)
    kind: type[ElementsSpec] = DatasetSpec if is_dataset(value) else value.spec_class
    return kind(value.element_spec)


def relax(first: Any, second: Any) -> Any:
    """Covers two nested specs, component by component.

    Raises:
      TypeError: if structures or dtypes differ.
    """
    leaves, structure = tree.flatten_records(first)
    others, other = tree.flatten_records(second)
    if structure != other:
        raise TypeError(f"structures differ: {first} and {second}")
    return tree.unflatten(structure, [_relax_leaf(a, b) for a, b in zip(leaves, others, strict=True)])


def _relax_leaf(a: Any, b: Any) -> Any:
    if isinstance(a, TensorSpec) and isinstance(b, TensorSpec):
        return a.relaxed(b)
    if isinstance(a, ElementsSpec) and type(a) is type(b):
        return a._covering(b)
    raise TypeError(f"kinds differ: {a} and {b}")
