"""The threads of a worker's devices, from the point of view of the thread that gives them messages."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.runtime.replica.local_group import LocalGroup


class Idle:
    """Counts the messages that the device threads have not yet executed."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open = 0

    def __bool__(self) -> bool:
        """Whether there are none. Only the thread that gives out messages can make this false."""
        return not self._open

    def add(self, count: int) -> None:
        """Adds `count` messages."""
        with self._changed:
            self._open += count

    def done(self) -> None:
        """Marks one message as executed."""
        with self._changed:
            self._open -= 1
            if not self._open:
                self._changed.notify_all()

    def wait(self, gave_up: Callable[[], bool]) -> None:
        """Waits until all are executed, or until `gave_up()`. The messages' own waits have deadlines."""
        with self._changed:
            while self._open and not gave_up():
                self._changed.wait(1.0)


class Interruptible:
    """Lets an interrupt reach this thread while it traces and compiles. A step that has started cannot be stopped."""

    def __init__(self, group: LocalGroup, rank: int) -> None:
        self._group = group
        self._rank = rank

    def __enter__(self) -> None:
        self._group.busy[self._rank] = threading.get_ident()

    def __exit__(self, *exc_info: object) -> None:
        self._group.busy[self._rank] = 0
        _checkpoint()


def _checkpoint() -> None:
    """A call at which, at the latest, an interrupt sent before it is raised."""
