"""Iterators over datasets, and the optional values that they give."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workbench.data.background.arrivals import Arrivals
from workbench.data.passes import Pass
from workbench.data.spec import ElementsSpec, spec_if_learnt, spec_of
from workbench.data.stored.position import (
    Place,
    Position,
    check_pipeline,
    fingerprint_of,
    read_position,
    rest_of,
    write_position,
)
from workbench.data.structure import flatten
from workbench.data.tables import BytesTable, Failed, Run
from workbench.debugging import numerics
from workbench.errors import InvalidArgumentError, OutOfRangeError

_NOTHING = object()


@dataclass(frozen=True, slots=True, eq=False)
class IteratorSpec(ElementsSpec):
    """The spec of an iterator over a dataset.

    Attributes:
      element_spec: The nested spec of its elements.
    """

    @classmethod
    def from_value(cls, value: Any) -> IteratorSpec:
        """The spec of an iterator.

        Raises:
          TypeError: if it is something else.
        """
        if not isinstance(value, DatasetIterator):
            raise TypeError(f"{type(value).__name__} is not an iterator over a dataset: {value!r:.80}")
        return IteratorSpec(value.element_spec)

    @property
    def value_type(self) -> type:
        """The class of the values with this kind of spec."""
        return DatasetIterator


@dataclass(frozen=True, slots=True, eq=False)
class OptionalSpec(ElementsSpec):
    """The spec of an optional value.

    Attributes:
      element_spec: The nested spec of the value.
    """

    @classmethod
    def from_value(cls, value: Any) -> OptionalSpec:
        """The spec of an optional value.

        Raises:
          TypeError: if it is something else.
        """
        if not isinstance(value, Optional):
            raise TypeError(f"{type(value).__name__} is not an Optional: {value!r:.80}")
        return OptionalSpec(value.element_spec)

    @property
    def value_type(self) -> type:
        """The class of the values with this kind of spec."""
        return Optional


class Optional:
    """A value that may be missing, such as the element after the last one.

    Attributes:
      element_spec: The nested spec of the value.
    """

    __slots__ = ("_element_spec", "_value")

    def __init__(self, value: Any = _NOTHING, element_spec: Any = None) -> None:
        """Holds `value`, or nothing; `element_spec` is derived from the value if it is None."""
        self._value = value
        self._element_spec = element_spec

    @classmethod
    def from_value(cls, value: Any) -> Optional:
        """An optional with a value: nested arrays, numbers and bytes."""
        leaves, structure = flatten(value)
        return cls(structure.pack(leaves))

    @classmethod
    def empty(cls, element_spec: Any) -> Optional:
        """An optional without a value; only its spec is known."""
        return cls(_NOTHING, element_spec)

    @property
    def element_spec(self) -> Any:
        """The nested spec of the value."""
        if self._element_spec is None and self.has_value():
            leaves, structure = flatten(self._value)
            self._element_spec = structure.pack([spec_of(leaf) for leaf in leaves])
        return self._element_spec

    @property
    def spec_class(self) -> type[OptionalSpec]:
        """The class that represents it in the spec of an element."""
        return OptionalSpec

    def has_value(self) -> bool:
        """Whether there is a value."""
        return self._value is not _NOTHING

    def get_value(self) -> Any:
        """The value.

        Raises:
          InvalidArgumentError: if there is none; check `has_value()` first.
        """
        if self._value is _NOTHING:
            raise InvalidArgumentError(
                "this Optional has no value: the iterator had ended; ask has_value() first"
            )
        return self._value

    def __repr__(self) -> str:
        return f"Optional({self._value!r})" if self.has_value() else "Optional(no value)"


class Elements:
    """Iterates over elements once.

    A failed element raises once; then the next one follows. An exception from the iterator itself ends the iteration.
    """

    __slots__ = ("_items",)

    def __init__(self, items: Iterator[Any]) -> None:
        """Iterates over `items`: elements, with a `Failed` for each one that could not be made."""
        self._items = items

    def __iter__(self) -> Elements:
        return self

    def __next__(self) -> Any:
        item = next(self._items)
        if isinstance(item, Failed):
            raise item.taken()
        return item


def elements_of(runs: Iterator[Run]) -> Iterator[Any]:
    """Elements in their structure, with a `Failed` for each one that could not be made."""
    for run in runs:
        if isinstance(run, Failed):
            yield run
            continue
        table = run.table
        if isinstance(table, BytesTable):
            yield from table.chosen(run.rows)  # a fast path, because files have millions of lines and records
            continue
        row, pack = table.row, table.structure.pack
        for index in run.indices():
            try:
                item = pack(row(index))
            except Exception as error:  # batches are assembled only here
                item = Failed(error)
            yield item


class DatasetIterator:
    """Iterates over a dataset once; independent of other iterators over the same dataset."""

    __slots__ = ("_dataset", "_failed", "_given", "_items", "_pass")

    def __init__(self, dataset: Any, current: Pass) -> None:
        """Begins the pass `current`."""
        self._dataset = dataset
        self._pass = current
        self._items = elements_of(dataset.open(current))
        self._given = self._failed = 0

    def __iter__(self) -> DatasetIterator:
        return self

    def __next__(self) -> Any:
        try:
            item = next(self._items)
        except StopIteration:
            raise
        except Exception:
            self._failed += 1
            self._given += 1
            raise
        self._given += 1
        if isinstance(item, Failed):
            self._failed += 1
            raise item.taken()
        if numerics.is_enabled():
            with numerics.checking("in a dataset"):
                numerics.check(item, f"element {self._given - 1}")
        return item

    def __repr__(self) -> str:
        return f"<DatasetIterator of {self._dataset!r}: {self._given} given>"

    @property
    def element_spec(self) -> Any:
        """What the elements look like, as `Dataset.element_spec`."""
        return self._dataset.element_spec

    @property
    def spec_class(self) -> type[IteratorSpec]:
        """The class that represents it in the spec of an element."""
        return IteratorSpec

    def get_next(self) -> Any:
        """The next element.

        Raises:
          OutOfRangeError: if there is none; each further call raises again.
        """
        element = next(self, _NOTHING)
        if element is _NOTHING:
            raise OutOfRangeError("the dataset has no further element; make a new iterator to start again")
        return element

    def get_next_as_optional(self) -> Optional:
        """The next element, or an `Optional` without a value at the end."""
        element = next(self, _NOTHING)
        return Optional(element) if element is not _NOTHING else Optional.empty(spec_if_learnt(self._dataset))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the position of this iterator to the file `path`, for `restore`: a few hundred bytes, no elements.

        Where parallel calls may change the order, the file also holds it, with less than half a byte per element. The
        iterator keeps it in memory until the pass ends. In a pass without end, such as one behind `repeat()`, it keeps
        growing: a billion elements take less than 500 MB.

        Raises:
          InvalidArgumentError: if functions of the dataset refer to something that cannot be compared, such as a lock.
          NotFoundError: if the folder of `path` is missing.
          StorageFull: if there is no space left.
        """
        write_position(path, self.position())

    def position(self) -> Position:
        """The position of this iterator, for `go_to`; see `save`."""
        return Position(
            fingerprint_of(self._dataset),
            self._pass.epoch,
            self._given,
            self._failed,
            self._pass.arrivals.noted(),
        )

    @property
    def place(self) -> Place:
        """How far this iterator is."""
        return Place(self._pass.epoch, self._given)

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Continues at the position of an iterator over the same dataset, also of one in another process.

        The same elements follow.

        The pass is opened again, and earlier elements are skipped. `map` and `batch` at the end of the dataset do not
        compute skipped elements, unless elements failed; other functions are called again, and files are read again.
        Where parallel calls have changed the order, they repeat it, and keep the order of what follows.

        Raises:
          InvalidArgumentError: if the position belongs to another dataset; each shuffle made without a seed differs
            from the others.
          NotFoundError: if there is no such file.
          DataLossError: if the file is damaged.
        """
        position = read_position(path)
        check_pipeline(path, position, self._dataset)
        self._go_to(position)

    def go_to(self, position: Position) -> None:
        """Continues at the position of an iterator over the same dataset; see `restore`.

        Raises:
          InvalidArgumentError: if the position belongs to another dataset.
        """
        self.check(position)
        self._go_to(position)

    def check(self, position: Position) -> None:
        """Rejects a position in another dataset.

        Raises:
          InvalidArgumentError: if it is one.
        """
        check_pipeline("the checkpoint", position, self._dataset)

    def _go_to(self, position: Position) -> None:
        # Later passes get the same numbers as without this one.
        while self._pass.epoch < position.epoch:
            self._pass = self._dataset.next_pass()
        arrivals = Arrivals(position.arrivals if position.given else None)
        self._pass = dataclasses.replace(self._pass, epoch=position.epoch, arrivals=arrivals)
        self._items = elements_of(rest_of(self._dataset, position).open(self._pass))
        self._given, self._failed = position.given, position.failed
