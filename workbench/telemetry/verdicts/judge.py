"""Judges a run: all statements about it, the most important first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from workbench.telemetry.formatting import percent
from workbench.telemetry.snapshot import EventItem, GroupView, Snapshot
from workbench.telemetry.verdicts import data, failures, numbers, speed
from workbench.telemetry.verdicts.verdict import MIN_STEPS, Verdict
from workbench.telemetry.verdicts.words import evidence, sentence, time_text

PRIORITY: Final = (
    "gone",
    "stuck",
    "mismatch",
    "nan",
    "copies",
    "failed",
    "empty",
    "starved",
    "late",
    "input",
    "sending",
    "slower",
    "memory",
    "sharing",
    "good",
    "watching",
)
"""Codes of verdicts, the most important first."""

_TOGETHER_NS: Final = 10_000_000_000
"""A strategy that has been idle for this much longer than another one has ended: its state is outdated."""


def verdicts(snapshot: Snapshot) -> tuple[Verdict, ...]:
    """All statements about a run, in the order of `PRIORITY`, at least one.

    The first is the one to show. This is a pure function of the snapshot, so recorded runs are judged like live ones.

    Args:
      snapshot: The result of `Feed.snapshot` or `Run.snapshot`.
    """
    groups = _current(snapshot.groups)
    found = [verdict for group in groups for verdict in _of_group(group, snapshot)]
    found += _unrecorded(snapshot)
    if not found:
        found.append(_healthy(groups, snapshot))
    return tuple(sorted(found, key=lambda verdict: PRIORITY.index(verdict.code)))


def _current(groups: tuple[GroupView, ...]) -> tuple[GroupView, ...]:
    newest = max((group.pace.end_ns for group in groups), default=0)
    return tuple(
        group
        for number, group in enumerate(groups)
        if number == 0 or group.stuck is not None or group.pace.end_ns >= newest - _TOGETHER_NS
    )


def _of_group(group: GroupView, snapshot: Snapshot) -> Iterator[Verdict]:
    told = _told(group, snapshot)
    last = max(group.pace.last_step, _recovered(group.group, snapshot))
    yield from failures.gone(group, told)
    yield from failures.stuck(group, last)
    yield from failures.failed(told, last)
    yield from numbers.not_finite(group, told, last)
    yield from numbers.differing(told)
    yield from data.empty(group)
    starved = tuple(data.starved(group))
    yield from starved
    yield from speed.late(group, explained=[verdict.replica for verdict in starved])
    yield from data.everyone(group)
    yield from speed.sending(group, snapshot.table)
    yield from speed.slower(group)
    yield from speed.memory(group)
    yield from speed.sharing(group)


def _told(group: GroupView, snapshot: Snapshot) -> list[EventItem]:
    """The log's entries about the group, from the generation that recorded last onwards.

    A newer generation has events before records: a step may fail before its replicas meet.
    """
    return [
        event
        for event in snapshot.events
        if event.is_of(group.group, group.generation)
        or (event.group == group.group and event.generation > group.generation)
    ]


def _recovered(group: str, snapshot: Snapshot) -> int:
    """The newest step known to have succeeded after a failed one; -1 if there is none."""
    events = snapshot.events
    steps = (event.step for event in events if event.name == "step_succeeded" and event.group == group)
    return max(steps, default=-1)


def _unrecorded(snapshot: Snapshot) -> Iterator[Verdict]:
    """Failed steps of strategies whose replicas have not met yet, which only the log knows."""
    newest = max((group.pace.end_ns for group in snapshot.groups), default=0)
    met = {"", *(group.group for group in snapshot.groups)}
    by_group: dict[str, list[EventItem]] = {}
    for event in snapshot.events:
        if event.group not in met and event.t_ns >= newest - _TOGETHER_NS:
            by_group.setdefault(event.group, []).append(event)
    for group, events in by_group.items():
        yield from failures.failed(events, _recovered(group, snapshot))


def _healthy(groups: tuple[GroupView, ...], snapshot: Snapshot) -> Verdict:
    """Says that nothing is wrong, or that too little was seen: about the strategy with enough steps that ran last."""
    steps = max((group.pace.steps for group in groups), default=0)
    if steps < MIN_STEPS:
        told = "" if steps else "no collective was recorded yet"
        wording = sentence(f"Watching: {steps} of {MIN_STEPS} steps")
        return Verdict("watching", "watching", wording, evidence(told), "lanes")
    seen = [group for group in groups if group.pace.steps >= MIN_STEPS]
    group = max(seen, key=lambda group: group.pace.end_ns)
    pace, agreed = group.pace, numbers.copies(_told(group, snapshot)).agreed
    finite = "no NaN" if pace.read_share == 1 else f"no NaN in {percent(pace.read_share)}"
    parts = (
        "" if agreed is None else agreed.message,
        finite if pace.read_share else "",
        "" if pace.waited_share is None else f"{percent(pace.waited_share)} waited",
    )
    wording = ", ".join(filter(None, parts))
    compared = "" if agreed is None else agreed.message
    if agreed is not None and agreed.step >= 0:
        compared += f" after step {agreed.step}"
    told = evidence(
        speed.waiting(group),
        compared,
        f"{percent(pace.read_share)} of what replicas passed to collectives was checked",
        f"the newest {pace.steps} steps take {time_text(pace.step_us)} each (median)",
    )
    not_yet = "; copies not compared yet" if agreed is None else ""
    return Verdict("good", "good", sentence(f"{wording}{not_yet}"), told, "lanes")
