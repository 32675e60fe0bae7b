"""A replica's state between steps, with an undo log: a step that fails anywhere changes nothing."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, MutableMapping
from typing import Any, NamedTuple

_ABSENT = object()


class Written(NamedTuple):
    """The history of a value in the store.

    Attributes:
      times: How often it was assigned.
      step: The user's step of the last assignment, -1 if it was between steps.
      at_ns: Time of the last assignment, by `time.monotonic_ns`.
      outside_times: The value of `times` at its last assignment between steps, for example by the notebook.
      outside_after: The latest user's step that had begun before that, -1 if none.
    """

    times: int
    step: int
    at_ns: int
    outside_times: int = 0
    outside_after: int = -1

    def again(self, step: int, latest_step: int) -> Written:
        """The history after one more assignment, now.

        Args:
          step: The current user's step, -1 between steps.
          latest_step: The latest user's step that has begun.
        """
        times, now = self.times + 1, time.monotonic_ns()
        if step < 0:
            return Written(times, step, now, times, latest_step)
        return Written(times, step, now, self.outside_times, self.outside_after)


NEVER = Written(0, -1, 0)


class ReplicaStore(dict[Hashable, Any]):
    """A dict whose assignments can be undone step by step.

    Store immutable values or arrays that are replaced, never written in place: undoing puts the old object
    back. Used by one replica thread; steps are numbered by `serial`, in increasing order.
    """

    def __init__(self) -> None:
        super().__init__()
        self._at_end: dict[Hashable, Callable[[], None]] = {}
        self._log: deque[tuple[int, Hashable, Any, Written]] = deque()
        self._written: dict[Hashable, Written] = {}
        self._logged: set[Hashable] = set()  # keys set in the current step
        self._serial = -1
        self._step = -1
        self._latest_step = -1

    def at_end(self, key: Hashable, action: Callable[[], None]) -> None:
        """Registers `action`, one per key; it is called when the replica ends, with its group or its notebook."""
        self._at_end[key] = action

    def end(self) -> None:
        """Ends the replica; its process may continue."""
        while self._at_end:
            self._at_end.popitem()[1]()

    def begin(self, serial: int, step: int = -1) -> None:
        """Begins step `serial`, the user's `step`, to which further assignments belong."""
        self._serial, self._step = serial, step
        if step >= 0:
            self._latest_step = step
        self._logged.clear()

    def written(self, key: Hashable) -> Written:
        """The history of the value."""
        return self._written.get(key, NEVER)

    def __setitem__(self, key: Hashable, value: Any) -> None:
        before = self._written.get(key, NEVER)
        if key not in self._logged:
            self._remember(key, before)
        self._written[key] = before.again(self._step, self._latest_step)
        super().__setitem__(key, value)

    def __delitem__(self, key: Hashable) -> None:
        if key not in self:
            raise KeyError(key)
        before = self._written.pop(key, NEVER)
        if key not in self._logged:
            self._remember(key, before)
        super().__delitem__(key)

    def _remember(self, key: Hashable, written: Written) -> None:
        # Logged once per step: undoing needs no values in between, and a step with a loop would keep them all.
        self._logged.add(key)
        self._log.append((self._serial, key, self.get(key, _ABSENT), written))

    # dict's own methods would bypass the log.
    update = MutableMapping.update
    setdefault = MutableMapping.setdefault
    pop = MutableMapping.pop
    popitem = MutableMapping.popitem
    clear = MutableMapping.clear

    def __ior__(self, other: Any) -> ReplicaStore:  # type: ignore[misc]
        self.update(other)
        return self

    def commit(self, serial: int) -> None:
        """Drops the undo log up to and including step `serial`, because these steps succeeded on all replicas."""
        log = self._log
        while log and log[0][0] <= serial:
            log.popleft()

    @property
    def has_log(self) -> bool:
        """Whether there is anything that can be undone."""
        return bool(self._log)

    def rollback(self, serial: int) -> None:
        """Undoes everything since before step `serial`."""
        log = self._log
        self._logged.clear()
        while log and log[-1][0] >= serial:
            _, key, old, written = log.pop()
            if old is _ABSENT:
                dict.pop(self, key, None)
                self._written.pop(key, None)
            else:
                super().__setitem__(key, old)
                self._written[key] = written
