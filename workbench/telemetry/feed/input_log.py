"""InputLog: how long replicas waited for their batches, and which get empty ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np

from workbench.telemetry.told import InputFacts

_FETCHES: Final = 32
_MIN_ELEMENTS: Final = 20
_PAUSE: Final = 3.0  # × the median time per element; anything longer is the notebook between two cells


class InputLog:
    """The newest fetches of a group's replicas, each with some elements."""

    def __init__(self, replicas: int) -> None:
        self._fetches: deque[tuple[int, int, tuple[int, ...]]] = deque(maxlen=_FETCHES)
        self._rows: tuple[int, ...] = (0,) * replicas
        self._empty_for = np.zeros(replicas, np.int64)

    @property
    def replicas(self) -> int:
        """The number of replicas."""
        return len(self._rows)

    def add(self, now_ns: int, *, waited_ns: Sequence[int], elements: int, rows: Sequence[int]) -> None:
        """Adds a fetch of some elements.

        Args:
          now_ns: The time, by the driver's clock.
          waited_ns: How long each waited for them.
          elements: The number of elements.
          rows: How many rows of the last element each replica received.
        """
        self._fetches.append((now_ns, elements, tuple(waited_ns)))
        self._rows = tuple(rows)
        self._empty_for = np.where(np.array(rows) == 0, self._empty_for + elements, 0)

    def facts(self) -> InputFacts:
        """The results so far; without shares before 20 elements."""
        now_ns = np.array([each[0] for each in self._fetches], np.int64)
        # The time between two fetches belongs to the elements of the first.
        elements = np.array([each[1] for each in self._fetches], np.int64)
        shares: tuple[float, ...] = (0.0,) * self.replicas
        element_us, measured = 0.0, int(elements[1:].sum())
        if measured >= _MIN_ELEMENTS:
            each_ns = np.diff(now_ns) / elements[:-1]
            passed = np.minimum(each_ns, _PAUSE * np.median(each_ns)) * elements[:-1]
            waited = np.array([each[2] for each in self._fetches])[1:].sum(axis=0)
            element_us = round(float(passed.sum()) / int(elements[:-1].sum()) / 1000, 3)
            shares = tuple(np.minimum(1.0, waited / max(1.0, passed.sum())).round(3).tolist())
        return InputFacts(shares, measured, element_us, self._rows, tuple(self._empty_for.tolist()))
