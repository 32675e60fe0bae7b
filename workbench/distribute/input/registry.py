"""InputRegistry: the input of a strategy's replicas, what of it they may forget, and what they are owed."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from workbench import tree
from workbench.runtime.driver.handle import Handle

if TYPE_CHECKING:
    from workbench.data.dataset import Dataset
    from workbench.data.sharding.progress import InputProgress
    from workbench.distribute.input.chunk import Chunk, Elements
    from workbench.distribute.input.progress import Trail

Name = tuple[str, str | None]
_TRAILS: Final = 64
"""For how many of the newest distributed datasets, including collected ones, to remember how far replicas came."""


class Readable(Protocol):
    """A source of elements on the replicas; see `InputSource`."""

    id: str

    def recover(self, lost: Sequence[int]) -> None:
        """Gives replicas that were replaced what they have to know, and the batches that they held."""

    def resize(self) -> None:
        """Plans anew, for the replicas that take part now."""


class InputRegistry:
    """Knows the input sources that are in use, without keeping them.

    Attributes:
      owing: Whether an element was given of which the step was lost with a replica, and that no step has taken since.
    """

    def __init__(self) -> None:
        self._sources: weakref.WeakValueDictionary[str, Readable] = weakref.WeakValueDictionary()
        self._trails: deque[tuple[weakref.ref[Dataset], Trail]] = deque(maxlen=_TRAILS)
        self._forgotten: list[Name] = []
        self._owed_by: weakref.WeakSet[Elements] = weakref.WeakSet()
        self.owing = False

    def add(self, source: Readable) -> None:
        """Remembers a source for as long as it lives."""
        self._sources[source.id] = source
        # A later message informs the replicas, because a finalizer may run at any point of any thread.
        weakref.finalize(source, self._forgotten.append, (source.id, None)).atexit = False

    def follow(self, dataset: Dataset, trail: Trail) -> None:
        """Remembers how far replicas are in what was distributed of `dataset`."""
        self._trails.append((weakref.ref(dataset), trail))

    def recover(self, lost: Sequence[int]) -> None:
        """Gives replicas that were replaced what they have to know, and the batches that they held."""
        for source in tuple(self._sources.values()):
            source.recover(lost)

    def resize(self) -> None:
        """Plans all input anew, for the replicas that take part now."""
        for source in tuple(self._sources.values()):
            source.resize()

    def forget_source(self, name: str) -> None:
        """Notes that the replicas need not know a plan any more."""
        self._forgotten.append((name, None))

    def owe(self, arguments: Any) -> None:
        """A step with these arguments was lost with a replica: elements among them are given again, unless one runs."""
        for elements, number, leaves in _elements_in(arguments):
            elements.owe(number, leaves)
            self._owed_by.add(elements)
            self.owing = True

    def settle(self, arguments: Any) -> None:
        """A step with these arguments has run: elements among them are used."""
        for elements, number, _ in _elements_in(arguments):
            elements.settle(number)
        self.owing = any(elements.owes for elements in tuple(self._owed_by))

    def progress_of(self, source: Dataset) -> InputProgress | None:
        """How far replicas are in what was distributed last of `source`, in use or not; None where nobody has begun."""
        trails = (trail.now() for known, trail in reversed(self._trails.copy()) if known() is source)
        return next((progress for progress in trails if progress is not None), None)

    def forget(self, dataset: str, iterator: str) -> None:
        """Notes that an iterator has ended."""
        self._forgotten.append((dataset, iterator))

    def take_forgotten(self) -> tuple[Name, ...]:
        """(dataset, iterator) pairs that the replicas were not told of yet; a whole dataset with None."""
        forgotten = self._forgotten
        return tuple([forgotten.pop(0) for _ in range(len(forgotten))]) if forgotten else ()


def _elements_in(arguments: Any) -> Iterator[tuple[Elements, int, list[Handle] | None]]:
    """The elements whose leaves are among some arguments: the iterator, the number, and all of its leaves."""
    for handle in tree.flatten(arguments)[0]:
        origin: Chunk | None = handle.step.origin if type(handle) is Handle else None
        if origin is not None and origin.divisible:
            found = origin.element_of(handle)
            if found is not None:
                yield found
