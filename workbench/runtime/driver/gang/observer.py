"""A group as the gang sees it."""

from __future__ import annotations

from typing import Any, Protocol

from workbench.runtime.deploy.worker_link import WorkerEnd, WorkerLink


class Observer(Protocol):
    """A group as the gang sees it: told what becomes of the steps that it has submitted."""

    @property
    def id(self) -> int:
        """Its number in this process."""

    @property
    def in_flight(self) -> int:
        """Steps that were sent and have not ended."""

    @property
    def merging(self) -> bool:
        """Whether replicas wait for a merge function."""

    def done(self, worker: WorkerLink, serial: int, outcomes: list[tuple[Any, ...]]) -> None:
        """Replicas of a worker have done their part of a step.

        Args:
          worker: Link to the worker.
          serial: Number of the step.
          outcomes: One for each replica, as DONE carries them.
        """

    def merge_asked(self, serial: int, rank: int, request: Any) -> None:
        """A replica waits for a merge function.

        Args:
          serial: Number of the step.
          rank: Rank of the replica.
          request: The function and its arguments, pickled.
        """

    def worker_lost(self, worker: WorkerLink, end: WorkerEnd) -> None:
        """A worker is gone."""

    def look(self) -> None:
        """Heartbeats have come: ends merges that cannot happen."""

    def look_for_returned(self) -> None:
        """Notes whether missing workers are back; the watching thread's, now and then."""

    def close(self) -> None:
        """Nobody uses it any more."""
