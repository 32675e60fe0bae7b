"""InputLog: how long replicas waited for their batches, and which get empty ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np

from workbench.telemetry.feed.step_window import LONGEST, paused_before_ns
from workbench.telemetry.told import InputFacts, SentSteps

_FETCHES: Final = 32
_MIN_ELEMENTS: Final = 20


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

    def facts(self, sent: SentSteps | None = None) -> InputFacts:
        """The results so far, without the notebook's pauses; without shares before 20 elements.

        Args:
          sent: When the newest steps were sent, and how long the notebook had paused by then.
        """
        now_ns = np.array([each[0] for each in self._fetches], np.int64)
        if len(now_ns) > 1 and sent is not None and now_ns[-2] <= sent.at_ns[-1] < now_ns[-1]:
            now_ns = now_ns[:-1]  # whether the notebook paused before the last one shows with the next step
        # The time between two fetches belongs to the elements of the first.
        elements = np.array([each[1] for each in self._fetches], np.int64)[: len(now_ns)]
        shares: tuple[float, ...] = (0.0,) * self.replicas
        element_us, measured = 0.0, int(elements[1:].sum())
        if measured >= _MIN_ELEMENTS:
            passed_ns = np.maximum(np.diff(now_ns - paused_before_ns(now_ns, sent)), 0)
            each_ns = passed_ns / elements[:-1]
            passed = np.minimum(each_ns, LONGEST * np.median(each_ns)) * elements[:-1]
            waited = np.array([each[2] for each in self._fetches])[1 : len(now_ns)].sum(axis=0)
            element_us = round(float(passed.sum()) / int(elements[:-1].sum()) / 1000, 3)
            shares = tuple(np.minimum(1.0, waited / max(1.0, passed.sum())).round(3).tolist())
        return InputFacts(shares, measured, element_us, self._rows, tuple(self._empty_for.tolist()))
