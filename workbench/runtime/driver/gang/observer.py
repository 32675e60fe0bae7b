"""A group from the gang's point of view."""

from __future__ import annotations

from typing import Any, Protocol

from workbench.runtime.deploy.worker_link import WorkerEnd, WorkerLink


class Observer(Protocol):
    """A group from the gang's point of view: it receives the events of the steps that it has submitted."""

    @property
    def id(self) -> int:
        """The number of the group in this process."""

    @property
    def in_flight(self) -> int:
        """Number of steps that were sent and have not ended."""

    @property
    def merging(self) -> bool:
        """Whether replicas wait for a merge function."""

    def done(self, worker: WorkerLink, serial: int, outcomes: list[tuple[Any, ...]]) -> None:
        """Called when replicas of a worker have completed their part of a step.

        Args:
          worker: Link to the worker.
          serial: Number of the step.
          outcomes: One per replica, in the form of DONE.
        """

    def merge_asked(self, serial: int, rank: int, request: Any) -> None:
        """Called when a replica waits for a merge function.

        Args:
          serial: Number of the step.
          rank: Rank of the replica.
          request: The function and its arguments, pickled.
        """

    def worker_lost(self, worker: WorkerLink, end: WorkerEnd) -> None:
        """Called when a worker is gone."""

    def look(self) -> None:
        """Ends merges that heartbeats show to be impossible."""

    def look_for_returned(self) -> None:
        """Notes whether missing workers are back; the watching thread calls it now and then."""

    def close(self) -> None:
        """Releases the group, which is not used any more."""
