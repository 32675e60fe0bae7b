"""Which batches of a drain have been folded already, so that one that comes twice counts once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

_MAX_AHEAD: Final = 64


@dataclass(slots=True)
class Source:
    """What is known of one drain.

    Attributes:
      dropped: Records that it has lost, by its newest batch.
      dropped_events: Events that it has lost, likewise.
      ended: What still comes of it is known from elsewhere.
    """

    dropped: int = 0
    dropped_events: int = 0
    ended: bool = False
    _next: int = 0  # every batch before this one has come or is given up
    _ahead: set[int] = field(default_factory=set)  # batches that came before an earlier one

    def is_new(self, batch: int) -> bool:
        """Whether batch number `batch` comes for the first time; marks it as seen."""
        if self.ended or batch < self._next or batch in self._ahead:
            return False
        self._ahead.add(batch)
        if len(self._ahead) > _MAX_AHEAD:
            self._next = min(self._ahead)  # earlier batches that are missing will not come any more
        while self._next in self._ahead:
            self._ahead.remove(self._next)
            self._next += 1
        return True
