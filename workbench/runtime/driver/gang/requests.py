"""Requests on the ordered links, answered after the work that was sent before them."""

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
"""How often, at least, a waiting thread looks around."""
_FETCH_DEADLINE_SECONDS: Final = 600.0


class Carrier(Protocol):
    """The gang as requests see it: it sends, and receives while somebody waits.

    Attributes:
      shipping: Its codec made the answers.
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
        """Raises ClusterClosed once nobody would answer."""


class Requests:
    """The requests of a gang. `UrgentQuestions` has those that do not wait behind work."""

    def __init__(self, gang: Carrier) -> None:
        """`gang` hands the answers that come to `arrived`."""
        self._gang = gang
        self._numbers = itertools.count(1)
        self._answers: dict[int, tuple[bool, Any] | None] = {}

    def __len__(self) -> int:
        """How many are not forgotten."""
        return len(self._answers)

    def ask(self, worker: WorkerLink, kind: int, *arguments: Any) -> int:
        """Sends a request; its number is what `answer` waits for.

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
        """An answer has come: what was asked for (`ok`), or a `FailureReport`.

        Args:
          request: Number of the request.
          ok: Whether it succeeded.
          payload: The answer.
        """
        if request in self._answers:  # otherwise nobody waits for it any more
            self._answers[request] = ok, payload

    def answer(self, worker: WorkerLink, request: int, deadline_seconds: float, replica: int = -1) -> Any:
        """Waits for the answer to a request, about `replica` if it is about one.

        Args:
          worker: Link to the worker that was asked.
          request: What `ask` returned.
          deadline_seconds: How long to wait.
          replica: Rank of the replica that the request is about; -1 for none.

        Raises:
          ReplicaLost: the worker is gone.
          ReplicaStalled: it was given up.
          WorkbenchError: what the worker reported, or that it did not answer in time.
          CaptureError: the answer is of a type that this process does not have.
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
        """Nobody waits for the answers to these requests any more; those that were waited for are forgotten already."""
        for request in requests:
            self._answers.pop(request, None)

    def fetch(
        self, places: Sequence[tuple[str, int]], wanted: dict[int, list[tuple[int, int]]]
    ) -> dict[int, list[Any]]:
        """Values that replicas hold, of all of them at the same time.

        Args:
          places: Worker and device of each replica.
          wanted: rank -> (serial, leaf) of each value.

        Returns:
          rank -> the values, in the order in which they were asked for.
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
    """The error of a request that a lost worker can no longer answer; about `replica` if the request was."""
    whose = f"replica {replica} is gone with its" if replica >= 0 else "there is no answer from"
    return end.error_type(
        f"{whose} worker {worker.address}, pid {worker.pid}, which {end}. The next step recovers; values that "
        f"only this worker held have to be computed again",
        replica=replica,
        worker=worker.address,
        pid=worker.pid,
        cause=str(end),
    )
