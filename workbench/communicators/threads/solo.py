"""The link of the only replica of a group."""

from __future__ import annotations

import numpy as np

from workbench.communicators.core.failure import Failure
from workbench.communicators.core.link import Blocks
from workbench.communicators.core.position import Position
from workbench.communicators.core.result_pool import OrdinaryMemory


class SoloLink(OrdinaryMemory):
    """A `Link` without peers: every result is a copy of the input."""

    transport = "none"

    def __init__(self) -> None:
        super().__init__()
        self._failure: Failure | None = None

    def reduce(self, position: Position, flat: np.ndarray, *, shared: bool) -> np.ndarray:
        """Copies `flat`, because the group has no other replica."""
        self._check()
        total = self.results.take(flat.size, flat.dtype)
        np.copyto(total, flat)
        total.flags.writeable = not shared
        position.arrived()
        return total

    def exchange(self, position: Position, blocks: Blocks) -> Blocks:
        """Returns `blocks`."""
        self._check()
        position.arrived()
        return blocks

    def finish(self, position: Position) -> None:
        """Does nothing, because there are no peers."""

    def broken(self) -> Failure | None:
        """Why the group is broken, None if it is not."""
        return self._failure

    def fail(self, failure: Failure) -> None:
        """Breaks the group: its next collective raises."""
        self._failure = self._failure or failure

    def close(self) -> None:
        """Makes later collectives raise `StaleGeneration`."""
        self.fail(Failure("closed", "the communicator was closed"))

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure.error()
