"""Hold: keeps a sentence on the screen long enough to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from workbench.telemetry.verdicts.verdict import Verdict

HOLD_NS: Final = 3_000_000_000


class Hold:
    """The displayed verdict: another one replaces it after 3 seconds, an error at once.

    A verdict that is still true is shown with its newest figures.
    """

    def __init__(self) -> None:
        self._shown: Verdict | None = None
        self._since_ns = 0

    def shown(self, found: Sequence[Verdict], now_ns: int) -> Verdict:
        """The verdict to show.

        Args:
          found: The result of `verdicts`, which has at least one.
          now_ns: The time, by any monotonic clock.
        """
        first, before = found[0], self._shown
        if before is not None and _subject(first) == _subject(before):
            self._shown = first
            return first
        if before is None or first.severity == "error" or now_ns - self._since_ns >= HOLD_NS:
            self._shown, self._since_ns = first, now_ns
            return first
        self._shown = next((each for each in found if _subject(each) == _subject(before)), before)
        return self._shown


def _subject(verdict: Verdict) -> tuple[str, int | None]:
    return verdict.code, verdict.replica
