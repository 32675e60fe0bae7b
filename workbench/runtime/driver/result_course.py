"""The history of a number that steps return, such as a loss, from their small results."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from workbench.telemetry.feed.step_window import STEPS
from workbench.telemetry.told import ResultCourse

_MOST_LINES: Final = 16
"""With more replicas, only their spread is shown."""
_MAX_NAME: Final = 40


def number_in(structure: Any, leaves: Sequence[Any]) -> tuple[str, int] | None:
    """Finds the number in a step's result that shows the progress of training.

    Args:
      structure: The structure of the result.
      leaves: Its leaves, in the form of DONE.

    Returns:
      The key and the leaf of the first number with "loss" in its key; else "" and the leaf of the only number; else
      None.
    """
    for leaf, path in enumerate(structure.accessors()):
        key = _key(path[-1]) if path else ""
        if "loss" in key.lower() and _is_number(leaves[leaf]):
            return key[:_MAX_NAME], leaf
    numbers = [leaf for leaf, held in enumerate(leaves) if _is_number(held)]
    return ("", numbers[0]) if len(numbers) == 1 else None


class NumberLog:
    """One number of the newest steps, by replica. Any thread; the lock is held only for one call."""

    def __init__(self, name: str, function: str, leaf: int) -> None:
        self.name = name
        self.leaf = leaf
        self._function = function
        self._lock = threading.Lock()
        self._rows: deque[tuple[int, np.ndarray[Any, Any]]] = deque(maxlen=STEPS)
        self._newest: Any = None
        self._course: ResultCourse | None = None

    def course(self, steps: Sequence[tuple[int, list[Any]]]) -> ResultCourse:
        """The history up to the newest of these steps; reads only those that are new.

        Args:
          steps: (number, leaves by rank) of at least one step, oldest first.
        """
        with self._lock:
            fresh = []
            for number, leaves in reversed(steps[-STEPS:]):
                if leaves is self._newest:
                    break
                fresh.append((number, np.array([_number(each, self.leaf) for each in leaves])))
            for number, row in reversed(fresh):
                while self._rows and self._rows[-1][0] >= number:
                    self._rows.pop()  # the step was repeated after a failure
                self._rows.append((number, row))
            if fresh or self._course is None:
                self._newest = steps[-1][1]
                self._course = self._summed_up()
            return self._course

    def _summed_up(self) -> ResultCourse:
        size = len(self._rows[-1][1])
        # Earlier rows may have other replicas.
        kept = [(number, row) for number, row in self._rows if len(row) == size]
        matrix = np.stack([row for _, row in kept])
        few = size <= _MOST_LINES
        with np.errstate(all="ignore"):  # None stands for a number that is not finite
            mean = matrix.mean(axis=1)
            low, high = ((), ()) if few else np.percentile(matrix, (10, 90), axis=1)
        return ResultCourse(
            name=self.name,
            function=self._function[:_MAX_NAME],
            steps=tuple(number for number, _ in kept),
            mean=_finite(mean),
            replicas=tuple(_finite(line) for line in matrix.T) if few else (),
            low=_finite(low),
            high=_finite(high),
        )


def _key(entry: Any) -> str:
    """A dictionary key or a field name; "" for a list index."""
    for name in ("key", "field", "name"):
        key = getattr(entry, name, None)
        if isinstance(key, str):
            return key
    return ""


def _is_number(held: Any) -> bool:
    """Whether a leaf is in this process and is a real number."""
    return type(held) is tuple and _real(held[0]) is not None


def _number(leaves: Any, leaf: int) -> float:
    """A replica's number; NaN if the leaf is not a number, or not in this process."""
    held = leaves[leaf] if leaves is not None and leaf < len(leaves) else None
    found = _real(held[0]) if type(held) is tuple else None
    return math.nan if found is None else found


def _real(value: Any) -> float | None:
    """Converts a real number, or an array with one; None for anything else."""
    if isinstance(value, np.ndarray | np.generic) and value.size == 1:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:  # from a large int
        return math.inf


def _finite(values: Sequence[float] | np.ndarray[Any, Any]) -> tuple[float | None, ...]:
    """Rounds to six digits, enough for a chart; None for numbers that are not finite."""
    return tuple(float(f"{value:.6g}") if math.isfinite(value) else None for value in values)
