"""The seam below a communicator: how the participants of one level (threads, processes, hosts) reach each other.

A link is one participant's end. Levels nest: the threads of a process meet, then one of them speaks for the process on
an outer link; likewise the processes of a host. Results always cover the whole group.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from workbench.communicators.core.failure import Failure
from workbench.communicators.core.position import Position

Blocks = dict[int, np.ndarray]
"""Byte blocks by number: a rank's data, or, under a negative number, a description of the data."""


class Link(Protocol):
    """One participant's end of a level. One thread uses it at a time; any thread may call `fail` and `broken`.

    Every method that communicates compares fingerprints before any payload and raises `CollectiveMismatch`,
    `CollectiveAborted`, `ReplicaLost` or `DeadlineExceededError`; after that the link stays broken.
    """

    @property
    def transport(self) -> str:
        """The levels that it uses, innermost first: "threads", "shared memory", "tcp", joined by " + "."""

    def reduce(self, position: Position, flat: np.ndarray, *, shared: bool) -> np.ndarray:
        """Combines `flat` over the group by `position.call.redop`.

        Args:
          position: The caller, its call and the deadline.
          flat: Contiguous, one-dimensional, in the dtype to accumulate in; only read.
          shared: Whether replicas of a host may get the same memory, which is then read-only.

        Returns:
          An array like `flat`, owned by the caller or shared.
        """

    def exchange(self, position: Position, blocks: Blocks) -> Blocks:
        """Sends every participant's blocks to all others.

        Args:
          position: The caller, its call and the deadline.
          blocks: Contiguous one-dimensional uint8 arrays; only read.

        Returns:
          Blocks of the whole group, to be copied out before the next call; only read.
        """

    def scratch(self, nbytes: int) -> np.ndarray:
        """Bytes that `reduce` reads without copying; valid until the next call of `scratch`."""

    def empty(self, nbytes: int) -> np.ndarray:
        """Bytes that `reduce` reads without copying, for as long as the caller keeps them."""

    def give_back(self, before: float) -> None:
        """Frees memory that was last used before `before`, a `time.monotonic` time. Any thread."""

    def finish(self, position: Position) -> None:
        """Informs peers that wait, or will wait, in this step that the participant has left it."""

    def broken(self) -> Failure | None:
        """Why the level, or one outside it, is broken; None if it is not known to be. Any thread."""

    def fail(self, failure: Failure) -> None:
        """Breaks the level and wakes all waiters, here and elsewhere; the first record wins. Any thread."""

    def close(self) -> None:
        """Frees memory, descriptors and threads. Peers that still wait get `StaleGeneration`."""
