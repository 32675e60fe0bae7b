"""Processes that work beside this one, as its heartbeats tell of them."""

from __future__ import annotations

import weakref
from typing import Final, Protocol

from workbench.runtime.comm.messages import BesideStatus


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
