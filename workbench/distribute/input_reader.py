"""Reader: goes through one host's pipeline, for the replicas of one process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from workbench import tree
from workbench.data.distributed import HostPipeline

_CHECK_SECONDS = 1.0
_END = object()


class Reader:
    """Reads for some replicas of a host; each of them asks for the same steps in the same order, on its own thread.

    The steps asked for last are kept, so that they can be asked for again when something failed elsewhere. Going back
    further, or on in a process that was restarted, reads the epoch again from its start.

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
        self._elements: Iterator[list[Any]] = pipeline.values_for(self.replicas, epoch=epoch)
        self._first = 0
        self._steps: list[list[list[Any]]] = []
        self._ended = False
        self._error: Exception | None = None

    def steps(self, first: int, count: int, *, ahead: bool = False) -> list[list[list[Any]]]:
        """Steps `first` to `first + count - 1`, fewer where the pipeline ends or fails.

        Args:
          first: Number of the first step.
          count: How many.
          ahead: It is not yet their turn: raise nothing.

        Returns:
          Per step, per entry of `replicas`, the leaves of one element.

        Raises:
          Exception: What reading step `first` raised.
        """
        # Held while reading: the host's other replicas wait for the same steps.
        with self._asking:
            if first < self._first:
                self._wait_until_idle()
                self._restart()
            while first + count > self._first + len(self._steps) and not self._ended:
                if self._idle.is_set():
                    self._read_until(first, first + count)
                else:
                    self._wait_until_idle()
            with self._reading:
                del self._steps[: first - self._first]
                self._first = max(self._first, first)
                found = self._steps[:count]
            if not found and not ahead and self._error is not None:
                raise self._error
            if self._ahead and not self._ended and self._idle.is_set():
                self._idle.clear()
                until = first + 2 * count
                threading.Thread(
                    target=self._read_ahead, args=(first, until), name="workbench-input", daemon=True
                ).start()
        return found

    def _restart(self) -> None:
        self._elements = self.pipeline.values_for(self.replicas, epoch=self._epoch)
        self._first = 0
        self._steps = []
        self._ended = False
        self._error = None

    def _read_until(self, keep: int, end: int) -> None:
        """Reads up to step `end`, keeping those from `keep` on."""
        while not self._ended and self._first + len(self._steps) < end:
            try:
                values = next(self._elements, _END)
                step = [] if values is _END else [tree.flatten(value)[0] for value in values]  # type: ignore[attr-defined]
            except Exception as error:  # belongs to the step that it would have been, after those before it
                self._error = error
                self._ended = True
                return
            if values is _END:
                self._ended = True
                return
            with self._reading:
                self._steps.append(step)
                if self._first < keep:
                    del self._steps[0]
                    self._first += 1

    def _read_ahead(self, keep: int, end: int) -> None:
        try:
            self._read_until(keep, end)
        finally:
            self._idle.set()

    def _wait_until_idle(self) -> None:
        # A map function may take long; an interrupt must come through.
        while not self._idle.wait(_CHECK_SECONDS):
            pass
