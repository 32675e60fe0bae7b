"""Stages whose function returns a dataset for each element: flat_map and interleave."""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, cast

from workbench.arguments import optional_flag, whole_number
from workbench.data.background.arrivals import Arrival
from workbench.data.background.read_ahead import Limits, ReadAhead
from workbench.data.background.threads import CHECK_SECONDS, Signal, close_all
from workbench.data.failing import guarded
from workbench.data.options import AUTOTUNE
from workbench.data.passes import Pass
from workbench.data.provenance import FILE_SHIFT
from workbench.data.spec import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from workbench.data.stage import Opener, Pipeline, Stage
from workbench.data.stages.computing import probe
from workbench.data.stages.computing.functions import note_function, note_place
from workbench.data.stages.prefetch import check_parallel_calls
from workbench.data.structure import Structure, flatten
from workbench.data.tables import Failed, Item, Leaves, Run, attempts
from workbench.errors import InvalidArgumentError

_T = TypeVar("_T")
DEFAULT_CYCLE = 4
_MOST_AHEAD = 256  # up to this many datasets have a thread each, even if a cycle is longer than any input
_MOST_THREADS = 1024  # endless datasets keep their threads, and a long cycle opens more of them


@dataclass(frozen=True, eq=False)
class Interleave(Stage):
    """Cycles through `cycle_length` inner datasets, `block_length` elements each; flat_map has a cycle of one.

    A slot whose dataset has ended is skipped once, and filled with the next dataset at its next turn. As in the
    reference, a failure counts as an element if threads read, and not if the reader does.

    Attributes:
      fn: Returns a dataset for an element; a tuple element is unpacked over its arguments.
      cycle_length: Inner datasets open at a time.
      block_length: Consecutive elements taken from one dataset.
      name: "interleave" or "flat_map".
      num_parallel_calls: How many inner datasets threads read at a time; 0 for the reader's own thread.
      deterministic: Whether threads keep the order; None for what the options say.
    """

    name: str  # type: ignore[misc]  # one algorithm, two public names
    fn: Callable[..., Any]
    cycle_length: int = 1
    block_length: int = 1
    num_parallel_calls: int = 0
    deterministic: bool | None = None
    sees_failures: ClassVar[bool] = True
    calls_functions: ClassVar[bool] = True

    @staticmethod
    def of(
        fn: Callable[..., Any],
        cycle_length: int | None,
        block_length: int | None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Interleave:
        """Checks the arguments of interleave.

        Args:
          fn: Returns a dataset for an element.
          cycle_length: Inner datasets open at a time; None or AUTOTUNE for 4.
          block_length: Consecutive elements taken from one dataset; None for 1.
          num_parallel_calls: Inner datasets that threads read at a time, AUTOTUNE for all open ones, None for none.
          deterministic: Whether the order is that of reading without threads; None for what the options say.

        Raises:
          InvalidArgumentError: if a cycle, a block or the number of calls is less than 1.
        """
        cycle = DEFAULT_CYCLE if cycle_length in (None, -1) else cycle_length
        cycle = whole_number(cycle, "interleave: cycle_length")
        block = 1 if block_length is None else whole_number(block_length, "interleave: block_length")
        if cycle < 1 or block < 1:
            raise InvalidArgumentError(
                f"interleave: cycle_length is {cycle}, block_length {block}; both must be at least 1"
            )
        check_parallel_calls("interleave", num_parallel_calls)
        calls = cycle if num_parallel_calls == AUTOTUNE else min(num_parallel_calls or 0, cycle)
        in_order = optional_flag(deterministic, "interleave: deterministic")
        return Interleave("interleave", fn, cycle, block, calls, in_order)

    def checked(self, upstream: Pipeline) -> Interleave:
        """Itself, unless the function returns something other than datasets for made-up values.

        Raises:
          TypeError: if it does.
        """
        try:
            found = probe.result_example(self.fn, upstream.unread())
        except Exception:  # it may raise for made-up values; then the first pass reports it
            return self
        if not hasattr(found, "open"):
            raise TypeError(
                f"{self.name}: the function must return a Dataset, got {type(found).__name__}; wrap it: "
                "Dataset.from_tensors(value)"
            )
        return self

    def open(self, upstream: Opener, current: Pass) -> Iterator[Run]:
        """Starts one pass over the runs of `upstream()`."""
        inners = self._openers(upstream(), current)
        if not self.num_parallel_calls:
            yield from self._in_turn(map(_begun, inners))
            return
        arrival = current.arrival(self.deterministic)
        signal = None if arrival is None else Signal()
        ahead = _ReadAhead(inners, self, current, signal)
        current.meter.workers(self.num_parallel_calls)
        try:
            if arrival is None or signal is None:
                yield from self._in_turn(iter([each]) if isinstance(each, Failed) else each for each in ahead)
            else:
                yield from self._as_they_come(ahead, signal, arrival)
        finally:
            ahead.close()

    def _in_turn(self, inners: Iterator[Iterator[Run] | Failed]) -> Iterator[Run]:
        slots: list[_Inner | None] = []
        ended = False
        turns_of_failed = 1 if self.num_parallel_calls else 0
        while True:
            for position in range(self.cycle_length):
                if position == len(slots):  # added on demand, because a cycle may have any length
                    if ended:
                        break
                    slots.append(None)
                while slots[position] is None and not ended:
                    following = next(inners, None)
                    if following is None:
                        ended = True
                    elif isinstance(following, Failed):
                        yield following
                    else:
                        slots[position] = _Inner(following)
                inner = slots[position]
                if inner is not None:
                    left, last = self.block_length, None
                    while left and (last := next(inner, None)) is not None:
                        if len(last) > left:
                            inner.put_back(Run(last.table, last.rows[left:]))
                            last = Run(last.table, last.rows[:left])
                        left -= turns_of_failed if isinstance(last, Failed) else len(last)
                        yield last
                    if left:
                        slots[position] = None
            if ended and all(slot is None for slot in slots):
                return

    def _as_they_come(self, inners: _ReadAhead, signal: Signal, arrival: Arrival) -> Iterator[Run]:
        """The runs of those inner datasets that have some ready, a block of elements from each at a time."""
        known = iter(arrival.known)
        slots: deque[ReadAhead] = deque()
        ended = False
        while True:
            while len(slots) < min(self.cycle_length, _MOST_AHEAD) and not ended:
                following = next(inners, None)
                if following is None:
                    ended = True
                elif isinstance(following, Failed):
                    yield following
                else:
                    slots.append(cast("ReadAhead", following))  # too few are open for one without a thread
            if not slots:
                return
            with signal.lock:
                turn = next(known, None)
                while (ready := _first_ready(slots, turn)) is None:
                    signal.changed.wait(CHECK_SECONDS)
            arrival.note(ready)
            slots.rotate(-ready)
            inner, left = slots.popleft(), self.block_length
            while left > 0 and (run := next(inner, None)) is not None:
                left -= len(run)
                yield run
            if left <= 0:
                slots.append(inner)

    def _openers(self, runs: Iterator[Run], current: Pass) -> Iterator[Opener | Failed]:
        """For each element, a function that opens its dataset, possibly on another thread."""
        index = 0
        for item in attempts(runs, current.provenance):
            if isinstance(item, Failed):
                yield item
            else:
                yield functools.partial(self._opened, index, item, current)
                index += 1

    def _opened(self, index: int, item: Item, current: Pass) -> Iterator[Run]:
        leaves, structure, ids = item
        with current.meter.working():
            inner = self._inner(leaves, structure, index)
        runs = inner.open(current.inside(0, index))
        if ids is None or len(ids) != 1:
            return runs
        # For readers, the outer element is like a file: names.flat_map(reader) is numbered like reader(names).
        return (current.numbered(run, int(ids[0]) << FILE_SHIFT) for run in runs)

    def _inner(self, leaves: Leaves, structure: Structure, index: int) -> Pipeline:
        try:
            inner = probe.call(self.fn, structure.pack(leaves))
        except Exception as error:
            note_place(error, self.text, index)
            raise
        if not hasattr(inner, "open"):
            unfit = TypeError(
                f"{self.name}: the function must return a Dataset, got {type(inner).__name__}; wrap it: "
                "Dataset.from_tensors(value)"
            )
            note_function(unfit, self.fn)
            note_place(unfit, self.text, index)
            raise unfit
        return inner  # type: ignore[no-any-return]

    def example(self, upstream: Pipeline) -> Pipeline:
        """One inner dataset: for made-up values or, if these fail, for the first element that has one.

        Raises:
          OutOfRangeError: if there is none.
        """
        with suppress(Exception):
            inner = probe.result_example(self.fn, upstream)
            if hasattr(inner, "open"):
                return inner  # type: ignore[no-any-return]
        return self._of_first("opens", self._of_element, upstream)

    def _of_first(self, verb: str, learn: Callable[[Any], _T], upstream: Pipeline) -> _T:
        """The result of `learn` for the first element for which it returns something."""
        return probe.first_result(f"what {self.text} {verb}", learn, upstream)

    def _of_element(self, element: Any) -> Pipeline:
        return self._inner(*flatten(element), 0)

    def element_spec(self, upstream: Pipeline) -> Any:
        """The nested spec of an element after this stage."""
        probe.refuse_unknown(upstream)
        with suppress(Exception):
            return probe.result_spec(self.fn, upstream, _spec_unread)
        return self._of_first(
            "gives",
            lambda element: probe.learnt_spec(
                lambda other: self._of_element(other).element_spec, element, upstream
            ),
            upstream,
        )

    def cardinality(self, upstream: Pipeline) -> int:
        """Number of elements after this stage; nothing is known about inner datasets, as in the reference."""
        endless = self.num_parallel_calls and upstream.cardinality() == INFINITE_CARDINALITY
        return INFINITE_CARDINALITY if endless else UNKNOWN_CARDINALITY

    def describe(self) -> str:
        """The stage as a short text."""
        label = getattr(self.fn, "__name__", type(self.fn).__name__)
        return f"{self.name}({label})"


class _ReadAhead:
    """The inner datasets, each read ahead by a thread: those of the cycle, and as many that follow.

    While there are too many threads, the reader itself reads further datasets.
    """

    def __init__(
        self,
        inners: Iterator[Opener | Failed],
        stage: Interleave,
        current: Pass,
        signal: Signal | None,
    ) -> None:
        self._inners = inners
        self._ahead = min(stage.cycle_length, _MOST_AHEAD)
        self._current = current
        self._signal = signal
        # Two blocks: one to take and one to make.
        self._limits = Limits(current.most_waiting_bytes // (2 * stage.cycle_length), 2 * stage.block_length)
        calls = stage.num_parallel_calls
        self._gate = threading.Semaphore(calls) if calls < stage.cycle_length else None
        self._following: deque[Iterator[Run] | Failed] = deque()
        self._open: list[ReadAhead] = []

    def __iter__(self) -> _ReadAhead:
        return self

    def __next__(self) -> Iterator[Run] | Failed:
        while len(self._following) <= self._ahead and (inner := next(self._inners, None)) is not None:
            self._following.append(inner if isinstance(inner, Failed) else self._started(inner))
        if not self._following:
            raise StopIteration
        return self._following.popleft()

    def _started(self, opener: Opener) -> Iterator[Run]:
        self._open = [each for each in self._open if not each.is_over()]
        if len(self._open) >= _MOST_THREADS:
            return guarded(_opened_when_read(opener))
        current = self._current
        reading = ReadAhead(
            functools.partial(_opened_when_read, opener),
            self._limits,
            name="wb-interleave",
            provenance=current.provenance,
            meter=current.meter,
            signal=self._signal,
            gate=self._gate,
        )
        self._open.append(reading)
        reading.start()
        return reading

    def close(self) -> None:
        close_all(reading.threads for reading in self._open)


def _first_ready(slots: Sequence[ReadAhead], turn: int | None) -> int | None:
    """The place of the first slot that has something; of that whose turn it is, if that is known. None to wait."""
    if turn is not None and turn < len(slots):
        return turn if slots[turn].ready else None
    return next((place for place, slot in enumerate(slots) if slot.ready), None)


def _spec_unread(inner: Pipeline) -> Any:
    """The spec of an inner dataset's elements. Reads nothing, because made-up names are not those of files."""
    return inner.unread().element_spec


def _begun(opener: Opener | Failed) -> Iterator[Run] | Failed:
    """The runs of an inner dataset; if its function failed, the failure instead."""
    if isinstance(opener, Failed):
        return opener
    try:
        return guarded(opener())
    except Exception as error:
        failed = Failed(error)
    return failed


def _opened_when_read(opener: Opener) -> Iterator[Run]:
    yield from opener()


class _Inner:
    """The runs of one inner dataset; the rest of a run can be put back."""

    __slots__ = ("_rest", "_runs")

    def __init__(self, runs: Iterator[Run]) -> None:
        self._runs = runs
        self._rest: Run | None = None

    def __iter__(self) -> _Inner:
        return self

    def __next__(self) -> Run:
        if self._rest is None:
            return next(self._runs)
        rest, self._rest = self._rest, None
        return rest

    def put_back(self, rest: Run) -> None:
        """Makes `rest` come next."""
        self._rest = rest
