"""The elements of a distributed dataset, fetched from the replicas chunk by chunk, as handles."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from workbench import tree
from workbench.distribute.values import PerReplica
from workbench.runtime.handles import Handle

if TYPE_CHECKING:
    from workbench.distribute.input_plan import InputPlan

# One message to the replicas fetches up to so many steps, of up to so many bytes per replica.
_MOST_STEPS = 16
_CHUNK_BYTES = 8 << 20

HEAD: Final = 2
"""Leaves of a chunk before those of its elements."""
Fetch = Callable[..., tuple[Handle, ...]]
"""`fetch(first, count, ahead=...)` asks for elements: how many each replica has, how long it waited for them in ns, and
the leaves of each."""


class RemoteElements:
    """Goes through the elements once; while those of one chunk are given, the next chunk is on its way.

    What raises (an earlier step that failed, a lost replica, the dataset's own error) leaves the place where it is:
    whoever catches it and asks again gets the same element, or the dataset's error again. Nothing is skipped.
    """

    def __init__(
        self,
        plan: InputPlan,
        fetch: Fetch,
        *,
        forget: Callable[[], None],
        on_given: Callable[[], None],
        on_waited: Callable[[Sequence[int]], None],
    ) -> None:
        """Goes through the elements.

        Args:
          plan: Of the dataset.
          fetch: Asks for elements.
          forget: Called when they are not needed any more.
          on_given: Called with every element that is given.
          on_waited: Called with how long each replica waited for its input, in ns.
        """
        self._plan = plan
        self._fetch = fetch
        self._structure = tree.flatten(plan.pipelines[0].element_spec)[1]
        self._chunk: tuple[Handle, ...] = ()
        self._first = 0  # number of the chunk's first element
        self._available = 0
        self._given = 0
        self._count = 1  # elements to ask for next
        self._asked: tuple[tuple[Handle, ...], int, bool] | None = None
        self._ended = False
        self._on_given = on_given
        self._on_waited = on_waited
        self._forget = weakref.finalize(self, forget)
        self._forget.atexit = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while self._given == self._available:
            if self._ended:
                raise StopIteration
            self._take_chunk()
        width = self._structure.num_leaves
        leaves = self._chunk[HEAD + self._given * width :][:width]
        self._given += 1
        self._on_given()
        return tree.unflatten(self._structure, [PerReplica(leaf) for leaf in leaves])

    def _take_chunk(self) -> None:
        """Makes what was asked for the present chunk, and asks for the one after it."""
        first = self._first + self._available
        if self._asked is None:
            self._asked = self._fetch(first, self._count, ahead=False), self._count, False
        chunk, count, ahead = self._asked
        self._asked = None  # whatever comes of it, it is not waited for twice
        if ahead and (error := chunk[0].error()) is not None and not isinstance(error, KeyboardInterrupt):
            return  # lost with another step or a replica: asking again tells the user, unless that was told before
        available = max(chunk[0].values())  # a host that has ended gets empty batches until all have
        self._on_waited(chunk[1].values())
        self._first, self._chunk, self._available, self._given = first, chunk, available, 0
        if available == count:
            self._count = _more_steps(count, chunk, self._plan)
            self._asked = self._fetch(first + available, self._count, ahead=True), self._count, True
        elif available or ahead:  # the end, or an element that failed: it tells when it is asked for
            self._count = 1
        else:
            self._ended = True
            self._forget()


def _more_steps(count: int, chunk: tuple[Handle, ...], plan: InputPlan) -> int:
    """How many steps the next message fetches: more and more; pipelines with side effects stay close."""
    most = _MOST_STEPS if plan.pure else max(1, min(_MOST_STEPS, plan.pipelines[0].read_ahead))
    if count >= most:
        return count
    size = sum(_nbytes(handle) for handle in chunk[HEAD:]) // count
    return max(1, min(most, 2 * count, _CHUNK_BYTES // max(1, size)))


def _nbytes(handle: Handle) -> int:
    spec = handle.spec(0)
    return 0 if spec is None else math.prod(spec[1]) * np.dtype(spec[0]).itemsize
