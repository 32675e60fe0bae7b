"""Measures what a pass costs, stage by stage: elements, bytes, time, queues, workers.

A pass is opened with a `Meter`; `Dataset.open` then gives each source and stage its own `StageMeter`, as
`current.meter`, and iterates over the stage's runs with `StageMeter.around`. Elements move in runs of many rows, so
this reads the clock twice for each run and stage. In a pass without a meter, `current.meter` is `UNMEASURED`, which
does nothing.

Each thread charges its time to one account at a time. Requesting a stage's next run opens the stage's account;
afterwards, the previous account continues. So a stage's own time excludes the stages above it. A stage with its own
threads reports what they do with `working`, `waiting` and `blocked`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter_ns
from typing import Final, Protocol

from workbench.data.cost.profile import PipelineProfile, QueueProfile, StageProfile, Workers
from workbench.data.structure import Array, Structure
from workbench.data.tables import Failed, Leaves, Rows, Run, Segment, Table, nbytes

_MOST_INPUTS: Final = 8
"""The most pipelines with different stages that are measured separately below one stage."""
_SAMPLED_RUNS: Final = 64  # measures the size of elements in one of this many runs


class Measurable(Protocol):
    """What a meter reads of a dataset; see `Pipeline`."""

    @property
    def source(self) -> _Source:
        """Where elements come from."""

    @property
    def stages(self) -> Sequence[_Stage]:
        """What is done to them, in order."""


class _Stage(Protocol):
    @property
    def text(self) -> str: ...


class _Source(_Stage, Protocol):
    def inputs(self) -> tuple[Measurable, ...]: ...


class Unmeasured:
    """Replaces a stage's meter in a pass that is not measured."""

    __slots__ = ()

    def input_of(self, dataset: Measurable) -> None:
        """The meters of a dataset's source and stages: none."""

    def expect(self, inputs: Sequence[Measurable]) -> None:
        """As `StageMeter.expect`."""

    def working(self) -> AbstractContextManager[None]:
        """As `StageMeter.working`."""
        return _NOTHING

    def waiting(self) -> AbstractContextManager[None]:
        """As `StageMeter.waiting`."""
        return _NOTHING

    def blocked(self) -> AbstractContextManager[None]:
        """As `StageMeter.blocked`."""
        return _NOTHING

    def worked(self, elapsed_ns: int) -> None:
        """As `StageMeter.worked`."""

    def queue(self, fill: int, capacity: int, *, chosen: bool = False, held_bytes: int = 0) -> None:
        """As `StageMeter.queue`."""

    def workers(self, count: int, kind: str = "threads", *, chosen: bool = False) -> None:
        """As `StageMeter.workers`."""

    def left_out(self) -> None:
        """As `StageMeter.left_out`."""

    def blocks(self, rows: int) -> None:
        """As `StageMeter.blocks`."""

    def note(self, text: str) -> None:
        """As `StageMeter.note`."""


_NOTHING: Final = nullcontext()
UNMEASURED: Final = Unmeasured()


class _Account:
    """Nanoseconds that a stage has spent in one way.

    Attributes:
      ns: The nanoseconds.
      above: The account that is charged while this stage waits for another one.
    """

    __slots__ = ("above", "ns")

    def __init__(self, above: _Account | None = None) -> None:
        self.ns = 0
        self.above = self if above is None else above


class _Hand:
    """The account that a thread's time goes to, and since when. Only that thread writes it, in one assignment."""

    __slots__ = ("__weakref__", "span")

    def __init__(self, account: _Account) -> None:
        self.span = account, perf_counter_ns()


class _Stopwatch:
    """Keeps the current account of each thread. `lock` guards every number of a meter."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._nobody = _Account()
        self._local = threading.local()
        self._hands: weakref.WeakSet[_Hand] = weakref.WeakSet()

    def hand(self) -> _Hand:
        """The hand of this thread."""
        try:
            return self._local.hand  # type: ignore[no-any-return]
        except AttributeError:
            hand = self._local.hand = _Hand(self._nobody)
            with self.lock:
                self._hands.add(hand)
            return hand

    def under_way(self) -> dict[_Account, int]:
        """The time of running spans that is not yet charged, by account. The caller holds the lock."""
        now = perf_counter_ns()
        found: dict[_Account, int] = {}
        for hand in self._hands:
            account, since = hand.span
            found[account] = found.get(account, 0) + max(0, now - since)
        return found


class _Span:
    """Charges the time inside a `with` block to a stage's account."""

    __slots__ = ("_account", "_before", "_began", "_hand", "_since", "_watch")

    def __init__(self, watch: _Stopwatch, account: _Account) -> None:
        self._watch = watch
        self._account = account

    def __enter__(self) -> None:
        self._hand = self._watch.hand()
        self._before, self._since = self._hand.span
        self._began = perf_counter_ns()
        self._hand.span = self._account, self._began

    def __exit__(self, *failure: object) -> None:
        now = perf_counter_ns()
        before = self._before
        _, resumed = self._hand.span
        self._hand.span = before, now
        with self._watch.lock:
            self._account.ns += now - resumed
            before.ns += self._began - self._since
            # Two spans with the same account above are one stage, which does not wait for itself.
            if before.above is not self._account.above:
                before.above.ns += now - self._began


class StageMeter:
    """Measures one stage, or a source; its methods may be called from any thread.

    Its first use in a thread registers that thread.
    """

    def __init__(self, name: str, watch: _Stopwatch) -> None:
        self._waited = _Account()
        self._own, self._idle = _Account(self._waited), _Account(self._waited)
        self._name = name
        self._watch = watch
        self._elements = self._failures = self._left_out = 0
        self._sampled = self._sampled_bytes = 0
        self._workers: Workers | None = None
        self._queue: QueueProfile | None = None
        self._block_rows = 0
        self._note = ""
        self._inputs: dict[object, list[StageMeter]] = {}

    # What a stage reports

    def working(self) -> AbstractContextManager[None]:
        """In a stage's own thread: counts the block as work."""
        return _Span(self._watch, self._own)

    def waiting(self) -> AbstractContextManager[None]:
        """Counts the block as waiting for the stages above, as at an empty queue."""
        return _Span(self._watch, self._waited)

    def blocked(self) -> AbstractContextManager[None]:
        """Counts the block as waiting for the stage's consumers, as at a full queue."""
        return _Span(self._watch, self._idle)

    def worked(self, elapsed_ns: int) -> None:
        """Adds work that another process did for the stage."""
        with self._watch.lock:
            self._own.ns += elapsed_ns

    def queue(self, fill: int, capacity: int, *, chosen: bool = False, held_bytes: int = 0) -> None:
        """Reports how full the queue behind the stage is; called when something is put in or taken out.

        Args:
          fill: Elements that wait now.
          capacity: The most elements that may wait.
          chosen: Whether AUTOTUNE chose the capacity.
          held_bytes: Memory of those that wait, 0 if unknown.
        """
        with self._watch.lock:
            before = self._queue
            fills, looks = (0, 0) if before is None else (before.fills, before.looks)
            self._queue = QueueProfile(capacity, chosen, fills + fill, looks + 1, held_bytes)

    def workers(self, count: int, kind: str = "threads", *, chosen: bool = False) -> None:
        """Reports the stage's workers; called when they change.

        Args:
          count: How many work at a time.
          kind: "threads" or "processes".
          chosen: Whether AUTOTUNE chose the number.
        """
        with self._watch.lock:
            self._workers = Workers(count, kind, chosen)

    def left_out(self) -> None:
        """Counts an element that could not be made and that this stage drops silently."""
        with self._watch.lock:
            self._left_out += 1

    def blocks(self, rows: int) -> None:
        """Reports how many rows the stage's function computes at a time; 0 if it is called for each row again."""
        with self._watch.lock:
            self._block_rows = rows

    def note(self, text: str) -> None:
        """Describes how the stage works, in a few words for explanations."""
        with self._watch.lock:
            self._note = text

    # What passes through

    def around(self, open_runs: Callable[[], Iterator[Run]]) -> Iterator[Run]:
        """Iterates over the stage's runs and measures them."""
        watch, own, clock = self._watch, self._own, perf_counter_ns
        runs: Iterator[Run] | None = None
        count = 0
        while True:
            hand = watch.hand()
            before, since = hand.span
            began = clock()
            hand.span = own, began
            run: Run | None = None
            try:
                if runs is None:
                    runs = open_runs()
                run = next(runs, None)
            finally:
                now = clock()
                _, resumed = hand.span
                hand.span = before, now
                # One critical section per run, because that is most of the cost of measuring.
                with watch.lock:
                    own.ns += now - resumed
                    before.ns += began - since
                    before.above.ns += now - began
                    if run is not None:
                        self._elements += len(run.rows)
            if run is None:
                return
            if isinstance(run, Failed):
                self._failed()
            elif not run.table.at_rest:
                run = self._gathering(run)
            elif not count % _SAMPLED_RUNS and len(run):
                self.gathered(run.table.row(int(run.rows[0])), 1)
            count += 1
            yield run

    def input_of(self, dataset: Measurable) -> list[StageMeter] | None:
        """The meters of the source and the stages of a dataset that this stage opens.

        Datasets returned by a function share meters if they have the same stages. None if there are too many kinds.
        """
        with self._watch.lock:
            known = self._inputs.get(id(dataset))
            if known is not None:
                return known
            key = tuple(_texts(dataset))
            known = self._inputs.get(key)
            if known is None and len(self._inputs) < _MOST_INPUTS:
                known = self._inputs[key] = [StageMeter(text, self._watch) for text in key]
            return known

    def expect(self, inputs: Sequence[Measurable]) -> None:
        """Measures each of these separately, even those with the same stages; they must outlive the meter."""
        for dataset in inputs:
            meters = self._inputs[id(dataset)] = [StageMeter(text, self._watch) for text in _texts(dataset)]
            meters[0].expect(dataset.source.inputs())

    def gathered(self, leaves: Leaves, elements: int) -> None:
        """Counts elements assembled from the stage's table."""
        with self._watch.lock:
            self._sampled += elements
            self._sampled_bytes += nbytes(leaves)

    def profile(self, elapsed_seconds: float, under_way: Mapping[_Account, int]) -> StageProfile:
        """The numbers so far, including running spans. The caller holds the lock."""

        def seconds(account: _Account) -> float:
            return (account.ns + under_way.get(account, 0)) / 1e9

        return StageProfile(
            name=self._name,
            elements=self._elements,
            failures=self._failures,
            left_out=self._left_out,
            produced_bytes=self._sampled_bytes * self._elements // self._sampled if self._sampled else None,
            own_seconds=seconds(self._own),
            waited_seconds=seconds(self._waited),
            blocked_seconds=seconds(self._idle),
            workers=self._workers,
            queue=self._queue,
            block_rows=self._block_rows,
            note=self._note,
            inputs=tuple(_profile(meters, elapsed_seconds, under_way) for meters in self._inputs.values()),
        )

    def _failed(self) -> None:
        with self._watch.lock:
            self._failures += 1

    def _gathering(self, run: Run) -> Run:
        """The run, wrapped so that assembling its elements later counts as this stage's work."""
        return (
            run if isinstance(run.table, GatheringTable) else Run(GatheringTable(run.table, self), run.rows)
        )


class GatheringTable:
    """A table that assembles elements on request, and counts this as work of the stage that made it.

    Attributes:
      table: The table.
    """

    __slots__ = ("_meter", "table")

    at_rest: Final = False

    def __init__(self, table: Table, meter: StageMeter) -> None:
        self.table = table
        self._meter = meter

    @property
    def structure(self) -> Structure:
        """The structure of an element."""
        return self.table.structure

    def row(self, index: int) -> Leaves:
        """The components of one element."""
        with self._meter.working():
            leaves = self.table.row(index)
        self._meter.gathered(leaves, 1)
        return leaves

    def take(self, rows: Rows) -> Leaves:
        """The components of several elements, stacked."""
        with self._meter.working():
            leaves = self.table.take(rows)
        self._meter.gathered(leaves, len(rows))
        return leaves

    def ids(self, rows: Rows) -> Array:
        """Numbers of the source elements behind `rows`."""
        return self.table.ids(rows)

    def segment(self, index: int) -> Segment:
        """One element seen as a batch of rows."""
        return self.table.segment(index)


class Meter(StageMeter):
    """Measures a pass: the root that stands for the reader of the elements."""

    def __init__(self, *datasets: Measurable) -> None:
        """Starts measuring; `datasets` will be opened."""
        super().__init__("", _Stopwatch())
        self._datasets = datasets  # kept, because `expect` needs it
        self.expect(datasets)
        self._began_ns = perf_counter_ns()

    def pipelines(self) -> tuple[PipelineProfile, ...]:
        """The profile of each dataset that was opened with this meter or that it expects."""
        with self._watch.lock:
            elapsed_seconds = (perf_counter_ns() - self._began_ns) / 1e9
            return self.profile(elapsed_seconds, self._watch.under_way()).inputs


def _texts(dataset: Measurable) -> list[str]:
    return [dataset.source.text, *(stage.text for stage in dataset.stages)]


def _profile(
    meters: Sequence[StageMeter], elapsed_seconds: float, under_way: Mapping[_Account, int]
) -> PipelineProfile:
    stages = tuple(meter.profile(elapsed_seconds, under_way) for meter in meters)
    return PipelineProfile(stages, elapsed_seconds)
