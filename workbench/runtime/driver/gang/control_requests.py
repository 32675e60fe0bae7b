"""Requests that workers must answer even while a step hangs: sent by any thread, without the gang's lock."""

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
"""A worker that stands still reads nothing: with more requests of a few hundred bytes, its link would be full, and
sending would wait for it."""


class Question:
    """One request on the urgent link of one worker.

    Attributes:
      worker: Whom it was put to.
      kind: What was requested.
    """

    __slots__ = ("_answered", "_outcome", "kind", "worker")

    def __init__(self, worker: WorkerLink, kind: int) -> None:
        self.worker = worker
        self.kind = kind
        self._answered = threading.Event()  # set once by the watching thread
        self._outcome: tuple[bool, Any] = (False, "")

    def settle(self, ok: bool, outcome: Any) -> None:
        """Gives the answer (`ok`), or says why there is none; wakes the threads that wait."""
        self._outcome = ok, outcome
        self._answered.set()

    def answer(self, deadline_seconds: float, *, unless: Callable[[], bool] = lambda: False) -> Any:
        """Waits for the answer.

        Args:
          deadline_seconds: For how long.
          unless: Says when to wait no longer, such as `is_interrupt_kept_back`.

        Raises:
          WorkbenchError: what the worker reported, that it is gone, or that it did not answer in time.
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
    """The questions that are open. `settled` and `ended` are for the watching thread."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        # The interpreter does not interrupt any single operation on it.
        self._open: dict[int, Question] = {}

    def ask(self, worker: WorkerLink, kind: int) -> Question:
        """Sends a question of this kind. If the worker is gone, the answer is an error that says why.

        Returns:
          The question. Where the worker has not answered many, the last one of this kind: its answer is still to come.
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
        """An answer has come."""
        question = self._open.pop(number, None)
        if question is not None:
            question.settle(ok, outcome)

    def ended(self, worker: WorkerLink) -> None:
        """The urgent link of a worker has ended: nothing it was asked will be answered."""
        for number, question in self._open.copy().items():
            if question.worker is worker:
                self._open.pop(number, None)
                question.settle(False, "its connection ended")
