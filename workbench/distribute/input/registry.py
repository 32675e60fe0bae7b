"""InputRegistry: the input of a strategy's replicas, with dropped sources and elements that must be returned again."""

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
"""Number of the newest distributed datasets, including collected ones, with a recorded progress."""


class Readable(Protocol):
    """A source of elements on the replicas; see `InputSource`."""

    id: str

    def recover(self, lost: Sequence[int]) -> None:
        """Sends replaced replicas their plans, and the batches that they held."""

    def resize(self) -> None:
        """Plans again, for the current replicas."""


class InputRegistry:
    """Knows the input sources in use, without keeping them alive.

    Attributes:
      owing: Whether the step of an element was lost with a replica, and no step has taken the element since.
    """

    def __init__(self) -> None:
        self._sources: weakref.WeakValueDictionary[str, Readable] = weakref.WeakValueDictionary()
        self._trails: deque[tuple[weakref.ref[Dataset], Trail]] = deque(maxlen=_TRAILS)
        self._forgotten: list[Name] = []
        self._owed_by: weakref.WeakSet[Elements] = weakref.WeakSet()
        self.owing = False

    def add(self, source: Readable) -> None:
        """Adds a source, for as long as it lives."""
        self._sources[source.id] = source
        # A later message informs the replicas, because a finalizer may run at any point in any thread.
        weakref.finalize(source, self._forgotten.append, (source.id, None)).atexit = False

    def follow(self, dataset: Dataset, trail: Trail) -> None:
        """Remembers the trail of a distributed `dataset`."""
        self._trails.append((weakref.ref(dataset), trail))

    def recover(self, lost: Sequence[int]) -> None:
        """Sends replaced replicas their plans, and the batches that they held."""
        for source in tuple(self._sources.values()):
            source.recover(lost)

    def resize(self) -> None:
        """Plans all input again, for the current replicas."""
        for source in tuple(self._sources.values()):
            source.resize()

    def forget_source(self, name: str) -> None:
        """Notes that the replicas no longer need a plan."""
        self._forgotten.append((name, None))

    def owe(self, arguments: Any) -> None:
        """Marks the elements in a lost step's arguments to be returned again, unless a step takes them first."""
        for elements, number, leaves in _elements_in(arguments):
            elements.owe(number, leaves)
            self._owed_by.add(elements)
            self.owing = True

    def settle(self, arguments: Any) -> None:
        """Marks the elements in the arguments of a completed step as used."""
        for elements, number, _ in _elements_in(arguments):
            elements.settle(number)
        self.owing = any(elements.owes for elements in tuple(self._owed_by))

    def progress_of(self, source: Dataset) -> InputProgress | None:
        """The replicas' progress in the latest distribution of `source`, even if dropped; None before it begins."""
        trails = (trail.now() for known, trail in reversed(self._trails.copy()) if known() is source)
        return next((progress for progress in trails if progress is not None), None)

    def forget(self, dataset: str, iterator: str) -> None:
        """Notes that an iterator has ended."""
        self._forgotten.append((dataset, iterator))

    def take_forgotten(self) -> tuple[Name, ...]:
        """Takes (dataset, iterator) pairs whose end the replicas do not know yet; None for a whole dataset."""
        forgotten = self._forgotten
        return tuple([forgotten.pop(0) for _ in range(len(forgotten))]) if forgotten else ()


def _elements_in(arguments: Any) -> Iterator[tuple[Elements, int, list[Handle] | None]]:
    """The elements with leaves among some arguments: the iterator, the number, and all leaves of each."""
    for handle in tree.flatten(arguments)[0]:
        origin: Chunk | None = handle.step.origin if type(handle) is Handle else None
        if origin is not None and origin.divisible:
            found = origin.element_of(handle)
            if found is not None:
                yield found
