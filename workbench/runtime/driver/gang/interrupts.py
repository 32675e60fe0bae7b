"""Ctrl-C during a step stops the step and leaves the cluster usable."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

from workbench.runtime.comm.links import Wakeup

# The C function behind signal.signal, without the enum conversions, which cost more than pickling a step.
_set_handler = getattr(_signal, "signal", signal.signal)
_SIGINT = int(signal.SIGINT)
_MAIN_THREAD = threading.main_thread().ident


class DeferredInterrupt:
    """Within this context, Ctrl-C only sets `pending` and wakes the waiter, so no message is sent or handled halfway.

    It is reentrant; the holder of the gang's lock uses it. On leaving, a pending Ctrl-C is delivered as if it were
    pressed then. It does nothing outside the main thread, where no signal arrives.

    Attributes:
      pending: Whether Ctrl-C was pressed.
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
        """Whether Ctrl-C was pressed; if so, the caller must act on it."""
        pending, self.pending = self.pending, False
        return pending

    @contextlib.contextmanager
    def lifted(self) -> Iterator[None]:
        """Within this context, Ctrl-C interrupts at once; for the user's code and for waits without another end."""
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
