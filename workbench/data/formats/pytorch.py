"""PyTorch datasets, or any object with their interface, as sources; PyTorch itself is not imported."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from workbench import forks, tree
from workbench.data.dataset import Dataset
from workbench.data.passes import Pass
from workbench.data.sources.memory import read_only
from workbench.data.spec import UNKNOWN_CARDINALITY, relax, spec_of
from workbench.data.stacking import stack
from workbench.data.stage import Source
from workbench.data.stages.computing.functions import note_place
from workbench.data.structure import Structure, flatten_result
from workbench.data.tables import Leaves, NumberedRows, Rows, Run, row_numbers, single
from workbench.errors import InvalidArgumentError

_TORCH = "torch.utils.data."


def from_torch(dataset: Any, element_spec: Any = None) -> Dataset:
    """The elements of a PyTorch dataset, or of any object with `__len__` and `__getitem__`, or `__iter__`.

    Tensors become arrays, which share memory with them and are read-only; a list of components is a tuple. Elements of
    a map-style dataset can be read in any order, so shuffling and sharding compute positions and read nothing. Each
    host reads an iterable-style dataset from its beginning, and keeps its part.

    Args:
      dataset: A map-style or iterable dataset; it is sent to the hosts that read it.
      element_spec: Nested `TensorSpec`s of an element. None infers the spec that covers the first and the last element
        of a map-style dataset, or that of the first element of an iterable one.

    Raises:
      TypeError: if the dataset has neither interface, or is an iterator, which can be read only once.
      InvalidArgumentError: if a map-style dataset is empty and has no `element_spec`.
    """
    if hasattr(dataset, "__len__") and _can_index(dataset):
        return Dataset(MapStyle.of(dataset, element_spec))
    if not hasattr(dataset, "__iter__"):
        raise TypeError(
            f"from_torch takes a dataset with __len__ and __getitem__, or with __iter__, got {type(dataset).__name__}"
        )
    if hasattr(dataset, "__next__"):
        raise TypeError(
            f"from_torch: {type(dataset).__name__} is an iterator, which can be read once; give its origin, or "
            "Dataset.from_generator(function that makes one)"
        )
    return Dataset(IterableStyle(dataset, element_spec))


@dataclass(frozen=True, eq=False)
class MapStyle(Source):
    """A dataset with random access to elements.

    Attributes:
      dataset: An object with `__len__` and `__getitem__`.
      spec: The nested spec of an element.
    """

    name: ClassVar[str] = "map-style dataset"
    random_access: ClassVar[bool] = True
    dataset: Any
    spec: Any

    @staticmethod
    def of(dataset: Any, element_spec: Any) -> MapStyle:
        """Creates the source; infers the element spec unless it is given.

        Raises:
          InvalidArgumentError: if there is no element to read.
          TypeError: if the first and the last element differ in structure or dtype.
        """
        if element_spec is None:
            if not len(dataset):
                raise InvalidArgumentError(
                    "from_torch: the dataset is empty, so nothing tells what its elements are; give element_spec"
                )
            first, last = (_spec(*_flat(dataset[index])) for index in (0, len(dataset) - 1))
            element_spec = relax(first, last)
        return MapStyle(dataset, element_spec)

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        if count := self.cardinality():
            leaves, nested = tree.flatten(self.spec)
            yield Run(_Table(self.dataset, self.spec, leaves, Structure(nested)), range(count))

    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return self.spec

    def cardinality(self) -> int:
        """Number of elements."""
        return len(self.dataset)


@dataclass(slots=True, eq=False)
class _Table(NumberedRows):
    """The elements of a map-style dataset, fetched by one thread at a time, because its code may expect that."""

    at_rest: ClassVar[bool] = False
    dataset: Any
    spec: Any
    specs: Leaves
    structure: Structure
    _lock: threading.RLock = field(default_factory=lambda: forks.lock(threading.RLock()))

    def row(self, index: int) -> Leaves:
        """The components of one element."""
        try:
            with self._lock:
                value = self.dataset[index]
            return self._fitted(value, index)
        except Exception as error:
            note_place(error, f"from_torch({type(self.dataset).__name__})", index)
            raise

    def take(self, rows: Rows) -> Leaves:
        """The components of several elements, stacked."""
        indices = row_numbers(rows).tolist()
        if not hasattr(self.dataset, "__getitems__"):
            return stack([self.row(index) for index in indices], self.structure)
        with self._lock:
            values = self.dataset.__getitems__(indices)
        fitted = [self._fitted(value, index) for value, index in zip(values, indices, strict=True)]
        return stack(fitted, self.structure)

    def _fitted(self, value: Any, index: int) -> Leaves:
        leaves, structure = _flat(value)
        if structure != self.structure or not all(
            want.accepts(leaf) for want, leaf in zip(self.specs, leaves, strict=True)
        ):
            raise InvalidArgumentError(
                f"from_torch: element {index} is {_spec(leaves, structure)}, not {self.spec}; give element_spec with "
                "None for dimensions that vary, or make the dataset give elements of one kind"
            )
        return leaves


@dataclass(frozen=True, eq=False)
class IterableStyle(Source):
    """A dataset that can only be iterated over.

    Attributes:
      dataset: An object with `__iter__`.
      spec: The nested spec of an element; None to read the first one when needed.
    """

    name: ClassVar[str] = "iterable-style dataset"
    dataset: Any
    spec: Any

    def open(self, current: Pass) -> Iterator[Run]:
        """Starts one pass."""
        for index, value in enumerate(self.dataset):
            leaves, structure = _flat(value)
            yield single(
                leaves, structure, row_numbers(range(index, index + 1)) if current.provenance else None
            )

    def element_spec(self) -> Any:
        """The nested spec of an element.

        Raises:
          InvalidArgumentError: if there is no element to read.
        """
        if self.spec is not None:
            return self.spec
        for value in self.dataset:
            return _spec(*_flat(value))
        raise InvalidArgumentError(
            "from_torch: the dataset is empty, so nothing tells what its elements are; give element_spec"
        )

    def cardinality(self) -> int:
        """Number of elements, if the dataset has a length."""
        try:
            return len(self.dataset)
        except TypeError:
            return UNKNOWN_CARDINALITY


def _flat(value: Any) -> tuple[Leaves, Structure]:
    leaves, structure = flatten_result(value)
    return [read_only(leaf) for leaf in leaves], structure


def _spec(leaves: Leaves, structure: Structure) -> Any:
    return structure.pack([spec_of(leaf) for leaf in leaves])


def _can_index(dataset: Any) -> bool:
    """Whether it has its own `__getitem__`: PyTorch's base class has one that only raises."""
    owner = next((kind for kind in type(dataset).__mro__ if "__getitem__" in vars(kind)), None)
    if owner is None:
        return False
    return not (owner.__module__.startswith(_TORCH) and owner.__name__ in ("Dataset", "IterableDataset"))
