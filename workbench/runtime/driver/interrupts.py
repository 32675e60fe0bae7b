"""Ctrl-C during a step: the step stops, the cluster stays."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from workbench.runtime.comm.links import Wakeup

if TYPE_CHECKING:
    from workbench.runtime.driver.group import Group
    from workbench.runtime.driver.step import Step

# After this long a replica that has not stopped is inside C code, which only the end of its process can stop.
_SAY_AFTER_SECONDS = 2.0
# The C function below signal.signal: without the enum conversions, which would cost more than a step's pickling.
_set_handler = getattr(_signal, "signal", signal.signal)
_SIGINT = int(signal.SIGINT)
_MAIN_THREAD = threading.main_thread().ident


def interrupt_step(group: Group, step: Step) -> None:
    """Stops `step` and everything queued behind it, and returns once its replicas are idle.

    A second Ctrl-C while replicas do not stop ends the processes of those that still run; the next step
    replaces them.
    """
    gang = group.gang
    group.stale = True
    gang.interrupt(group)
    said = False
    start = time.monotonic()
    with gang.interrupts as interrupts:
        while group.in_flight:
            gang.receive_some()
            if interrupts.take():
                for rank in sorted(step.waiting):
                    gang.kill(group.place(rank)[0])
            if not said and time.monotonic() - start > _SAY_AFTER_SECONDS:
                said = True
                gang.interrupt(group)  # user code may have caught the first one
                busy = ", ".join(map(str, sorted(step.waiting))) or "?"
                print(
                    f"replica {busy} has not stopped yet: it is inside C code. Interrupt again to restart its worker.",
                    file=sys.stderr,
                )
    group.errors.forget()


class DeferredInterrupt:
    """While entered, Ctrl-C only sets `pending` and wakes the waiter: no message is sent or handled by half.

    May be entered again while it is; used by the holder of the gang's lock. On leaving, what is still pending is
    delivered as if Ctrl-C were pressed then. Does nothing outside of the main thread, where no signal arrives.

    Attributes:
      pending: Ctrl-C was pressed.
    """

    __slots__ = ("_depth", "_previous", "_wakeup", "pending")

    def __init__(self, wakeup: Wakeup) -> None:
        self.pending = False
        self._depth = 0
        self._wakeup = wakeup
        self._previous: Any = None

    def __enter__(self) -> DeferredInterrupt:
        if self._depth == 0 and threading.get_ident() == _MAIN_THREAD:
            self._previous = _set_handler(_SIGINT, self._note)
        self._depth += 1
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._previous is not None:
            previous, self._previous = self._previous, None
            _set_handler(_SIGINT, previous)
            if self.take() and callable(previous):
                previous(_SIGINT, None)

    def take(self) -> bool:
        """Whether Ctrl-C was pressed; the caller then has to act on it."""
        pending, self.pending = self.pending, False
        return pending

    @contextlib.contextmanager
    def lifted(self) -> Iterator[None]:
        """Lets Ctrl-C through meanwhile, for the user's code and for waits that have no other way to end."""
        depth, previous = self._depth, self._previous
        if previous is not None:
            _set_handler(_SIGINT, previous)
        self._depth, self._previous = 0, None
        try:
            yield
        finally:
            if previous is not None:
                _set_handler(_SIGINT, self._note)
            self._depth, self._previous = depth, previous

    def _note(self, signum: int, frame: object) -> None:
        self.pending = True
        self._wakeup.set()
