"""Reader: goes through one host's pipeline, for the replicas of one process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from workbench import tree
from workbench.data.sharding.distributed import HostPipeline
from workbench.data.tables import Failed

_CHECK_SECONDS = 1.0
_END = object()


class Reader:
    """Reads for some replicas of a host; each of them asks for the same steps in the same order, on its own thread.

    Steps that may be asked for again are kept. Going back further, or on in a process that was restarted, reads the
    epoch again from its start.

    Args:
      pipeline: The host's pipeline.
      epoch: Number of the epoch.
      replicas: Positions of the replicas to read for.
      ahead: Read the following steps on a thread of its own while replicas work with these.
    """

    def __init__(self, pipeline: HostPipeline, epoch: int, replicas: Sequence[int], *, ahead: bool) -> None:
        self.pipeline = pipeline
        self.replicas = tuple(replicas)
        self._epoch = epoch
        self._ahead = ahead
        self._asking = threading.Lock()
        self._reading = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()
        self._elements: Iterator[Any] | None = None
        self._first = 0
        self._steps: list[list[list[Any]] | Exception] = []
        self._ended = False

    def steps(self, first: int, count: int, *, keep: int) -> tuple[list[list[list[Any]]], Exception | None]:
        """Steps `first` to `first + count - 1`, fewer where the pipeline ends or an element fails.

        Args:
          first: Number of the first step. An element that failed has a number, too.
          count: How many.
          keep: Number of the first step that may be asked for again.

        Returns:
          Per step, per entry of `replicas`, the leaves of one element; and the failure of the step that follows, if
          that is why there are fewer.
        """
        # Held while reading: the host's other replicas wait for the same steps.
        with self._asking:
            if self._elements is None or first < self._first:
                self._wait_until_idle()
                self._begin(min(first, keep))
            while first + count > self._first + len(self._steps) and not self._ended:
                if self._idle.is_set():
                    self._read_until(first + count)
                else:
                    self._wait_until_idle()
            with self._reading:
                passed = max(0, min(first, keep) - self._first)
                del self._steps[:passed]
                self._first += passed
                asked = self._steps[first - self._first :][:count]
            if self._ahead and not self._ended and self._idle.is_set():
                self._idle.clear()
                until = first + 2 * count
                threading.Thread(
                    target=self._read_ahead, args=(until,), name="workbench-input", daemon=True
                ).start()
        return _until_failure(asked)

    def _begin(self, first: int) -> None:
        """Starts the epoch, at step `first` of it."""
        self._elements = self.pipeline.values_for(self.replicas, epoch=self._epoch, first=first)
        self._first = first
        self._steps = []
        self._ended = False

    def _read_until(self, end: int) -> None:
        """Reads up to step `end`."""
        assert self._elements is not None
        while not self._ended and self._first + len(self._steps) < end:
            step: list[list[Any]] | Exception
            try:
                values = next(self._elements, _END)
                if values is _END:
                    self._ended = True
                    return
                step = (
                    values.error
                    if isinstance(values, Failed)
                    else [tree.flatten(value)[0] for value in values]  # type: ignore[attr-defined]
                )
            except Exception as error:  # the pipeline cannot go on after it: the end follows
                step = error
            with self._reading:
                self._steps.append(step)

    def _read_ahead(self, end: int) -> None:
        try:
            self._read_until(end)
        finally:
            self._idle.set()

    def _wait_until_idle(self) -> None:
        # A map function may take long; an interrupt must come through.
        while not self._idle.wait(_CHECK_SECONDS):
            pass


def _until_failure(
    steps: list[list[list[Any]] | Exception],
) -> tuple[list[list[list[Any]]], Exception | None]:
    found: list[list[list[Any]]] = []
    for step in steps:
        if isinstance(step, Exception):
            return found, step
        found.append(step)
    return found, None
