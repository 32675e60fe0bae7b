"""Times GPU work by events that are read much later, so that no step waits for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.backends.accelerator import Accelerator
from workbench.backends.flags import Taken
from workbench.communicators.core.call import Asked
from workbench.communicators.core.finiteness import NOT_READ
from workbench.communicators.gpu.inputs import Inputs, found
from workbench.communicators.gpu.work import Work

REBASE_SECONDS = 10.0
"""Elapsed times are float32 milliseconds: ten seconds after their base they resolve 1 µs, 17 minutes after it only
62 µs.
"""
_BASE_PAUSE_SECONDS = 0.00005
_BASE_SECONDS = 0.005  # a base event that takes longer than this is too imprecise


@dataclass(slots=True, eq=False)
class Pair:
    """Two events around one device's part of a collective, and the data for its record.

    Attributes:
      lane: The lane of the device.
      start: The event before it, on the communication stream.
      end: The event after it.
      works: The work of each replica on the device; they keep all buffers alive until the pair is retired.
      base: The base event to count from, and its time.
      flags: A word for each work, set if its inputs are not finite; None if they were not checked.
    """

    lane: Lane
    start: Any
    end: Any
    works: Sequence[Work]
    base: tuple[Any, int]
    flags: Taken | None = None


@dataclass(slots=True, eq=False)
class Launched:
    """A queued collective.

    Attributes:
      pairs: One per local device.
      deadline_ns: When it must have completed, on the clock of `time.monotonic_ns`.
      algorithm: Name of the algorithm, for the record.
      state: "ok", or how it failed.
    """

    pairs: list[Pair]
    deadline_ns: int
    algorithm: str
    state: str = "ok"

    def asked(self) -> Asked:
        """The call in words."""
        work = self.pairs[0].works[0]
        return work.call.asked(work.rank, work.step, work.seq)


class Lane:
    """One device of the process: its communication stream and its pool of events.

    Attributes:
      ordinal: Number of the device in this process.
      stream: The stream for collectives, beside those of user code.
      inputs: Checks its replicas' inputs to collectives.
      base: An event and its time (monotonic ns).
    """

    def __init__(self, accelerator: Accelerator, ordinal: int) -> None:
        self.ordinal = ordinal
        self._gpu = accelerator
        with accelerator.on(ordinal):
            self.stream = accelerator.stream()
            # Nothing else runs on this stream, so an event recorded there completes at once.
            self._side = accelerator.stream()
        self.inputs = Inputs(accelerator, ordinal)
        self._events: list[Any] = []
        self.base: tuple[Any, int] = (None, 0)
        self._based = 0.0
        while self.base[0] is None:
            self.rebase()

    def event(self) -> Any:
        """An unused event."""
        try:
            return self._events.pop()  # the watching thread takes events, too
        except IndexError:
            with self._gpu.on(self.ordinal):
                return self._gpu.event()

    def give_back(self, *events: Any) -> None:
        """Returns events for reuse."""
        self._events += events

    def rebase(self) -> None:
        """Takes a new base on a separate stream; keeps the old one if the device is too busy for a precise one."""
        event = self.event()
        before = asked = time.monotonic_ns()
        with self._gpu.on(self.ordinal, self._side):
            self._gpu.record(event)
        ends = time.monotonic() + (_BASE_SECONDS if self.base[0] is not None else 1.0)
        while not self._gpu.done(event):
            if time.monotonic() > ends:
                if self.base[0] is None:
                    self.base = (event, before)
                return
            before = asked  # the event had not completed by then
            time.sleep(_BASE_PAUSE_SECONDS)  # lets other threads take the GIL
            asked = time.monotonic_ns()
        # The earliest possible time, so that no collective seems to end after a wait for it has returned.
        self.base = (event, before)
        self._based = time.monotonic()

    @property
    def base_is_old(self) -> bool:
        """Whether it is time for a new base."""
        return time.monotonic() - self._based > REBASE_SECONDS


def retire(
    accelerator: Accelerator,
    launched: Launched,
    write: Callable[..., None],
) -> None:
    """Records a completed collective.

    Args:
      accelerator: The GPU library.
      launched: The collective.
      write: Called as `write(work, start_ns, end_ns, algorithm, state, inputs)` for each replica.
    """
    for pair in launched.pairs:
        event, when_ns = pair.base
        start_ns = when_ns + accelerator.elapsed_ns(event, pair.start)
        end_ns = start_ns + accelerator.elapsed_ns(pair.start, pair.end)
        for place, work in enumerate(pair.works):
            began = max(work.enter_ns, start_ns)
            inputs = found(work, pair.flags, place) if launched.state == "ok" else NOT_READ
            write(work, began, max(began, end_ns), launched.algorithm, launched.state, inputs)
        pair.lane.give_back(pair.start, pair.end)
        if pair.flags is not None:
            accelerator.flags.give_back(pair.flags)
