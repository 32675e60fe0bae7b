"""What was lost or failed, and what that means for the figures."""

from __future__ import annotations

from typing import Final, NamedTuple

from workbench.telemetry.snapshot import Counters

_KINDS: Final = (
    (
        "failed",
        "failed",
        "Collectives that ended in a mismatch, a passed deadline, an abort or an error.",
    ),
    (
        "incomplete",
        "incomplete",
        "Collectives that were given up on, as the record of some replica never came. They are in no figure here.",
    ),
    (
        "dropped",
        "records dropped",
        "Replicas made records faster than these were fetched, so the oldest went. The figures are of those that came; "
        "the job itself lost nothing. Fewer collectives make fewer records: one takes several arrays.",
    ),
    (
        "dropped_events",
        "events dropped",
        "Only the newest alerts and lines are kept here, and older ones went to make room. wb.record(path) writes all "
        "that arrive to a file.",
    ),
)


class Loss(NamedTuple):
    """Something that was lost or failed.

    Attributes:
      text: How much of what, such as "20 records dropped".
      meaning: Sentences on what that means, and what can be done. Views say the same (`collective_table.tsx`).
    """

    text: str
    meaning: str


def losses(counters: Counters) -> list[Loss]:
    """One for each kind that occurred."""
    counted = ((getattr(counters, field), what, meaning) for field, what, meaning in _KINDS)
    return [Loss(f"{count:,} {what}", meaning) for count, what, meaning in counted if count]
