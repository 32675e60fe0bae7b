"""In which order results of parallel calls came, where a stage may change the order, so that they can come so again.

An iterator that is restored leaves out as many elements as were given. That they are the same ones takes the same order
in every stage. Each opening of a stage that may change the order notes its turns: of all that it could give next, in
the order of the elements, the number of what it gave. After a restore it follows what was noted.
"""

from __future__ import annotations

import base64
import zlib
from array import array
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

from workbench.data.tables import Run

_PACKED: Final = 8192  # turns that are compressed together
_TYPE: Final = "I"


class Arrival:
    """The turns of one opening of a stage.

    Attributes:
      known: The turns that it follows first; none in a pass that is not restored.
    """

    def __init__(self, known: array[int] | None = None) -> None:
        self.known = array(_TYPE) if known is None else known
        # One attribute, so that `noted` may be asked while another thread takes notes.
        self._noted: tuple[tuple[bytes, ...], array[int]] = (), array(_TYPE)

    def note(self, turn: int) -> None:
        """Notes a turn; before that is given which has it, as an iterator may be saved at any moment."""
        packed, last = self._noted
        last.append(turn)
        if len(last) == _PACKED:
            self._noted = (*packed, zlib.compress(last.tobytes(), 1)), array(_TYPE)

    def noted(self) -> str:
        """All turns that are known, as a text."""
        packed, last = self._noted
        noted = b"".join([*map(zlib.decompress, packed), last.tobytes()])
        turns = max(noted, self.known.tobytes(), key=len)  # while it follows, it notes the same again
        return base64.b64encode(zlib.compress(turns)).decode() if turns else ""

    def in_known_order(self, runs: Iterator[Run]) -> Iterator[Run]:
        """The runs, which come in the order of the elements, first as they came before, then in their order."""
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
    """The turns of all stages of one pass, each opening by its place."""

    def __init__(self, before: Mapping[str, str] | None = None) -> None:
        """Those of a new pass, or of one that is restored: then `before` is what `noted` gave."""
        self._before = before
        self._openings: dict[str, Arrival] = {}

    def of(self, place: tuple[int, ...], in_order: bool) -> Arrival | None:
        """The turns of an opening; None if it keeps the order.

        Args:
          place: Tells the openings of a pass apart.
          in_order: Whether it should keep the order. In a pass that is restored, it does if it did before.
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
        """Refuses damaged notes.

        Raises:
          ValueError: for these.
        """
        for turns in (self._before or {}).values():
            _turns(turns)

    def noted(self) -> dict[str, str]:
        """What a pass has to know that goes on where this one is."""
        noted = {name: arrival.noted() for name, arrival in self._openings.copy().items()}
        return {**(self._before or {}), **{name: turns for name, turns in noted.items() if turns}}


def _turns(text: str) -> array[int]:
    turns = array(_TYPE)
    try:
        turns.frombytes(zlib.decompress(base64.b64decode(text, validate=True)))
    except zlib.error as error:
        raise ValueError(f"the order of parallel calls cannot be read: {error}") from error
    return turns
