"""How a stage calls a function for many elements at a time: by threads or processes, as requested or measured."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter, thread_time
from typing import Any, Final

from workbench.allowance import cores
from workbench.data.background.arrivals import Arrival
from workbench.data.background.call_process import portable
from workbench.data.background.crew import Crew
from workbench.data.background.process_pool import ProcessPool
from workbench.data.background.shared_state import shared_state
from workbench.data.meter import StageMeter, Unmeasured
from workbench.data.options import AUTOTUNE, Options, WorkerKind
from workbench.data.tables import Failed, Run, Task, single
from workbench.errors import InvalidArgumentError
from workbench.telemetry.formatting import percent

_UNTUNED_THREADS: Final = 4
_MOST_THREADS: Final = 16
_MEASURED: Final = 4
_PAIRED: Final = 6
_SHORT_SECONDS: Final = 100e-6
_WAITING_SHARE: Final = 0.5
_PAIR_GAIN: Final = (
    # Two threads are worth it if an element takes less than this share of one thread's time; 0.5 would be perfect.
    0.7
)


@dataclass(frozen=True, slots=True)
class Parallelism:
    """What calls a function.

    Attributes:
      count: How many at a time; 0 for the reader's own thread.
      kind: Threads or processes.
      why: What was measured, in a few words.
    """

    count: int
    kind: WorkerKind = WorkerKind.THREADS
    why: str = ""


@dataclass(frozen=True, slots=True)
class ParallelCalls:
    """The calls of one stage in one pass.

    Attributes:
      function: The user's function, to inspect what it refers to; None if only threads may call.
      call: Takes components, structure and number of an element; returns components and structure.
      what: The stage, for errors.
      options: The options of the dataset.
      arrival: The order of results where it may change; None to keep that of the elements.
      most_bytes: How many bytes of results may wait.
      meter: The meter of the stage.
    """

    function: Callable[..., Any] | None
    call: Callable[..., Any]
    what: str
    options: Options
    arrival: Arrival | None
    most_bytes: int
    meter: StageMeter | Unmeasured

    def run(self, tasks: Iterator[Task], count: int) -> Iterator[Run]:
        """The results for `tasks`.

        Args:
          tasks: The elements to call the function for.
          count: Calls at a time. `AUTOTUNE` measures how many are useful, and whether threads or processes should make
            them.
        """
        if self.arrival is not None and self.arrival.known:
            return self.arrival.in_known_order(replace(self, arrival=None).run(tasks, count))
        if count != AUTOTUNE:
            return self._fixed(tasks, count)
        if self.options.autotune.enabled is False:
            return self._fixed(tasks, self._at_most(_UNTUNED_THREADS))
        return self._tuned(tasks)

    def _fixed(self, tasks: Iterator[Task], count: int) -> Iterator[Run]:
        parallelism = Parallelism(count, self._wanted_kind())
        self.meter.workers(max(1, parallelism.count), parallelism.kind.name.lower())
        yield from self._with(parallelism, tasks)

    def _tuned(self, tasks: Iterator[Task]) -> Iterator[Run]:
        parallelism = yield from self._measured(tasks)
        self.meter.workers(max(1, parallelism.count), parallelism.kind.name.lower(), chosen=True)
        self.meter.note(parallelism.why)
        yield from self._with(parallelism, tasks)

    def _with(self, parallelism: Parallelism, tasks: Iterator[Task]) -> Iterator[Run]:
        if parallelism.count == 0:
            for task in tasks:
                yield self._attempt(task)
            return
        if parallelism.kind is WorkerKind.PROCESSES:
            pool = ProcessPool(
                self._portable(),
                self.what,
                parallelism.count,
                arrival=self.arrival,
                most_bytes=self.most_bytes,
                meter=self.meter,
            )
            yield from pool.run(tasks)
            return
        crew = Crew(
            partial(_called, self.call),
            parallelism.count,
            name=f"wb-{self.what.partition('(')[0]}",
            arrival=self.arrival,
            most_bytes=self.most_bytes,
            meter=self.meter,
        )
        yield from crew.run(tasks)

    def _portable(self) -> bytes:
        try:
            return portable(self.call)
        except Exception as error:
            raise InvalidArgumentError(
                f"{self.what}: the function cannot be sent to another process: {error}; make what it refers to "
                "inside of it, or let threads call it: options.threading.worker_kind = 'THREADS'"
            ) from error

    def _attempt(self, task: Task) -> Run:
        if self.arrival is not None:
            self.arrival.note(0)
        if isinstance(task, Failed):
            return task
        try:
            return _called(self.call, task)
        except Exception as error:
            return Failed(error)

    def _measured(self, tasks: Iterator[Task]) -> Generator[Run, None, Parallelism]:
        if self._wanted_kind() is WorkerKind.PROCESSES:
            return Parallelism(self._at_most(cores()), WorkerKind.PROCESSES)
        times = []
        for task in itertools.islice(tasks, _MEASURED):
            began, cpu = perf_counter(), thread_time()
            run = self._attempt(task)
            times.append((perf_counter() - began, thread_time() - cpu))
            yield run
        if not times:
            return Parallelism(0)
        seconds, cpu = min(times)  # the first calls may import or load things
        if seconds < _SHORT_SECONDS:
            return Parallelism(0, why=f"a call takes {seconds * 1e6:.0f} µs, less than handing it over")
        if cpu < _WAITING_SHARE * seconds:
            useful = math.ceil(cores() * seconds / max(cpu, seconds / _MOST_THREADS))
            count = self._at_most(min(_MOST_THREADS, max(_UNTUNED_THREADS, useful)))
            return Parallelism(count, why=f"waits for {percent(1 - cpu / seconds)} of {seconds * 1e3:.1f} ms")
        if cores() < 2:
            return Parallelism(0, why="computes, and there is one core")
        pair = list(itertools.islice(tasks, _PAIRED))
        began = perf_counter()
        yield from self._with(Parallelism(2), iter(pair))
        if len(pair) < _PAIRED:
            return Parallelism(0)
        if (perf_counter() - began) / _PAIRED <= _PAIR_GAIN * seconds:
            return Parallelism(self._at_most(cores()), why="computes, and lets other threads run")
        return self._for_one_that_holds_the_lock()

    def _for_one_that_holds_the_lock(self) -> Parallelism:
        if self.function is None:
            return Parallelism(0, why="two threads take as long as one")
        told = self.options.threading.worker_kind is WorkerKind.THREADS
        obstacle = "options.threading.worker_kind is THREADS" if told else ""
        if not obstacle and (state := shared_state(self.function)):
            obstacle = f"it refers to {state}, of which processes would have copies"
        if not obstacle:
            try:
                portable(self.call)
            except Exception as error:
                obstacle = f"it cannot be sent to processes ({type(error).__name__})"
        if obstacle:
            return Parallelism(0, why=f"holds Python's lock; {obstacle}")
        return Parallelism(
            self._at_most(cores()), WorkerKind.PROCESSES, "holds Python's lock, so processes call it"
        )

    def _wanted_kind(self) -> WorkerKind:
        told = self.options.threading.worker_kind is WorkerKind.PROCESSES and self.function is not None
        return WorkerKind.PROCESSES if told else WorkerKind.THREADS

    def _at_most(self, count: int) -> int:
        limits = (self.options.autotune.cpu_budget, self.options.threading.private_threadpool_size)
        return min([count, *(max(1, limit) for limit in limits if limit)])


def _called(call: Callable[..., Any], task: Any) -> Run:
    index, (leaves, structure, ids) = task
    result, packed = call(leaves, structure, index)
    return single(result, packed, ids)
