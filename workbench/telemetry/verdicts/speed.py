"""What makes a run slow: late replicas, sending, steps that became slower, memory that fills, cores that are shared."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from statistics import median
from typing import Final

from workbench.telemetry.formatting import NOTHING, percent, rate_text, replicas_text, significant, size_text
from workbench.telemetry.snapshot import GroupView, Lateness, TableRow
from workbench.telemetry.verdicts.verdict import MIN_STEPS, Verdict
from workbench.telemetry.verdicts.words import count_text, evidence, sentence, time_text

_SENDING: Final = 0.4
_FULL: Final = 0.9
_MIN_STEP_US: Final = 1000.0
"""In shorter steps, nobody notices how the time is divided."""
_COMPUTING: Final = 0.5
_WAITING: Final = 0.2
_OFTEN: Final = 0.8
_SHORT_STEP_US: Final = 10_000.0
"""In shorter steps, occasional delays, which every process has, are a large part."""


def late(group: GroupView, *, explained: Collection[int | None]) -> Iterator[Verdict]:
    """Replicas that are late step after step, the costliest first.

    Args:
      group: The group that has the replicas.
      explained: Replicas whose lateness is explained already.
    """
    for each in group.lateness.late:
        if each.replica in explained:
            continue
        often = f"late in {each.steps} of {each.of_steps} steps, {percent(each.share)} of each step"
        waited = group.pace.waited_share
        yield Verdict(
            "warning",
            "late",
            sentence(f"replica {each.replica} makes everyone wait: {often}"),
            evidence(
                f"it computes {time_text(each.compute_us)} per step, the others {time_text(each.others_us)}",
                f"it comes {time_text(each.by_us)} late",
                "" if waited is None else f"the others wait {percent(waited)} of their time",
            ),
            "lateness",
            each.replica,
        )


def waiting(group: GroupView) -> str:
    """Why replicas wait a lot although no replica makes all others wait; "" if they wait little."""
    share, cores = group.pace.waited_share, group.told.contested_cores
    if share is None or share <= _WAITING:
        return ""
    if named := _often_late(group.lateness):
        return f"{named}, on {_cores(cores)} that {group.n} replicas share" if _is_crowded(group) else named
    nobody = "no replica holds up the others step after step"
    if _takes_turns(group):
        return f"{nobody}: they take turns on {_cores(cores)}"
    if group.pace.step_us < _SHORT_STEP_US:
        return f"{nobody}: in steps as short as {time_text(group.pace.step_us)}, small delays matter"
    return f"{nobody}: the last to arrive changes, see Lateness"


def _often_late(lateness: Lateness) -> str:
    """The replicas that are late in most steps, the costliest first, and by how much; "" if there is none."""
    often = [row for row, steps in enumerate(lateness.late_steps) if steps >= _OFTEN * len(lateness.steps)]
    by_us = {row: _usually_late_us(lateness, row) for row in often}
    often.sort(key=by_us.__getitem__, reverse=True)
    if not often:
        return ""
    who, by = replicas_text([lateness.replicas[row] for row in often]), time_text(by_us[often[0]])
    if len(often) > 1:
        return f"{who} are late in most steps, by up to {by}"
    return f"{who} is late in {lateness.late_steps[often[0]]} of {len(lateness.steps)} steps, by {by}"


def _usually_late_us(lateness: Lateness, row: int) -> float:
    """How much later than the median replica a row came, as the median over the steps where it has a record."""
    late = zip(lateness.late_us[row], lateness.median_us, strict=True)
    return median(late_us - median_us for late_us, median_us in late if late_us is not None)


def _cores(count: int) -> str:
    return "a core" if count == 1 else f"{count} cores"


def sending(group: GroupView, table: Collection[TableRow]) -> Iterator[Verdict]:
    """Moving data takes a large share of each step.

    If replicas share cores, this cannot be told from waiting for one.
    """
    share, step_us = group.pace.sent_share, group.pace.step_us
    if _is_crowded(group) or group.pace.steps < MIN_STEPS:
        return
    if share is None or share < _SENDING or share * step_us < _MIN_STEP_US:
        return
    rows = [row for row in table if row.group == group.group]
    largest = max(rows, key=lambda row: row.p50_us * row.samples, default=None)
    told = f"{time_text(share * step_us)} of {time_text(step_us)} per step"
    parts = [told]
    if largest is not None:
        parts.append(f"most by {largest.op} of {size_text(largest.size_bytes)} at {rate_text(largest.busbw)}")
        limit = largest.limit_percent
        parts.append(
            "limit not measured" if limit is None else f"{percent(limit / 100)} of the measured limit"
        )
    yield Verdict(
        "warning",
        "sending",
        sentence(f"sending takes {percent(share)} of each step"),
        evidence(*parts),
        "sweep",
    )


def slower(group: GroupView) -> Iterator[Verdict]:
    """Steps take longer than those before, which called the same collectives."""
    found = group.slowdown
    if found is None:
        return
    before, after = (significant(1e6 / each) for each in (found.before_us, found.after_us))
    grown = " to ".join(map(time_text, (found.grown_before_us, found.grown_after_us)))
    yield Verdict(
        "warning",
        "slower",
        sentence(f"steps became slower: {before} to {after} per second since step {found.step}"),
        evidence(f"{found.grown} grew most: {grown} per step"),
        "lanes",
        step=found.step,
    )


def memory(group: GroupView) -> Iterator[Verdict]:
    """The fullest memory, if it is nearly full."""
    found = group.told.memory
    if found is None or found.used_bytes < _FULL * found.limit_bytes:
        return
    used, limit = size_text(found.used_bytes), size_text(found.limit_bytes)
    growth = size_text(found.grown_bytes // found.steps) if found.steps and found.grown_bytes > 0 else NOTHING
    yield Verdict(
        "warning",
        "memory",
        sentence(f"memory of replica {found.replica} is nearly full: {used} of {limit}"),
        evidence(f"growth per step {growth}", f"over {count_text(found.steps, 'step')}"),
        "devices",
        found.replica,
    )


def sharing(group: GroupView) -> Iterator[Verdict]:
    """Replicas that compute most of the time, on fewer cores than there are replicas."""
    cores, share = group.told.cores, group.pace.compute_share
    if not _takes_turns(group) or group.pace.steps < MIN_STEPS:
        return
    if share is None or share < _COMPUTING or group.pace.step_us < _MIN_STEP_US:
        return
    replicas = "two replicas" if group.n == 2 else f"{group.n} replicas"
    shared = _cores(cores)
    speed = "half the speed" if group.n == 2 * cores else f"{percent(cores / group.n)} of the speed"
    yield Verdict(
        "warning",
        "sharing",
        sentence(f"{replicas} share {shared}: expect {speed}"),
        evidence(
            f"replicas compute {percent(share)} of each step, which takes {time_text(group.pace.step_us)}"
        ),
        "devices",
    )


def _is_crowded(group: GroupView) -> bool:
    """Whether replicas may have to wait for cores, as far as known."""
    return 0 < group.told.contested_cores < group.n


def _takes_turns(group: GroupView) -> bool:
    """Whether replicas take turns. Unknown for steps that the notebook never waits for: they may sleep."""
    return _is_crowded(group) and group.told.cores_used is not None
