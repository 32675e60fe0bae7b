"""The elements of a distributed dataset, fetched on the replicas chunk by chunk, as handles."""

from __future__ import annotations

import itertools
import math
import pickle
import weakref
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from workbench import tree
from workbench.data.iterator import Elements
from workbench.distribute.identity import new_id
from workbench.distribute.input.host_input import Request
from workbench.distribute.input.programs import HEAD
from workbench.distribute.values.distributed_values import PerReplica
from workbench.errors import ReplicaLost
from workbench.runtime.driver.failures import failures_error
from workbench.runtime.driver.group import MAX_IN_FLIGHT
from workbench.runtime.driver.handle import Handle
from workbench.runtime.driver.step_errors import LOSSES

if TYPE_CHECKING:
    from workbench.distribute.input.chunk import Chunk
    from workbench.distribute.input.plan import InputPlan
    from workbench.distribute.input.progress import ProgressLog
    from workbench.distribute.input.source import InputSource

# Limits of one message to the replicas: this many steps, and this many bytes per replica.
_MOST_STEPS: Final = 16
_CHUNK_BYTES: Final = 8 << 20
# How often to retry a fetch while replicas are lost, beyond what recovery itself does.
_ATTEMPTS: Final = 4
_GIVEN_AGAIN: Final = 3
"""How often an element is returned again after a replica was lost in its step; it may itself kill replicas."""


class HereElements(Elements):
    """Iterates over the elements of the default strategy, which are made in this process."""

    __slots__ = ("_next",)
    id: Final = ""

    def __init__(self, items: Iterator[Any], first: int) -> None:
        """Iterates over `items`, which begin with number `first`; raises the error of a `Failed` item, once."""
        super().__init__(itertools.islice(items, first, None))
        self._next = first

    @property
    def next_number(self) -> int:
        """Number of the next element."""
        return self._next

    reached = next_number

    def __next__(self) -> Any:
        try:
            element = super().__next__()
        except StopIteration:
            raise
        except Exception:
            self._next += 1
            raise
        self._next += 1
        return element


class RemoteElements:
    """Iterates over the elements once; while it yields those of one chunk, the next chunk is on its way.

    A lost replica costs no element. Elements that it held are read again before the next step (`InputSource`). If its
    loss cut a step short, the element of that step is returned again, before any other, unless the user has meanwhile
    run a step with it. An element that fails raises, once, and the next one follows. The failure of an earlier step
    also raises, without moving on.
    """

    def __init__(self, source: InputSource, epoch: int, log: ProgressLog, first: int = 0) -> None:
        """Iterates over the elements of an epoch.

        Args:
          source: Makes the replicas fetch them.
          epoch: Number of the epoch.
          log: Records the progress.
          first: Number of the first element.
        """
        self._source = source
        self._epoch = epoch
        self._log = log
        self._id = new_id()
        self._structure = tree.flatten(source.plan.pipelines[0].element_spec)[1]
        self._chunk: tuple[Handle, ...] = ()
        self._first = first  # number of the chunk's first element
        self._available = 0
        self._given = 0
        self._next = first  # number of the first element after the chunk
        self._failure: BaseException | None = None  # of the last element before `_next`
        self._count = 1  # number of elements to request next
        self._asked: tuple[Chunk, tuple[Handle, ...]] | None = None
        self._ended = False
        self._recent: deque[weakref.ref[Chunk]] = deque(maxlen=2 * MAX_IN_FLIGHT)
        self._owed: dict[int, list[Handle] | None] = {}
        self._times_owed: Counter[int] = Counter()
        self._places = source.places
        self._anew: tuple[int, object, list[Handle]] = (-1, None, [])
        weakref.finalize(self, source.registry.forget, source.id, self._id).atexit = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._log.ask(self._source.group)
        if self._source.places is not self._places:
            self._start_anew()
        if self._owed:
            return self._give_again(min(self._owed))
        while self._given == self._available:
            if self._failure is not None:
                error, self._failure = self._failure, None
                raise error
            if self._ended:
                raise StopIteration
            self._take_chunk()
        width = self._structure.num_leaves
        leaves = self._chunk[HEAD + self._given * width :][:width]
        self._log.give(self._first + self._given, self._source.group.number)
        self._given += 1
        return self._element(leaves)

    @property
    def next_number(self) -> int:
        """Number of the next element."""
        return min([self.reached, *self._owed])

    @property
    def reached(self) -> int:
        """Number of the first element that was not yet returned."""
        return self._first + self._given

    @property
    def id(self) -> str:
        """The id in requests for its elements."""
        return self._id

    # -- elements whose step was lost with a replica
    # ---------------------------------------------------------------------------

    @property
    def owes(self) -> bool:
        """Whether an element must be returned again."""
        return bool(self._owed)

    def owe(self, number: int, leaves: list[Handle] | None) -> None:
        """Marks an element, whose step was lost, as the next to return unless a step takes it first.

        Args:
          number: The number of the element.
          leaves: Its leaves, if all still exist.
        """
        if number not in self._owed:
            self._times_owed[number] += 1
        self._owed[number] = leaves

    def settle(self, number: int) -> None:
        """Notes that a step has run with an element."""
        self._owed.pop(number, None)
        self._times_owed.pop(number, None)

    def _give_again(self, number: int) -> Any:
        leaves = self._owed.pop(number)
        times = self._times_owed[number]
        if times > _GIVEN_AGAIN:
            del self._times_owed[number]
            raise ReplicaLost(
                f"element {number} of a distributed dataset was given {times} times, and each time a replica was lost "
                f"in the step that took it, so it may be what ends the process. It is not given again: ask for the "
                f"next element to continue without it, or pass the batch that you have to strategy.run once more",
                step=-1,
            )
        if leaves is None:
            _, handles = self._come(number, 1, self._ask(number, 1))
            leaves = list(handles[HEAD:])
        self._log.give(number, self._source.group.number)
        return self._element(leaves)

    # -- when other replicas take part
    # ---------------------------------------------------------------------------------------

    def split_anew(self, number: int) -> list[Handle]:
        """The leaves of an element that was returned before, for the current replicas."""
        known, places, leaves = self._anew
        if known != number or places is not self._source.places:
            _, handles = self._come(number, 1, self._ask(number, 1))
            leaves = list(handles[HEAD:])
            self._anew = number, handles[0].places, leaves
        return leaves

    def _start_anew(self) -> None:
        """Fetches by the new plan from the next element on."""
        if self._given < self._available or self._failure is not None:
            self._next = self._first + self._given
            self._ended = False
        self._first, self._chunk, self._available, self._given = self._next, (), 0, 0
        self._failure, self._asked, self._count = None, None, 1
        self._owed = dict.fromkeys(self._owed)
        self._recent.clear()
        self._places = self._source.places

    # -- fetching
    # ---------------------------------------------------------------------------------------------------

    def _element(self, leaves: Sequence[Handle]) -> Any:
        return tree.unflatten(self._structure, [PerReplica(leaf) for leaf in leaves])

    def _take_chunk(self) -> None:
        """Waits for the requested chunk, makes it the current one, and requests the next."""
        first, count = self._next, self._count
        asked, self._asked = self._asked, None  # whatever happens, do not wait for it twice
        chunk, handles = self._come(first, count, asked)
        counts = handles[0].values()
        failures = [(have, data) for have, data in zip(counts, handles[2].values(), strict=True) if data]
        # A host that has reached its end sends empty batches until all have. If an element fails on one host, all omit
        # it.
        available = min(have for have, _ in failures) if failures else max(counts)
        self._log.wait(handles[1].values(), self._source.group.number, first=first, count=available)
        self._log.cost(handles[3].values())
        self._first, self._chunk, self._available, self._given = first, handles, available, 0
        self._places = handles[0].places
        self._next = first + available
        if failures:
            reports = [pickle.loads(data) for have, data in failures if have == available]
            self._failure = failures_error(handles[0].step, reports)
            self._next += 1
        elif available < count:
            self._ended = True
            self._tell(handles, available)
            return
        else:
            self._count = _more_steps(count, handles, self._source.plan)
        self._recent.append(weakref.ref(chunk))
        self._asked = self._ask(self._next, self._count)
        self._tell(handles, available)  # takes a moment, in which the next chunk is already being fetched

    def _tell(self, handles: tuple[Handle, ...], available: int) -> None:
        """Reports to the feed how long replicas waited, and how many rows of the last element each has."""
        cluster = self._source.group.gang.cluster
        width = self._structure.num_leaves
        if cluster is None or not available or not width:
            return
        last = handles[HEAD + (available - 1) * width]
        specs = [last.spec(rank) for rank in range(self._source.group.size)]
        rows = [1 if spec is None or not spec[1] else int(spec[1][0]) for spec in specs]
        cluster.feed.add_input(
            self._source.group.name, waited_ns=handles[1].values(), elements=available, rows=rows
        )

    def _ask(self, first: int, count: int) -> tuple[Chunk, tuple[Handle, ...]]:
        request = Request(self._source.id, self._id, self._epoch, first, count, self._keep(first))
        return self._source.fetch(request, self)

    def _keep(self, first: int) -> int:
        """Number of the first element that readers must keep, because a lost replica may need it again."""
        while self._recent and self._recent[0]() is None:
            self._recent.popleft()
        oldest = self._recent[0]() if self._recent else None
        held = first if oldest is None else oldest.request.first
        return max(0, min(held, first - 1), first - MAX_IN_FLIGHT)

    def _come(
        self, first: int, count: int, asked: tuple[Chunk, tuple[Handle, ...]] | None
    ) -> tuple[Chunk, tuple[Handle, ...]]:
        """Waits for the requested chunk; requests it again if it was lost with a replica or an earlier step.

        Raises:
          ReplicaLost: if replicas are lost repeatedly.
          BaseException: the error of an earlier step, unless the user has seen it.
        """
        ahead, error = asked is not None, None
        for _ in range(_ATTEMPTS):
            if asked is None:
                asked = self._ask(first, count)
            # Not raised, because a traceback would keep the handles, and so their values on the replicas.
            error = asked[1][0].error()
            if error is None:
                return asked
            if not isinstance(error, LOSSES) and not (ahead and isinstance(error, Exception)):
                break
            ahead, asked = False, None
        if asked is not None:
            asked[1][0].values()  # raises it, once its cause is known
        assert error is not None
        raise error


def _more_steps(count: int, chunk: tuple[Handle, ...], plan: InputPlan) -> int:
    """The number of steps that the next message fetches; it doubles each time.

    Pipelines with side effects do not read far ahead.
    """
    most = _MOST_STEPS if plan.pure else max(1, min(_MOST_STEPS, plan.pipelines[0].read_ahead))
    if count >= most:
        return count
    size = sum(_nbytes(handle) for handle in chunk[HEAD:]) // count
    return max(1, min(most, 2 * count, _CHUNK_BYTES // max(1, size)))


def _nbytes(handle: Handle) -> int:
    spec = handle.spec(0)
    return 0 if spec is None else math.prod(spec[1]) * np.dtype(spec[0]).itemsize
