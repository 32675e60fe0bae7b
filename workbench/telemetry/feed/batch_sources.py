"""Tracks which batches of a drain were folded, so that a repeated one counts once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

_MAX_AHEAD: Final = 64


@dataclass(slots=True)
class Source:
    """What is known about one drain.

    Attributes:
      dropped: Records that it lost, according to its newest batch.
      dropped_events: Events that it lost, likewise.
      ended: Whether later batches are ignored, because their content is already known.
    """

    dropped: int = 0
    dropped_events: int = 0
    ended: bool = False
    _next: int = 0  # every batch before this one has arrived or was given up
    _ahead: set[int] = field(default_factory=set)  # batches that arrived before an earlier one

    def is_new(self, batch: int) -> bool:
        """Whether batch number `batch` is new; marks it as seen."""
        if self.ended or batch < self._next or batch in self._ahead:
            return False
        self._ahead.add(batch)
        if len(self._ahead) > _MAX_AHEAD:
            self._next = min(self._ahead)  # missing earlier batches will not arrive any more
        while self._next in self._ahead:
            self._ahead.remove(self._next)
            self._next += 1
        return True
