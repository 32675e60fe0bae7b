"""Who is late: the replica × step heat map and the rule that calls a replica a straggler."""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import numpy as np

from workbench.telemetry.feed.pace import computing_ns, waited_shares
from workbench.telemetry.feed.step_window import StepWindow
from workbench.telemetry.formatting import percent
from workbench.telemetry.snapshot import Late, Lateness

MIN_STEPS: Final = 20
_RATIO: Final = 1.5
_MIN_SHARE: Final = 0.1
_MIN_LATE_NS: Final = 250_000
_OFTEN: Final = 0.8
_MIN_LATE_OF_STEP: Final = 0.05
_CROWDED_LATE_OF_STEP: Final = 0.6
_MOST_NAMED: Final = 4
_CHANCE: Final = 1e-3
"""The probability that any replica is named although all are late only by chance."""


def lateness(window: StepWindow | None, replicas: np.ndarray, cores: int = 0) -> Lateness:
    """The heat map over the newest steps.

    A replica is a straggler if, over at least 20 steps,

    * it is later than the median replica in most steps of each quarter, in at least four fifths of all steps, and in so
      many that this would happen by chance in only one of a thousand groups: a machine's load also comes and goes;
    * the median of that lateness is above the clock error, at least 250 µs a step, and at least a twentieth of a step:
      tiny steps always have a late replica, which cannot be avoided. If replicas share cores, one always comes last, so
      it must be three fifths of a step;
    * the others lose at least a tenth of their time in collectives to waiting.

    A step is slow for everybody if its average lateness exceeds 1.5 × that of all steps, and by as much as above, while
    no replica stands out in it.

    Args:
      window: The newest steps of one group; None without records.
      replicas: The replicas to show, sorted; shape `(rows,)`.
      cores: The total number of cores of the group's replicas; 0 if unknown.
    """
    if window is None:
        return Lateness()
    everyone, steps, late, step_ns = window.replicas, window.steps, window.late_ns, window.step_ns
    records = window.records
    shown = np.isin(everyone, replicas)
    cells = np.where(window.known, np.round(late / 1000, 3), -1)[shown]
    spent = np.maximum(records["t_end_ns"] - records["t_enter_ns"], 0).sum()
    waited = (records["ready_ns"] - records["t_enter_ns"] - records["clock_offset_ns"]).sum()
    matters = len(everyone) > 1 and len(steps) >= MIN_STEPS and waited >= _MIN_SHARE * spent
    crowded = 0 < cores < len(everyone)
    enough = max(window.noise_ns, _MIN_LATE_NS, _MIN_LATE_OF_STEP * step_ns)
    much = max(enough, _CROWDED_LATE_OF_STEP * step_ns) if crowded else enough
    named = _stragglers(late, much) if matters else {}
    stragglers = {int(everyone[index]): late_ns for index, late_ns in named.items()}
    clear = max(window.noise_ns, _MIN_LATE_OF_STEP * step_ns)
    return Lateness(
        replicas=tuple(everyone[shown].tolist()),
        steps=tuple(steps.tolist()),
        late_us=tuple(tuple(None if x < 0 else x for x in line) for line in cells.tolist()),
        stragglers=tuple(stragglers),
        slow_steps=tuple(steps[_slow_steps(late, enough)].tolist()) if matters else (),
        text=_text(stragglers, step_ns, _sharing(len(everyone), cores) if crowded else ""),
        late=_late(window, named, clear) if named else (),
        late_steps=tuple((_excess(late) > clear).sum(axis=1)[shown].tolist()),
        enough_us=round(clear / 1000, 3),
        waited_shares=tuple(share for share, row in zip(waited_shares(window), shown, strict=True) if row),
        median_us=tuple(np.round((late - _excess(late))[0] / 1000, 3).tolist()),
    )


def _late(window: StepWindow, named: dict[int, float], clear_ns: float) -> tuple[Late, ...]:
    """The stragglers, the costliest first."""
    compute = computing_ns(window)
    often = (_excess(window.late_ns) > clear_ns).sum(axis=1)
    return tuple(
        Late(
            replica=int(window.replicas[index]),
            steps=int(often[index]),
            of_steps=len(window.steps),
            by_us=late_ns / 1000,
            share=min(1.0, late_ns / window.step_ns),
            compute_us=float(compute[index]) / 1000,
            others_us=float(np.median(np.delete(compute, index))) / 1000,
        )
        for index, late_ns in sorted(named.items(), key=lambda item: -item[1])
    )


def _sharing(replicas: int, cores: int) -> str:
    return f"{replicas} replicas share {'a core' if cores == 1 else f'{cores} cores'}"


def _text(stragglers: dict[int, float], step_ns: float, crowded: str) -> str:
    """Which replicas are late, by how much and what share of a step, and whether there are too few cores."""
    named = [
        f"replica {replica}, by {_milliseconds(late_ns)} ms a step ({percent(min(1, late_ns / step_ns))})"
        for replica, late_ns in list(stragglers.items())[:_MOST_NAMED]
    ]
    if more := len(stragglers) - len(named):
        named.append(f"and {more} more")
    parts = [f"late step after step: {'; '.join(named)}" if named else "", crowded]
    return "; ".join(part for part in parts if part)


def _milliseconds(ns: float) -> str:
    """Rounds to two digits, and never prints 1e+02.

    >>> _milliseconds(104_000_000.0), _milliseconds(4_040_000.0)
    ('104', '4')
    """
    return f"{ns / 1e6:.0f}" if ns >= 1e7 else f"{ns / 1e6:.2g}"


def _stragglers(late: np.ndarray, enough: float) -> dict[int, float]:
    """Indices of rows that stand out, and their ns per step; `late` has shape `(replicas, steps)`, ns."""
    replicas, steps = late.shape
    excess = _excess(late)
    above = excess > enough / 2
    often = above.sum(axis=1) >= max(_more_than_chance(steps, replicas), _OFTEN * steps)
    throughout = np.all([part.mean(axis=1) > 0.5 for part in np.array_split(above, 4, axis=1)], axis=0)
    by = np.median(excess, axis=1)
    return {int(index): float(by[index]) for index in np.flatnonzero(often & throughout & (by > enough))}


def _excess(late: np.ndarray) -> np.ndarray:
    """How much later each replica came than the median one; with two replicas, than the earlier one."""
    middle = (len(late) - 1) // 2
    excess: np.ndarray = late - np.partition(late, middle, axis=0)[middle]
    return excess


@cache
def _more_than_chance(steps: int, replicas: int) -> int:
    """In how many steps a replica must be late to be named, if being late by chance has probability one half."""
    tail, least = 0, steps
    while least >= 0 and (tail := tail + math.comb(steps, least)) * replicas <= _CHANCE * 2**steps:
        least -= 1
    return least + 1


def _slow_steps(late: np.ndarray, enough: float) -> np.ndarray:
    """Indices of columns in which all rows are late; `late` has shape `(replicas, steps)`, ns."""
    if len(late) < 3:
        return np.zeros(0, np.int64)
    average = late.mean(axis=0)
    alike = late.max(axis=0) <= _RATIO * average
    return np.flatnonzero((average > _RATIO * average.mean()) & (average > average.mean() + enough) & alike)
