"""Requests that workers must answer even while a step hangs. Any thread sends them, without the gang's lock."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from workbench.errors import WorkbenchError
from workbench.runtime.comm.failure_report import FailureReport, rebuild
from workbench.runtime.comm.links import LinkClosed
from workbench.runtime.comm.messages import loads
from workbench.runtime.deploy.worker_link import WorkerLink

_CHECK_SECONDS: Final = 0.1
_MOST_OPEN: Final = 16
"""A stopped worker reads nothing: more requests, of a few hundred bytes each, would fill its link, and sending would
block."""


class Question:
    """One request on the urgent link of one worker.

    Attributes:
      worker: The worker that was asked.
      kind: What was requested.
    """

    __slots__ = ("_answered", "_outcome", "kind", "worker")

    def __init__(self, worker: WorkerLink, kind: int) -> None:
        self.worker = worker
        self.kind = kind
        self._answered = threading.Event()  # set once by the watching thread
        self._outcome: tuple[bool, Any] = (False, "")

    def settle(self, ok: bool, outcome: Any) -> None:
        """Sets the answer (`ok`) or the reason why there is none, and wakes the waiting threads."""
        self._outcome = ok, outcome
        self._answered.set()

    def answer(self, deadline_seconds: float, *, unless: Callable[[], bool] = lambda: False) -> Any:
        """Waits for the answer.

        Args:
          deadline_seconds: How long to wait.
          unless: Returns True to end the wait early, such as `is_interrupt_kept_back`.

        Raises:
          WorkbenchError: the error that the worker reported, or if it is gone or did not answer in time.
        """
        address = self.worker.address
        end = time.monotonic() + deadline_seconds
        while not self._answered.wait(min(_CHECK_SECONDS, max(0.0, end - time.monotonic()))):
            if unless():
                raise WorkbenchError(f"Ctrl-C ended the wait for worker {address}", worker=address)
            if time.monotonic() >= end:
                raise WorkbenchError(
                    f"worker {address} did not answer in {deadline_seconds:.2g} s", worker=address
                )
        ok, outcome = self._outcome
        if ok:
            return loads(outcome) if isinstance(outcome, bytes) else outcome
        if isinstance(outcome, FailureReport):
            raise rebuild(outcome, worker=address)
        raise WorkbenchError(f"worker {address} is gone: {outcome}", worker=address)


class UrgentQuestions:
    """The unanswered questions. Only the watching thread calls `settled` and `ended`."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        # Every single operation on it is atomic.
        self._open: dict[int, Question] = {}

    def ask(self, worker: WorkerLink, kind: int) -> Question:
        """Sends a question of this kind. If the worker is gone, the answer is an error with the reason.

        Returns:
          The question. If the worker has many unanswered ones, this is the latest of this kind instead of a new one.
        """
        unanswered = [each for each in self._open.copy().values() if each.worker is worker]
        if len(unanswered) >= _MOST_OPEN:
            for earlier in reversed(unanswered):
                if earlier.kind == kind:
                    return earlier
        question = Question(worker, kind)
        number = next(self._numbers)
        self._open[number] = question
        try:
            if worker.lost:
                raise LinkClosed(str(worker.lost))
            worker.signals.send((kind, number))
        except LinkClosed as error:
            self._open.pop(number, None)
            question.settle(False, str(error))
        return question

    def settled(self, number: int, ok: bool, outcome: Any) -> None:
        """Handles an answer."""
        question = self._open.pop(number, None)
        if question is not None:
            question.settle(ok, outcome)

    def ended(self, worker: WorkerLink) -> None:
        """Ends all questions to a worker, because its urgent link has ended."""
        for number, question in self._open.copy().items():
            if question.worker is worker:
                self._open.pop(number, None)
                question.settle(False, "its connection ended")
