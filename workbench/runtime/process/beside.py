"""Processes that work beside this one, for its heartbeats."""

from __future__ import annotations

import weakref
from typing import Final, NamedTuple, Protocol


class BesideStatus(NamedTuple):
    """Part of a heartbeat: a process that works beside the worker, such as the one that reads its input.

    Attributes:
      purpose: Its task, such as "input".
      pid: Its process id.
      state: State letter of the process ("R", "S", "T", ...), "" if the system does not report it.
      starts: How often it was started, including restarts after its end.
      replicas: The replicas that it works for.
      given_bytes: Number of bytes that they have received from it and its predecessors.
    """

    purpose: str
    pid: int
    state: str
    starts: int
    replicas: tuple[int, ...]
    given_bytes: int


class Beside(Protocol):
    """The owner of such a process."""

    def status(self) -> BesideStatus | None:
        """The status of the process; None if there is none. Any thread."""


_owners: Final[weakref.WeakSet[Beside]] = weakref.WeakSet()


def add(owner: Beside) -> None:
    """Includes the process of `owner` in heartbeats as long as `owner` exists."""
    _owners.add(owner)


def statuses() -> list[BesideStatus]:
    """The status of each existing process."""
    found = [owner.status() for owner in tuple(_owners)]
    return sorted(status for status in found if status is not None)
