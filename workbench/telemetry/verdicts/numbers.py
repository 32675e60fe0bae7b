"""What is wrong with the numbers: NaN and infinity, and copies that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from workbench.telemetry.feed.nan_onsets import onset_text
from workbench.telemetry.formatting import replicas_text
from workbench.telemetry.snapshot import EventItem, GroupView, Onset
from workbench.telemetry.verdicts.verdict import Verdict
from workbench.telemetry.verdicts.words import evidence, sentence, without_label


class Copies(NamedTuple):
    """The results of comparing copies.

    Attributes:
      differing: The newest event for each value whose copies differ.
      agreed: The newest event about copies that agree; None if there is none.
    """

    differing: tuple[EventItem, ...]
    agreed: EventItem | None


def copies(events: Sequence[EventItem]) -> Copies:
    """Reads the reports of `wb.inspect`, oldest first: "copies of w differ: …", "copies of w agree", "all copies …"."""
    differing: dict[str, EventItem] = {}
    agreed = None
    for event in events:
        if event.name == "copies_differ":
            differing[event.message.partition(" differ: ")[0]] = event
        elif event.name == "copies_agree":
            differing.pop(event.message.partition(" agree")[0], None)
            agreed = event
    return Copies(tuple(differing.values()), agreed)


def differing(events: Sequence[EventItem]) -> Iterator[Verdict]:
    """Copies that should be equal but differed when they were compared."""
    for event in copies(events).differing:
        what, _, how_far = event.message.partition("; ")
        yield Verdict(
            "error",
            "copies",
            sentence(what),
            evidence(how_far),
            "values",
            event.replica if event.replica >= 0 else None,
            event.step if event.step >= 0 else None,
        )


def not_finite(group: GroupView, events: Sequence[EventItem], last_step: int) -> Iterator[Verdict]:
    """NaN or infinity that still goes into collectives, that ended the newest step, or that `wb.inspect` found.

    Args:
      group: The group whose collectives these are.
      events: The group's entries in the log.
      last_step: The newest step that ran, as far as known.
    """
    onset, told = group.not_finite_now, _told(events, last_step)
    if onset is None and told is None:
        return
    what = _kind(told, given=onset is not None)
    if onset is None:
        assert told is not None
        yield _inspected(what, told, group.not_finite)
        return
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


def _inspected(what: str, told: EventItem, onset: Onset | None) -> Verdict:
    """What an inspection found. It may blame a collective that no longer receives such values."""
    message = without_label(told.message)
    replica = told.replica if told.replica >= 0 else None
    step = told.step if told.step >= 0 else None
    who = "" if replica is None else f"first on replica {replica}"
    if replica is None and step is None and onset is not None and onset_text(onset) in message:
        who, step = _origin(onset), onset.step
        replica = onset.replicas[0] if len(onset.replicas) == 1 else None
    since = "" if step is None else f" since step {step}"
    wording = f"{what}{since}{who and f', {who}'}" if since or who else f"{what} found by wb.inspect"
    return Verdict("error", "nan", sentence(wording), evidence(message), "values", replica, step)


def _told(events: Sequence[EventItem], last_step: int) -> EventItem | None:
    """The newest event about NaN or infinity, unless the problem is over."""
    newest = next((event for event in reversed(events) if event.name in ("nan", "inf", "finite")), None)
    if newest is None or newest.name == "finite":
        return None
    failed = newest.severity == "error"  # later steps have left this one behind
    return None if failed and newest.step < last_step else newest


def _kind(told: EventItem | None, *, given: bool) -> str:
    """NaN or infinity, as far as an inspection saw it; `given`: it went into a collective."""
    if told is not None and told.severity == "warning":
        if told.name == "nan":
            return "NaN"
        if not given:  # otherwise NaN may have entered elsewhere
            return "infinity"
    return "NaN or infinity"


def _origin(onset: Onset) -> str:
    if len(onset.replicas) == onset.n > 1:
        return f"on all {onset.n} replicas"
    first = "first " if onset.certain else ""
    return f"{first}on {replicas_text(onset.replicas)}"
