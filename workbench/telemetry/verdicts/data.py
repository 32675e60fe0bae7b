"""What is wrong with the input: replicas without data, and replicas that wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean, median
from typing import Final

from workbench.telemetry.formatting import percent, replicas_text
from workbench.telemetry.snapshot import GroupView
from workbench.telemetry.verdicts.verdict import Verdict
from workbench.telemetry.verdicts.words import count_text, evidence, sentence

_STARVING: Final = 0.2
_MIN_WAIT_US: Final = 1000.0
"""The shortest wait per element that counts.

Less is not noticeable, and the first of several replicas that share a reader always waits a little.
"""
_MORE: Final = 3.0
_EMPTY: Final = 4  # elements in a row; the last one of an epoch may well leave some replicas without any


def empty(group: GroupView) -> Iterator[Verdict]:
    """Replicas that have received empty batches for some time, while others received rows."""
    found = group.told.input
    if found is None or not sum(found.rows):
        return
    without = [replica for replica, times in enumerate(found.empty_for) if times >= _EMPTY]
    if not without:
        return
    rows, n = sum(found.rows), len(found.rows)
    few = rows < n
    reason = f"batches of {rows} for {n} replicas" if few else "its part of each batch is empty"
    gets = "gets" if len(without) == 1 else "get"
    yield Verdict(
        "error",
        "empty",
        sentence(f"{replicas_text(without)} {gets} no data: {reason}"),
        evidence(
            f"empty for {count_text(found.empty_for[without[0]], 'element')}",
            f"rows by replica {' '.join(map(str, found.rows[:16]))}{' …' if n > 16 else ''}",
            f"a batch of {n} or more helps" if few else "the view shows who reads what, and other policies",
        ),
        "dataset",
        without[0] if len(without) == 1 else None,
    )


def starved(group: GroupView) -> Iterator[Verdict]:
    """Replicas that wait for their batches, while most others do not."""
    for replica, share in _starving(group):
        others = [each for number, each in enumerate(_shares(group)) if number != replica]
        yield Verdict(
            "warning",
            "starved",
            sentence(f"input starves replica {replica}: {percent(share)} of its time"),
            evidence(
                f"it waits {percent(share)} of its time for batches, the others {percent(median(others))}",
                f"over {count_text(_elements(group), 'element')}",
            ),
            "input",
            replica,
        )


def everyone(group: GroupView) -> Iterator[Verdict]:
    """All replicas wait for their batches."""
    shares = _shares(group)
    if not shares or min(shares) < _least(group):
        return
    slowest = max(range(len(shares)), key=shares.__getitem__)
    yield Verdict(
        "warning",
        "input",
        sentence(f"everyone waits for data: {percent(fmean(shares))} of each step"),
        evidence(
            f"replica {slowest} waits longest, {percent(shares[slowest])} of its time",
            f"over {count_text(_elements(group), 'element')}",
        ),
        "input",
    )


def _starving(group: GroupView) -> list[tuple[int, float]]:
    """Replicas that wait much longer than most, and the share of their time, the longest first."""
    shares = _shares(group)
    if len(shares) < 2:
        return []
    least = max(_least(group), _MORE * sorted(shares)[(len(shares) - 1) // 2])
    found = [(replica, share) for replica, share in enumerate(shares) if share >= least]
    return sorted(found, key=lambda each: -each[1])


def _least(group: GroupView) -> float:
    """The share of its time from which a replica's waiting is worth mentioning."""
    found = group.told.input
    return _STARVING if found is None else max(_STARVING, _MIN_WAIT_US / max(1.0, found.element_us))


def _shares(group: GroupView) -> tuple[float, ...]:
    found = group.told.input
    return () if found is None or not _elements(group) else found.waited_shares


def _elements(group: GroupView) -> int:
    return 0 if group.told.input is None else group.told.input.elements
