"""Iterators over datasets, and the optional values that they give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.data.tables import Failed
from workbench.errors import InvalidArgumentError, OutOfRangeError

_NOTHING = object()


class Optional:
    """A value that may be missing, such as the element after the last one."""

    __slots__ = ("_value",)

    def __init__(self, value: Any = _NOTHING) -> None:
        self._value = value

    def has_value(self) -> bool:
        """Whether there is a value."""
        return self._value is not _NOTHING

    def get_value(self) -> Any:
        """The value.

        Raises:
          InvalidArgumentError: if there is none; ask `has_value()` first.
        """
        if self._value is _NOTHING:
            raise InvalidArgumentError(
                "this Optional has no value: the iterator had ended; ask has_value() first"
            )
        return self._value

    def __repr__(self) -> str:
        return f"Optional({self._value!r})" if self.has_value() else "Optional(no value)"


class Elements:
    """Goes through elements once. One that failed raises, once, and the next one follows.

    After an exception from the iterator itself, which cannot go on then, comes the end.
    """

    __slots__ = ("_items",)

    def __init__(self, items: Iterator[Any]) -> None:
        """Goes through `items`: elements, and `Failed` in the place of those that could not be made."""
        self._items = items

    def __iter__(self) -> Elements:
        return self

    def __next__(self) -> Any:
        item = next(self._items)
        if isinstance(item, Failed):
            raise item.error
        return item


class DatasetIterator:
    """Goes through a dataset once; independent of other iterators over the same dataset."""

    __slots__ = ("_dataset", "_elements")

    def __init__(self, dataset: Any, elements: Iterator[Any]) -> None:
        self._dataset = dataset
        self._elements = elements

    def __iter__(self) -> DatasetIterator:
        return self

    def __next__(self) -> Any:
        return next(self._elements)

    @property
    def element_spec(self) -> Any:
        """What the elements look like, as `Dataset.element_spec`."""
        return self._dataset.element_spec

    def get_next(self) -> Any:
        """The next element.

        Raises:
          OutOfRangeError: if there is none, also when asked again.
        """
        element = next(self._elements, _NOTHING)
        if element is _NOTHING:
            raise OutOfRangeError("the dataset has no further element; make a new iterator to start again")
        return element

    def get_next_as_optional(self) -> Optional:
        """The next element, or an `Optional` without a value at the end."""
        return Optional(next(self._elements, _NOTHING))
