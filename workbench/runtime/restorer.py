"""Restorer: restores values that were lost with all replicas of a strategy. Checkpoints implement it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from workbench import tree
from workbench.errors import WorkbenchError


class GoneBack(Protocol):
    """An iterator that went back to its position in a checkpoint and yields later elements again."""

    @property
    def is_behind(self) -> bool:
        """Whether it has yet to repeat elements that it yielded before."""

    def refusal(self, argument: Any) -> WorkbenchError | None:
        """The error if a step must not take `argument`, because the iterator will yield it again; else None."""


class Restorer(Protocol):
    """Restores state that no replica has any more, as `wb.CheckpointManager` does.

    Attributes:
      gone_back: The iterators that went back with the rest and have not caught up.
    """

    gone_back: Sequence[GoneBack]

    def restore_lost(self) -> str | None:
        """Restores all values that were saved last.

        Returns:
          The source, for messages; None if nothing was saved yet.
        """


def refuse_given_again(restorer: Restorer, given: Any) -> None:
    """Refuses elements that an iterator will yield again because it went back to a checkpoint.

    The replicas would use them twice, whichever call noticed the loss of all replicas.

    Args:
      restorer: The restorer that moved the iterators.
      given: The arguments of a step, or what to add to a variable.

    Raises:
      WorkbenchError: if there is such an element; see `GoneBack.refusal`.
    """
    if not restorer.gone_back:
        return
    behind = restorer.gone_back = [iterator for iterator in restorer.gone_back if iterator.is_behind]
    for leaf in tree.flatten(given)[0] if behind else ():
        for iterator in behind:
            if error := iterator.refusal(leaf):
                raise error
