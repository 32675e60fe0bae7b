"""Processes that work beside this one, as its heartbeats report them."""

from __future__ import annotations

import weakref
from typing import Final, NamedTuple, Protocol


class BesideStatus(NamedTuple):
    """Of a heartbeat: a process that works beside the worker, such as the one that reads its input.

    Attributes:
      purpose: What it does, such as "input".
      pid: Its process.
      state: State letter of that ("R", "S", "T", ...), "" where the system does not tell.
      starts: How often one was started: each time after the one before has ended.
      replicas: Those that it works for.
      given_bytes: What they have got of it, and of those before it.
    """

    purpose: str
    pid: int
    state: str
    starts: int
    replicas: tuple[int, ...]
    given_bytes: int


class Beside(Protocol):
    """Owns such a process."""

    def status(self) -> BesideStatus | None:
        """How it is; None while there is none. Any thread."""


_owners: Final[weakref.WeakSet[Beside]] = weakref.WeakSet()


def add(owner: Beside) -> None:
    """Has heartbeats tell of what `owner` has, as long as it lives."""
    _owners.add(owner)


def statuses() -> list[BesideStatus]:
    """One for each process that is there."""
    found = [owner.status() for owner in tuple(_owners)]
    return sorted(status for status in found if status is not None)
