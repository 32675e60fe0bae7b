"""Reader: iterates over one host's pipeline, for the replicas of one process or of the whole host."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from workbench import tree
from workbench.data.background.threads import inherited
from workbench.data.meter import Meter
from workbench.data.sharding.distributed import HostPipeline
from workbench.data.tables import Failed
from workbench.debugging import numerics
from workbench.distribute.input.read_step import ReadStep
from workbench.errors import CancelledError
from workbench.runtime.comm.failure_report import FailureReport, report

_AHEAD_BYTES: Final = 64 << 20
"""Memory limit for steps that are read ahead; one step is always allowed."""
_CHECK_SECONDS: Final = 1.0
_AHEAD_CHUNKS: Final = 2
"""How far to read ahead, in requests: while one request's steps are sent, those of the next one are read."""
_END: Final = object()
_TELL_NS: Final = 250_000_000  # often enough for a view of the cost of stages
_MOST_COST_BYTES: Final = 32 << 10  # messages contain it
Chunk = tuple[list[ReadStep], FailureReport | None]
"""Some steps, and the failure of the next one if that is why there are fewer than requested."""


class Reading(Protocol):
    """Provides the steps of a host: a `Reader` here, or one in another process."""

    def steps(self, first: int, count: int, *, keep: int) -> Chunk:
        """See `Reader.steps`."""

    def cost(self) -> bytes:
        """See `Reader.cost`."""

    def close(self) -> None:
        """Called when no more requests follow."""


class Reader:
    """Reads for some replicas of a host; each requests the same steps in the same order, on its own thread.

    Steps that may be requested again are kept. To go back further, or to continue in a restarted process, it reads the
    epoch again from its start.

    Args:
      pipeline: The host's pipeline.
      epoch: Number of the epoch.
      replicas: Positions of the replicas to read for.
      ranks: Numbers of these replicas, for errors.
      keep_as: Converts the leaves of each position to the step to keep, here or in shared memory.
      ahead: Whether to read the following steps on a separate thread while replicas work.
    """

    def __init__(
        self,
        pipeline: HostPipeline,
        epoch: int,
        replicas: Sequence[int],
        *,
        ranks: Sequence[int],
        keep_as: Callable[[Mapping[int, list[Any]]], ReadStep],
        ahead: bool,
    ) -> None:
        self.pipeline = pipeline
        self.replicas = tuple(replicas)
        self._ranks = tuple(ranks)
        self._epoch = epoch
        self._keep_as = keep_as
        self._ahead = ahead
        self._asking = threading.Lock()
        # Guards the following attributes, which a thread that reads ahead also changes.
        self._changed = threading.Condition()
        self._elements: Iterator[Any] | None = None
        self._first = 0
        self._steps: list[ReadStep | FailureReport] = []
        self._ended = False
        self._needed = 0  # the step up to which a replica waits
        self._wanted = 0  # the step up to which to read ahead, if there is room
        self._reads_ahead = False  # whether a thread for that exists
        self._meter = Meter()
        self._told_ns = 0

    def steps(self, first: int, count: int, *, keep: int) -> Chunk:
        """Steps `first` to `first + count - 1`, or fewer if the pipeline ends or an element fails.

        Args:
          first: Number of the first step. Failed elements have numbers, too.
          count: Number of steps.
          keep: Number of the first step that may be requested again.
        """
        # Held while reading, because the host's other replicas wait for the same steps.
        with self._asking:
            if self._elements is None or first < self._first:
                self._begin(min(first, keep))
            with self._changed:
                self._needed = first + count
                self._wanted = self._needed + _AHEAD_CHUNKS * count if self._ahead else self._needed
                under_way = self._reads_ahead
            if not under_way:  # here, so that prints of user functions belong to the requesting replica
                while not self._has(self._needed):
                    self._read()
            with self._changed:
                if not under_way and self._goes_on():
                    self._reads_ahead = True
                    ahead = inherited(self._read_ahead)
                    threading.Thread(target=ahead, name="workbench-input", daemon=True).start()
                while not self._has(self._needed):
                    if not self._reads_ahead:
                        raise CancelledError("the iterator of a distributed dataset was closed")
                    self._changed.wait(_CHECK_SECONDS)
                passed = max(0, min(first, keep) - self._first)
                del self._steps[:passed]
                self._first += passed
                return _until_failure(self._steps[first - self._first :][:count])

    def cost(self) -> bytes:
        """The cost of each dataset's stages in this epoch, as pickled profiles; b"" if just reported."""
        now_ns = time.monotonic_ns()
        with self._changed:
            if now_ns - self._told_ns < _TELL_NS and not self._ended:
                return b""
            self._told_ns = now_ns
        data = pickle.dumps(self._meter.pipelines(), protocol=5)
        return data if len(data) <= _MOST_COST_BYTES else b""

    def close(self) -> None:
        """Stops reading, and ends a read in progress."""
        with self._changed:
            self._needed = self._wanted = 0

    def _begin(self, first: int) -> None:
        """Starts the epoch at its step `first`."""
        self.close()
        with self._changed:
            while self._reads_ahead:
                # A user function may take long, and interrupts must be noticed.
                self._changed.wait(_CHECK_SECONDS)
        self._meter = Meter()
        self._told_ns = 0
        self._elements = self.pipeline.values_for(
            self.replicas, epoch=self._epoch, first=first, meter=self._meter
        )
        self._first = first
        self._steps = []
        self._ended = False

    def _has(self, end: int) -> bool:
        return self._ended or self._first + len(self._steps) >= end

    def _goes_on(self) -> bool:
        """Whether to read the next step now."""
        if self._has(self._wanted):
            return False
        unasked = self._steps[max(0, self._needed - self._first) :]
        waiting_bytes = sum(step.nbytes for step in unasked if not isinstance(step, FailureReport))
        return not self._has(self._needed) or waiting_bytes < _AHEAD_BYTES

    def _read_ahead(self) -> None:
        try:
            while True:
                with self._changed:
                    if not self._goes_on():
                        self._reads_ahead = False
                        return
                self._read()
        finally:
            with self._changed:
                self._reads_ahead = False
                self._changed.notify_all()

    def _read(self) -> None:
        """Reads one step, or detects the end."""
        try:
            step = self._next_step()
        except (Exception, SystemExit) as error:  # the pipeline may not continue; then the end follows
            step = report(-1, error)
        except BaseException:  # an interrupt has ended the generator; the next request reads again
            self._elements = None
            raise
        with self._changed:
            if step is None:
                self._ended = True
            else:
                self._steps.append(step)
            self._changed.notify_all()

    def _next_step(self) -> ReadStep | FailureReport | None:
        """The pipeline's next step; None at its end."""
        assert self._elements is not None
        values: Any = next(self._elements, _END)
        if values is _END:
            return None
        if isinstance(values, Failed):
            return report(-1, values.error)
        if numerics.is_enabled():
            self._check_numerics(values)
        leaves = [tree.flatten(value)[0] for value in values]
        return self._keep_as(dict(zip(self.replicas, leaves, strict=True)))

    def _check_numerics(self, values: Sequence[Any]) -> None:
        with self._changed:
            number = self._first + len(self._steps)
        with numerics.checking("in a dataset"):
            for rank, value in zip(self._ranks, values, strict=True):
                numerics.check(value, f"the element for replica {rank} in step {number}")


def _until_failure(steps: Sequence[ReadStep | FailureReport]) -> Chunk:
    found: list[ReadStep] = []
    for step in steps:
        if isinstance(step, FailureReport):
            return found, step
        found.append(step)
    return found, None
