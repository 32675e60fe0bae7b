"""Chunk: elements that were fetched together, and where they came from: what reads them again when they are lost."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Final, Protocol

from workbench.distribute.input.host_input import Request
from workbench.distribute.input.programs import HEAD
from workbench.errors import StaleGeneration
from workbench.runtime.driver.handle import Handle


class Source(Protocol):
    """Where elements come from; what was fetched of it keeps it. See `InputSource`."""

    @property
    def width(self) -> int:
        """Number of leaves of an element."""


class Elements(Protocol):
    """What gives elements to the user, and splits, owes and settles them by their numbers. See `RemoteElements`."""

    @property
    def owes(self) -> bool:
        """Whether an element was lost with its step."""

    def split_anew(self, number: int) -> Sequence[Handle]:
        """The leaves of an element for the replicas that take part now."""

    def owe(self, number: int, leaves: list[Handle] | None) -> None:
        """The step that took an element was lost."""

    def settle(self, number: int) -> None:
        """A step has taken an element."""


class Chunk:
    """Some successive elements on the replicas. Kept by every batch of it that is alive.

    Attributes:
      source: Where they come from.
      request: What was asked for.
    """

    __slots__ = ("__weakref__", "_elements", "_handles", "request", "source")

    divisible: Final = True

    def __init__(
        self, source: Source, request: Request, handles: Sequence[Handle], elements: Elements
    ) -> None:
        """Notes what was asked for, and becomes the origin of the step that fetches it."""
        self.source = source
        self.request = request
        # Weak references: each handle keeps the step, which keeps this object.
        self._handles = [weakref.ref(handle) for handle in handles]
        self._elements = weakref.ref(elements)
        handles[0].step.origin = self

    def live(self) -> list[Handle]:
        """Those of its leaves that somebody still holds; none if it never came."""
        handles = [handle for one in self._handles[HEAD:] if (handle := one()) is not None]
        return [] if not handles or not handles[0].ready or handles[0].failed else handles

    def renewed(self, handle: Handle) -> Handle:
        """The same leaf of the same element, split anew among the replicas that take part now.

        Raises:
          StaleGeneration: if nobody goes through the elements any more.
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
        """The element that a leaf belongs to, if somebody still goes through the elements.

        Returns:
          Who gave it, its number, and all its leaves; None for these if one of them is not held any more.
        """
        elements = self._elements()
        if elements is None or handle.leaf < HEAD:
            return None
        width, number = self.source.width, self.number_of(handle)
        begin = HEAD + (number - self.request.first) * width
        leaves = [leaf for one in self._handles[begin:][:width] if (leaf := one()) is not None]
        return elements, number, leaves if len(leaves) == width else None
