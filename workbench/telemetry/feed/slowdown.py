"""Whether steps became and stayed slower, since when, and which part grew."""

from __future__ import annotations

from typing import Final

import numpy as np

from workbench.telemetry.feed.history import numbered
from workbench.telemetry.feed.step_window import steps_took_ns
from workbench.telemetry.snapshot import Slowdown
from workbench.telemetry.told import SentSteps

_BLOCK: Final = 10
_BEFORE: Final = 2  # blocks after the first, in which programs warm up
_AFTER: Final = 4
_RATIO: Final = 1.5
_MIN_NS: Final = 500_000


def slowdown(collectives: np.ndarray, sent: SentSteps | None) -> Slowdown | None:
    """Since when steps take longer than before; None if they do not.

    It compares steps that call the same collectives, by the medians of blocks of ten. Steps have become slower if each
    later block, at least four, takes 1.5 × as long as each earlier one, and half a millisecond longer.

    Args:
      collectives: Rows of `history.COLLECTIVE` of one group and generation, those of the user, oldest first.
      sent: When its steps were sent; None if unknown.
    """
    if len(collectives) < _BLOCK * (1 + _BEFORE + _AFTER):
        return None
    steps, column = numbered(collectives["step"])
    count = np.bincount(column)
    begins = np.full(len(steps), np.iinfo(np.int64).max)
    np.minimum.at(begins, column, collectives["enter_ns"])
    length = steps_took_ns(begins, steps, sent)
    kinds = [count, *(np.bincount(column, weights=collectives[name]) for name in ("bytes", "op", "count"))]
    alike = np.all([kind == kind[-1] for kind in kinds], axis=0)
    # The last step has not ended yet. Takes the newest of the others that all call the same collectives.
    first = int(np.flatnonzero(~alike)[-1]) + 1 if not alike.all() else 0
    length = length[first:]
    blocks = len(length) // _BLOCK
    if blocks < 1 + _BEFORE + _AFTER:
        return None
    begin = len(length) - blocks * _BLOCK
    median = np.median(length[begin:].reshape(blocks, _BLOCK), axis=1)
    slowest_before = np.maximum.accumulate(median[1:])[:-1]  # for blocks 1 to i
    fastest_after = np.minimum.accumulate(median[::-1])[::-1][2:]  # for blocks i + 1 to the last
    ratio = fastest_after / np.maximum(slowest_before, 1)
    allowed = slice(_BEFORE - 1, blocks - 1 - _AFTER)
    if not len(ratio[allowed]):
        return None
    best = int(ratio[allowed].argmax()) + _BEFORE - 1
    if ratio[best] < _RATIO or fastest_after[best] - slowest_before[best] < _MIN_NS:
        return None
    split = _exactly(length, begin + (best + 2) * _BLOCK, (slowest_before[best] * fastest_after[best]) ** 0.5)
    before, after = slice(begin + _BLOCK, split), slice(split, None)
    waits = np.bincount(column, weights=collectives["wait_ns"] / np.maximum(1, collectives["n"] - 1))
    sends = np.bincount(column, weights=np.maximum(collectives["end_ns"] - collectives["ready_ns"], 0))
    parts = {"waiting": waits[first:-1], "sending": sends[first:-1]}
    parts["computing"] = np.maximum(length - parts["waiting"] - parts["sending"], 0)
    medians = {
        name: (float(np.median(part[before])), float(np.median(part[after]))) for name, part in parts.items()
    }
    grown = max(medians, key=lambda name: medians[name][1] - medians[name][0])
    return Slowdown(
        step=int(steps[first + split]),
        before_us=float(np.median(length[before])) / 1000,
        after_us=float(np.median(length[after])) / 1000,
        grown=grown,
        grown_before_us=medians[grown][0] / 1000,
        grown_after_us=medians[grown][1] / 1000,
    )


def _exactly(length: np.ndarray, about: int, threshold: float) -> int:
    """The two steps near a block border between which times cross the threshold, with the fewest on the wrong side."""
    first = max(0, about - _BLOCK)
    slow = length[first : about + _BLOCK] > threshold
    wrong = np.append(0, np.cumsum(slow)) + np.append(np.cumsum(~slow[::-1])[::-1], 0)
    return first + int(wrong.argmin())
