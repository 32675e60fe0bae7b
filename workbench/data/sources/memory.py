"""Arrays in memory: rows of arrays, or one whole value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from workbench.data.passes import Pass
from workbench.data.spec import relax, spec_of
from workbench.data.stage import Source
from workbench.data.structure import Array, Structure, flatten
from workbench.data.tables import ArrayTable, Leaves, ListTable, Run
from workbench.errors import InvalidArgumentError


@dataclass(frozen=True, eq=False)
class Slices(Source):
    """One element per row of arrays of equal length; not copied, and read-only."""

    name: ClassVar[str] = "memory"
    random_access: ClassVar[bool] = True
    table: ArrayTable

    @staticmethod
    def of(value: Any) -> Slices:
        """Checks and converts what the user gave.

        Raises:
          ValueError: if a component is a scalar, or the first dimensions differ.
        """
        leaves, structure = flatten(value)
        shapes = [np.shape(leaf) for leaf in leaves]
        if not leaves or any(shape == () for shape in shapes):
            raise InvalidArgumentError(
                f"from_tensor_slices cuts along the first dimension, but got components of shape {shapes}; "
                "use from_tensors for a single element"
            )
        if len({shape[0] for shape in shapes}) > 1:
            raise InvalidArgumentError(
                f"from_tensor_slices: the components have different first dimensions: shapes {shapes}; "
                "make them equal"
            )
        return _slices(tuple(leaves), structure)

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrays arrive writable in another process, so the views must be made read-only again.
        return _slices, (self.table.columns, self.table.structure)

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        if self.cardinality():
            yield Run(self.table, range(self.cardinality()))

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return self.table.structure.pack([spec_of(column).unbatched() for column in self.table.columns])

    def cardinality(self) -> int:
        """Number of elements."""
        return len(self.table.columns[0])


@dataclass(frozen=True, eq=False)
class Whole(Source):
    """A single element."""

    name: ClassVar[str] = "memory"
    leaves: tuple[Any, ...]
    structure: Structure

    @staticmethod
    def of(value: Any) -> Whole:
        """Converts what the user gave.

        Raises:
          InvalidArgumentError: if it has no component.
        """
        leaves, structure = flatten(value)
        if not leaves:
            raise InvalidArgumentError(
                f"from_tensors: an element has a component at least, got {value!r:.60}"
            )
        return _whole(tuple(leaves), structure)

    def __reduce__(self) -> tuple[Any, ...]:
        return _whole, (self.leaves, self.structure)

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        # Numbers the rows of the value, because they can be split.
        shape = np.shape(self.leaves[0]) if self.leaves else ()
        ids = np.arange(shape[0]) if shape else np.zeros(1, np.int64)
        yield Run(ListTable([list(self.leaves)], self.structure, [ids]), range(1))

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return self.structure.pack([spec_of(leaf) for leaf in self.leaves])

    def cardinality(self) -> int:
        """Number of elements."""
        return 1


def read_only(value: Any) -> Any:
    """A read-only view: a function must not change in place what others also get."""
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view


def _slices(columns: tuple[Array, ...], structure: Structure) -> Slices:
    return Slices(ArrayTable(tuple(read_only(column) for column in columns), structure))


def _whole(leaves: tuple[Any, ...], structure: Structure) -> Whole:
    return Whole(tuple(read_only(leaf) for leaf in leaves), structure)


@dataclass(frozen=True, eq=False)
class Held(Source):
    """Elements that a stage has collected, such as a window."""

    name: ClassVar[str] = "window"
    table: ListTable
    spec: Any

    @classmethod
    def of(cls, items: list[Leaves], structure: Structure, ids: list[Array] | None = None) -> Self:
        """A source of at least one element.

        Args:
          items: The components of each element.
          structure: Their structure.
          ids: The number of each element; None if they have none.
        """
        spec = structure.pack([spec_of(leaf) for leaf in items[0]])
        for leaves in items[1:]:
            spec = relax(spec, structure.pack([spec_of(leaf) for leaf in leaves]))
        return cls(ListTable(items, structure, ids), spec)

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        yield Run(self.table, range(len(self.table.items)))

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return self.spec

    def cardinality(self) -> int:
        """Number of elements."""
        return len(self.table.items)


@dataclass(frozen=True, eq=False)
class Listed(Held):
    """The elements of a list, which may differ in shape."""

    name: ClassVar[str] = "list"

    @classmethod
    def given(cls, elements: Any) -> Self:
        """Converts what the user gave.

        Raises:
          InvalidArgumentError: if this is not a list, or is empty, or its elements differ in structure or have no
            component.
          TypeError: if they differ in dtype.
        """
        if not isinstance(elements, list) or not elements:
            raise InvalidArgumentError(
                f"from_list takes a list of at least one element, got {elements!r:.60}; Dataset.range(0) is empty"
            )
        converted = [flatten(element) for element in elements]
        structure = converted[0][1]
        for index, (_, found) in enumerate(converted):
            if found != structure:
                raise InvalidArgumentError(
                    f"from_list: element {index} is {elements[index]!r:.60}, which has a different structure "
                    f"from element 0"
                )
        if not converted[0][0]:
            raise InvalidArgumentError(
                f"from_list: an element has a component at least, got {elements[0]!r:.60}"
            )
        items = [[read_only(leaf) for leaf in leaves] for leaves, _ in converted]
        try:
            return cls.of(items, structure, [np.array([index]) for index in range(len(items))])
        except TypeError as error:
            raise TypeError(f"from_list: all elements have one dtype, but {error}") from None
