"""Restorer: restores values that were lost with all replicas of a strategy; the base of checkpoints."""

from __future__ import annotations

from typing import Protocol


class Restorer(Protocol):
    """Where state comes from again that no replica has any more, as `wb.CheckpointManager`."""

    def restore_lost(self) -> str | None:
        """Gives everything the value that it had when it was saved last.

        Returns:
          From where, for people; None if nothing was saved yet.
        """
