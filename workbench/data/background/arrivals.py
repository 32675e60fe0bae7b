"""The order in which results of parallel calls arrived, so that a restored iterator can repeat it.

A restored iterator skips as many elements as were given before. They are the same elements only if every stage repeats
its order. So each opening of a stage that may change the order records its turns. A turn is the index of the result
that the stage gave, among the results still due, in the order of the elements. After a restore, the stage follows the
recorded turns. The record takes less than half a byte per element, and grows until the pass ends.
"""

from __future__ import annotations

import base64
import zlib
from array import array
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

from workbench.data.tables import Run

_PACKED: Final = 8192  # turns per compressed block
_TYPE: Final = "I"


class Arrival:
    """The turns of one opening of a stage.

    Attributes:
      known: The turns to follow first; empty unless the pass was restored.
    """

    def __init__(self, known: array[int] | None = None) -> None:
        self.known = array(_TYPE) if known is None else known
        # A single attribute, so that `noted` can read it while another thread records turns.
        self._noted: tuple[tuple[bytes, ...], array[int]] = (), array(_TYPE)

    def note(self, turn: int) -> None:
        """Records a turn. Call it before giving the result, because an iterator may be saved at any moment."""
        packed, last = self._noted
        last.append(turn)
        if len(last) == _PACKED:
            self._noted = (*packed, zlib.compress(last.tobytes(), 1)), array(_TYPE)

    def noted(self) -> str:
        """All known turns, as text."""
        packed, last = self._noted
        noted = b"".join([*map(zlib.decompress, packed), last.tobytes()])
        # A stage that follows known turns records them again.
        turns = max(noted, self.known.tobytes(), key=len)
        return base64.b64encode(zlib.compress(turns)).decode() if turns else ""

    def in_known_order(self, runs: Iterator[Run]) -> Iterator[Run]:
        """Reorders runs, which come in the order of the elements: first by the known turns, then in their order."""
        held: deque[Run] = deque()
        for turn in self.known:
            while len(held) <= turn and (run := next(runs, None)) is not None:
                held.append(run)
            if turn >= len(held):  # there are fewer than before
                break
            self.note(turn)
            run = held[turn]
            del held[turn]
            yield run
        while (run := held.popleft() if held else next(runs, None)) is not None:
            self.note(0)
            yield run


class Arrivals:
    """The turns of all stages of one pass, by the place of each opening."""

    def __init__(self, before: Mapping[str, str] | None = None) -> None:
        """Starts a new pass, or a restored one, for which `before` is what `noted` returned."""
        self._before = before
        self._openings: dict[str, Arrival] = {}

    def of(self, place: tuple[int, ...], in_order: bool) -> Arrival | None:
        """The turns of an opening. None if it keeps the order.

        Args:
          place: Identifies the opening within the pass.
          in_order: Whether to keep the order. In a restored pass, an opening keeps it if it did before.
        """
        name = ".".join(map(str, place))
        if self._before is None:
            arrival = None if in_order else Arrival()
        else:
            arrival = Arrival(_turns(self._before[name])) if name in self._before else None
        if arrival is not None:
            self._openings[name] = arrival
        return arrival

    def check(self) -> None:
        """Checks the turns that the pass was restored with.

        Raises:
          ValueError: if they are damaged.
        """
        for turns in (self._before or {}).values():
            _turns(turns)

    def noted(self) -> dict[str, str]:
        """What a pass needs to continue where this one is."""
        noted = {name: arrival.noted() for name, arrival in self._openings.copy().items()}
        return {**(self._before or {}), **{name: turns for name, turns in noted.items() if turns}}


def _turns(text: str) -> array[int]:
    turns = array(_TYPE)
    try:
        turns.frombytes(zlib.decompress(base64.b64decode(text, validate=True)))
    except zlib.error as error:
        raise ValueError(f"the order of parallel calls cannot be read: {error}") from error
    return turns
