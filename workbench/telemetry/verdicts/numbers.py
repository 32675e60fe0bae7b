"""What is wrong with the numbers: NaN and infinity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.telemetry.feed.nan_onsets import onset_text
from workbench.telemetry.snapshot import EventItem, GroupView, Onset
from workbench.telemetry.verdicts.verdict import Verdict
from workbench.telemetry.verdicts.words import evidence, replicas_text, sentence


def not_finite(group: GroupView, events: Sequence[EventItem]) -> Iterator[Verdict]:
    """NaN or infinity that still goes into collectives; which of both records do not tell."""
    onset = group.not_finite_now
    if onset is None:
        return
    named = {event.name for event in events if event.name in ("nan", "inf")}
    what = "NaN" if "nan" in named else "infinity" if "inf" in named else "NaN or infinity"
    who, since = _origin(onset), f"since step {onset.step}{'' if onset.certain else ' at the latest'}"
    site = f" at {onset.site}" if onset.site else ""
    yield Verdict(
        "error",
        "nan",
        sentence(
            f"{what} {since}, {who} in {onset.op}{site}",
            f"{what} {since}, {who} in {onset.op}",
            f"{what} {since}, {who}",
        ),
        evidence(onset_text(onset), f"the newest step with it is {onset.last_step}"),
        "values",
        onset.replicas[0] if len(onset.replicas) == 1 else None,
        onset.step,
    )


def _origin(onset: Onset) -> str:
    if len(onset.replicas) == onset.n > 1:
        return f"on all {onset.n} replicas"
    first = "first " if onset.certain else ""
    return f"{first}on {replicas_text(onset.replicas)}"
