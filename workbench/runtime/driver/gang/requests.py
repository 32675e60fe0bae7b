"""Requests on the ordered links, which workers answer after all work sent before them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from workbench.errors import WorkbenchError
from workbench.runtime.comm.failure_report import FailureReport, rebuild
from workbench.runtime.comm.messages import FETCH, Message
from workbench.runtime.deploy.worker_link import WorkerEnd, WorkerLink
from workbench.runtime.driver.gang.interrupts import DeferredInterrupt
from workbench.runtime.shipping.function_registry import Shipping

CHECK_SECONDS: Final = 0.5
"""The longest time between two checks of a waiting thread."""
_FETCH_DEADLINE_SECONDS: Final = 600.0


class Carrier(Protocol):
    """The gang from the point of view of requests: it sends, and receives while a thread waits.

    Attributes:
      shipping: Has the codec of the answers.
    """

    shipping: Shipping

    @property
    def workers(self) -> Mapping[str, WorkerLink]:
        """Name -> link."""

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Held while sending and receiving."""

    @property
    def interrupts(self) -> DeferredInterrupt:
        """Entered while receiving."""

    def post(self, worker: WorkerLink, message: Message) -> None:
        """Sends on the ordered link."""

    def receive(self, timeout_seconds: float) -> None:
        """Waits for messages and handles them."""

    def check_open(self) -> None:
        """Raises ClusterClosed if nothing would answer any more."""


class Requests:
    """The requests of a gang. `UrgentQuestions` has those that do not wait for earlier work."""

    def __init__(self, gang: Carrier) -> None:
        """`gang` passes answers to `arrived`."""
        self._gang = gang
        self._numbers = itertools.count(1)
        self._answers: dict[int, tuple[bool, Any] | None] = {}

    def __len__(self) -> int:
        """The number of requests that are not dropped."""
        return len(self._answers)

    def ask(self, worker: WorkerLink, kind: int, *arguments: Any) -> int:
        """Sends a request; returns its number, for `answer`.

        Args:
          worker: Link to the worker.
          kind: Kind of the message.
          *arguments: The rest of the message.
        """
        request = next(self._numbers)
        self._answers[request] = None
        self._gang.post(worker, (kind, request, *arguments))
        return request

    def arrived(self, request: int, ok: bool, payload: Any) -> None:
        """Handles an answer: the requested value (`ok`), or a `FailureReport`.

        Args:
          request: Number of the request.
          ok: Whether it succeeded.
          payload: The answer.
        """
        if request in self._answers:  # otherwise nothing waits for it any more
            self._answers[request] = ok, payload

    def answer(self, worker: WorkerLink, request: int, deadline_seconds: float, replica: int = -1) -> Any:
        """Waits for the answer to a request.

        Args:
          worker: Link to the worker that was asked.
          request: The number that `ask` returned.
          deadline_seconds: How long to wait.
          replica: Rank of the replica that the request is about; -1 for none.

        Raises:
          ReplicaLost: if the worker is gone.
          ReplicaStalled: if it was given up.
          WorkbenchError: the error that the worker reported, or if it did not answer in time.
          CaptureError: if the answer has a type that this process lacks.
        """
        gang = self._gang
        end = time.monotonic() + deadline_seconds
        address = worker.address
        with gang.lock, gang.interrupts as interrupts:
            try:
                while (answer := self._answers[request]) is None:
                    if worker.lost:
                        raise _gone(worker, worker.lost, replica)
                    if time.monotonic() > end:
                        raise WorkbenchError(f"worker {address} did not answer in {deadline_seconds:g} s")
                    if interrupts.take():
                        raise KeyboardInterrupt
                    gang.receive(CHECK_SECONDS)
            finally:
                self.forget([request])
        ok, payload = answer
        if not ok:
            assert isinstance(payload, FailureReport)
            raise rebuild(payload)
        return gang.shipping.codec.decode(payload, f"the answer of worker {address}")

    def forget(self, requests: Iterable[int]) -> None:
        """Drops requests whose answers are not needed; those with a received answer are already dropped."""
        for request in requests:
            self._answers.pop(request, None)

    def fetch(
        self, places: Sequence[tuple[str, int]], wanted: dict[int, list[tuple[int, int]]]
    ) -> dict[int, list[Any]]:
        """Fetches values from all replicas at the same time.

        Args:
          places: Worker and device of each replica.
          wanted: rank -> (serial, leaf) of each value.

        Returns:
          rank -> the values, in the requested order.
        """
        gang = self._gang
        with gang.lock:
            gang.check_open()
            asked = []
            for rank, keys in wanted.items():
                name, device = places[rank]
                worker = gang.workers[name]
                asked.append((rank, worker, self.ask(worker, FETCH, device, keys)))
            try:
                return {
                    rank: self.answer(worker, request, _FETCH_DEADLINE_SECONDS, rank)
                    for rank, worker, request in asked
                }
            finally:
                self.forget(request for _, _, request in asked)


def _gone(worker: WorkerLink, end: WorkerEnd, replica: int) -> WorkbenchError:
    """The error of a request that a lost worker can no longer answer; `replica` is as for `answer`."""
    whose = f"replica {replica} is gone with its" if replica >= 0 else "there is no answer from"
    return end.error_type(
        f"{whose} worker {worker.address}, pid {worker.pid}, which {end}. The next step recovers; values that "
        f"only this worker held have to be computed again",
        replica=replica,
        worker=worker.address,
        pid=worker.pid,
        cause=str(end),
    )
