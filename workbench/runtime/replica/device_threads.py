"""The threads of a worker's devices, as the thread that hands them messages sees them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.runtime.replica.local_group import LocalGroup


class Idle:
    """How many messages the device threads have still to carry out."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open = 0

    def __bool__(self) -> bool:
        """Whether there are none. Also of those that hand out messages, no other thread makes that untrue."""
        return not self._open

    def add(self, count: int) -> None:
        """So many more were handed out."""
        with self._changed:
            self._open += count

    def done(self) -> None:
        """One was carried out."""
        with self._changed:
            self._open -= 1
            if not self._open:
                self._changed.notify_all()

    def wait(self, gave_up: Callable[[], bool]) -> None:
        """Waits until all have been carried out; their own waits have deadlines. Ends early when `gave_up()`."""
        with self._changed:
            while self._open and not gave_up():
                self._changed.wait(1.0)


class Interruptible:
    """Lets an interrupt reach this thread while it traces and compiles; a step that has started cannot be stopped."""

    def __init__(self, group: LocalGroup, rank: int) -> None:
        self._group = group
        self._rank = rank

    def __enter__(self) -> None:
        self._group.busy[self._rank] = threading.get_ident()

    def __exit__(self, *exc_info: object) -> None:
        self._group.busy[self._rank] = 0
        _checkpoint()


def _checkpoint() -> None:
    """An interrupt that was sent before is raised by this call at the latest."""
