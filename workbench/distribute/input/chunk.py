"""Chunk: elements that were fetched together, and their source, which reads them again when they are lost."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Final, Protocol

from workbench.distribute.input.host_input import Request
from workbench.distribute.input.programs import HEAD
from workbench.errors import StaleGeneration
from workbench.runtime.driver.handle import Handle


class Source(Protocol):
    """The source of elements, which keep it alive. See `InputSource`."""

    @property
    def width(self) -> int:
        """Number of leaves in an element."""


class Elements(Protocol):
    """Yields elements to the user, and splits, owes and settles them by their numbers. See `RemoteElements`."""

    @property
    def owes(self) -> bool:
        """Whether an element was lost with its step."""

    def split_anew(self, number: int) -> Sequence[Handle]:
        """The leaves of an element for the current replicas."""

    def owe(self, number: int, leaves: list[Handle] | None) -> None:
        """Called when the step that took an element was lost."""

    def settle(self, number: int) -> None:
        """Called when a step has taken an element."""


class Chunk:
    """Some successive elements on the replicas. Each of its batches keeps it alive.

    Attributes:
      source: Their source.
      request: The request for them.
    """

    __slots__ = ("__weakref__", "_elements", "_handles", "request", "source")

    divisible: Final = True

    def __init__(
        self, source: Source, request: Request, handles: Sequence[Handle], elements: Elements
    ) -> None:
        """Records the request, and becomes the origin of the step that fetches it."""
        self.source = source
        self.request = request
        # Weak references, because each handle keeps the step, which keeps this object.
        self._handles = [weakref.ref(handle) for handle in handles]
        self._elements = weakref.ref(elements)
        handles[0].step.origin = self

    def live(self) -> list[Handle]:
        """Its leaves that are still referenced; none if it never arrived."""
        handles = [handle for one in self._handles[HEAD:] if (handle := one()) is not None]
        return [] if not handles or not handles[0].ready or handles[0].failed else handles

    def renewed(self, handle: Handle) -> Handle:
        """The same leaf of the same element, split again among the current replicas.

        Raises:
          StaleGeneration: if the elements are no longer iterated over.
        """
        found = self.element_of(handle)
        if found is None:
            raise StaleGeneration(
                f"a batch was split among {handle.size} replicas, and others take part now; the iterator that gave it "
                f"is gone, so it cannot be split again: iterate over the distributed dataset again"
            )
        elements, number, _ = found
        return elements.split_anew(number)[(handle.leaf - HEAD) % self.source.width]

    def number_of(self, handle: Handle) -> int:
        """The number of the element that a leaf belongs to."""
        return self.request.first + (handle.leaf - HEAD) // self.source.width

    def element_of(self, handle: Handle) -> tuple[Elements, int, list[Handle] | None] | None:
        """The element of a leaf, if the elements are still being iterated over.

        Returns:
          What yielded it, its number, and all its leaves, or None for these if one of them is no longer referenced.
        """
        elements = self._elements()
        if elements is None or handle.leaf < HEAD:
            return None
        width, number = self.source.width, self.number_of(handle)
        begin = HEAD + (number - self.request.first) * width
        leaves = [leaf for one in self._handles[begin:][:width] if (leaf := one()) is not None]
        return elements, number, leaves if len(leaves) == width else None
