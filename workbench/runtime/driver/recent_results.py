"""Small results of the newest steps, such as losses: their history, and since when one has been NaN."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any, Final

from workbench.errors import CaptureError
from workbench.runtime.comm.messages import PickledLeaf, unpickled
from workbench.runtime.driver.result_course import NumberLog, number_in
from workbench.runtime.driver.step import Step
from workbench.telemetry.feed.step_window import STEPS
from workbench.telemetry.told import ResultCourse

_MAX_STEPS: Final = 1024
_MAX_PLACES: Final = 16
_MAX_LEAVES: Final = 4
_MAX_BYTES: Final = 64
_MOST_KEPT_BYTES: Final = 1024 * 1024
_LEAF_BYTES: Final = 128
"""Overhead of a leaf beyond its value, in bytes."""


class RecentResults:
    """Numbers that the newest steps returned, by the place in the user's code that ran them.

    They arrive with the steps' completions, so keeping them costs only a reference. If the first result of a place has
    more than four leaves, or large ones, only as many steps are kept as fit in 1 MiB, and none if no leaf shows the
    progress of training.
    """

    def __init__(self) -> None:
        self._places: OrderedDict[tuple[str, str], deque[tuple[int, list[Any]]]] = OrderedDict()
        self._logs: dict[tuple[str, str], NumberLog] = {}

    def add(self, step: Step) -> None:
        """Adds a successful step."""
        place = step.site, step.name
        try:
            steps = self._places[place]
        except KeyError:
            leaves = step.leaves[0]
            small = _are_small(leaves)
            most = _MAX_STEPS if small else _kept_steps(leaves, len(step.leaves))
            number = number_in(step.structures[0], leaves) if most else None
            steps = self._places[place] = deque(maxlen=most if small or number else 0)
            if number:
                name, leaf = number
                self._logs[place] = NumberLog(name, step.name, leaf)
            if len(self._places) > _MAX_PLACES:
                oldest, _ = self._places.popitem(last=False)
                self._logs.pop(oldest, None)
        steps.append((step.number, step.leaves))  # a fifth of the cost of reading each step's results

    def course(self) -> ResultCourse | None:
        """The history of the number that shows the progress of training; None if no step has returned one.

        Of several numbers it takes the one called a loss, else the one that most of the newest steps have returned, so
        that an evaluation in between changes nothing. Any thread.
        """
        found = [
            (log, steps)
            for place, log in self._logs.copy().items()
            if (steps := list(self._places.get(place, ()))[-STEPS:])
        ]
        if not found:
            return None
        since = max(steps[-1][0] for _, steps in found) - STEPS
        log, steps = max(
            found,
            key=lambda each: (
                bool(each[0].name),
                sum(number > since for number, _ in each[1]),
                each[1][-1][0],
            ),
        )
        return log.course(steps)

    def course_of(self, place: tuple[str, str], leaf: int) -> ResultCourse | None:
        """The history of a number over the newest steps that returned it; None if they are not kept. Any thread.

        Args:
          place: The line in the user's code that ran the steps, and the name of the function.
          leaf: The number's leaf in its result.
        """
        steps = list(self._places.get(place, ()))[-STEPS:]
        if not steps:
            return None
        log = self._logs.get(place)
        if log is None or log.leaf != leaf:
            log = NumberLog("", place[1], leaf)
        return log.course(steps)

    def bad_since(self, step: Step, leaf: int, rank: int) -> tuple[int, bool]:
        """Since when a result has not been finite.

        Args:
          step: A step in which it is not finite.
          leaf: The leaf of the step's result.
          rank: The replica.

        Returns:
          The first step of the uninterrupted series up to `step` in which it was not finite, and whether it is known to
          have been finite in the step before.
        """
        since = step.number
        for number, leaves in reversed(self._places.get((step.site, step.name), ())):
            if number > step.number:
                continue
            held = leaves[rank][leaf] if leaves[rank] is not None and leaf < len(leaves[rank]) else None
            if type(held) not in (tuple, PickledLeaf):
                return since, False
            if is_finite(_value(held)):
                return since, number < step.number
            since = number
        return since, False


def is_finite(value: Any) -> bool:
    """Whether a small result contains neither NaN nor infinity; True for anything but numbers."""
    import numpy as np

    try:
        return bool(np.isfinite(value).all())
    except TypeError:
        return True


def _kept_steps(leaves: Any, replicas: int) -> int:
    """For how many steps there is room for results like these.

    A leaf that stays on its replica takes almost no memory here.
    """
    if not leaves or len(leaves) * _LEAF_BYTES * replicas > _MOST_KEPT_BYTES:
        return 0
    nbytes = sum(_LEAF_BYTES + _nbytes(leaf) for leaf in leaves) * replicas
    return min(_MAX_STEPS, _MOST_KEPT_BYTES // nbytes)


def _are_small(leaves: Any) -> bool:
    if not leaves or len(leaves) > _MAX_LEAVES:
        return False
    return all(
        type(leaf) in (tuple, PickledLeaf) and getattr(_value(leaf), "nbytes", 8) <= _MAX_BYTES
        for leaf in leaves
    )


def _nbytes(held: Any) -> int:
    """The bytes that a leaf's value takes in this process."""
    if type(held) is PickledLeaf:
        return len(held.data)
    value = held[0] if type(held) is tuple else None
    return len(value) if isinstance(value, str | bytes) else getattr(value, "nbytes", 8)


def _value(held: Any) -> Any:
    if type(held) is not PickledLeaf:
        return held[0]
    try:
        return unpickled(held.data, "a result")
    except CaptureError:
        return None  # reading the result raises
