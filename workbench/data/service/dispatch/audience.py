"""Which consumers read which job, as far as the running dispatcher knows. Its lock guards this."""

from __future__ import annotations

import time

from workbench.data.service.dispatch.state import Job
from workbench.data.service.server import Session


class Audience:
    """The consumers of each job, and since when a job has had none."""

    def __init__(self, jobs: list[str]) -> None:
        """Starts with `jobs` of an earlier dispatcher, which have no consumers yet."""
        self._consumers: dict[str, dict[str, Session]] = {}
        self._idle_since = dict.fromkeys(jobs, time.monotonic())

    def join(self, job: str, consumer: str, session: Session, index: int) -> None:
        """Adds a consumer of a job.

        Args:
          job: Id of the job.
          consumer: Id of the consumer.
          session: Its connection.
          index: Its number among those that read in rounds; -1 if it does not.
        """
        session.who, session.job, session.index = consumer, job, index
        self._consumers.setdefault(job, {})[consumer] = session
        self._idle_since.pop(job, None)

    def leave(self, job: Job | None, consumer: str, session: Session | None = None) -> None:
        """Removes a consumer that has ended, or whose connection `session` has ended; a reconnected one stays.

        Args:
          job: The job; None if it no longer exists.
          consumer: Id of the consumer.
          session: The connection that ended; None if the consumer itself ended.
        """
        if job is None:
            return
        readers = self._consumers.get(job.id, {})
        if session is None or readers.get(consumer) is session:
            readers.pop(consumer, None)
        if not readers:
            self._idle_since.setdefault(job.id, time.monotonic())

    def forget(self, job: str) -> None:
        """Removes a job that no longer exists."""
        self._idle_since.pop(job, None)
        self._consumers.pop(job, None)

    def idle(self, timeout_seconds: float) -> list[str]:
        """The jobs without a consumer for this time."""
        now = time.monotonic()
        return [job for job, since in self._idle_since.items() if now - since >= timeout_seconds]

    def count(self, job: str) -> int:
        """How many consumers read a job."""
        return len(self._consumers.get(job, ()))

    def other(self, job: str, index: int, consumer: str) -> bool:
        """Whether another consumer reads a job under this index.

        Args:
          job: Id of the job.
          index: Number among those that read in rounds; -1 for none.
          consumer: Id of the consumer that asks.
        """
        readers = self._consumers.get(job, {})
        return index >= 0 and any(each.index == index and who != consumer for who, each in readers.items())

    def missing(self, job: Job) -> list[int]:
        """The indices without a consumer, for a job that is read in rounds."""
        there = {session.index for session in self._consumers.get(job.id, {}).values()}
        return [index for index in range(job.num_consumers) if index not in there]
