"""Restorer: restores values that were lost with all replicas of a strategy; the base of checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from workbench.errors import WorkbenchError


class GoneBack(Protocol):
    """An iterator that went back to where it was in a checkpoint: what it gave since then comes again."""

    @property
    def is_behind(self) -> bool:
        """Whether it has still to give an element that it gave before."""

    def refusal(self, argument: Any) -> WorkbenchError | None:
        """Why a step must not take `argument`: the iterator gave it before, and gives it again; None if it may."""


class Restorer(Protocol):
    """Where state comes from again that no replica has any more, as `wb.CheckpointManager`.

    Attributes:
      gone_back: The iterators that went back with the rest, as far as they are behind.
    """

    gone_back: Sequence[GoneBack]

    def restore_lost(self) -> str | None:
        """Gives everything the value that it had when it was saved last.

        Returns:
          From where, for people; None if nothing was saved yet.
        """
