"""Calls a user's function with made-up values, and ends the call if a loop in it would not end.

`while x != 0: x -= 1` may end for every element of a dataset, but never for a made-up -1.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from threading import get_ident
from types import FrameType
from typing import Any, Final, TypeVar

_MOST_LINES: Final = 200_000
_LOOK_SECONDS: Final = 0.002
_LOOKS: Final = 10
"""How often an error must be found kept: one that is just being deleted must not meet another one there."""
_Result = TypeVar("_Result")


class Unending(Exception):
    """A trial ran so long that it may never end."""


class AnswersSpent(BaseException):
    """Ends a trial that requests answers endlessly; functions that handle errors do not catch it."""


class _LinesSpent(BaseException):
    """Ends a trial that has run too many lines.

    Python stops tracing when it is raised. A bare `except:` in an endless loop catches it. Once that is done and this
    object is deleted, tracing resumes, and the next line, outside that `try`, raises another one. If a function keeps
    the errors it catches, another thread raises further ones in it.
    """

    def __init__(self, trace_on: Callable[[], None] | None = None) -> None:
        """Calls `trace_on()` when it is deleted."""
        super().__init__()
        self._trace_on = trace_on

    def __del__(self) -> None:
        if self._trace_on is not None:
            self._trace_on()


def tried(call: Callable[[], _Result], times: int = 1) -> _Result:
    """What `call` returns, if it takes at most 200,000 lines of Python; nested trials share this limit.

    A debugger also traces lines, and only one of the two can: under a debugger, nothing is ended.

    Args:
      call: What to call.
      times: How many times as many lines it may take.

    Raises:
      Unending: if it takes more.
    """
    if sys.gettrace() is not None:
        return _answered(call)
    try:
        return _answered(lambda: _Trial(times * _MOST_LINES).result(call))
    except _LinesSpent:
        raise Unending from None


def _answered(call: Callable[[], _Result]) -> _Result:
    try:
        return call()
    except AnswersSpent:
        raise Unending from None


class _Trial:
    """One call within a number of lines."""

    def __init__(self, lines: int) -> None:
        self._left = lines
        self._thread = get_ident()
        self._over = threading.Event()
        self._frame: FrameType | None = None
        self._raised = self._deleted = 0

    def result(self, call: Callable[[], _Result]) -> _Result:
        """What `call` returns.

        Raises:
          _LinesSpent: if it takes more lines.
        """
        try:
            return self._traced(call)
        finally:
            self._over.set()  # where at the latest arrives what the other thread has raised
            self._frame = None

    def _traced(self, call: Callable[[], _Result]) -> _Result:
        self._frame = sys._getframe()
        sys.settrace(self._count)  # from the next frame on; this one is not traced
        try:
            return call()
        finally:
            sys.settrace(None)

    def _count(self, frame: Any, event: str, arg: Any) -> Any:
        self._left -= event == "line"
        if self._left < 0:
            self._raised += 1
            if self._raised == 1:
                threading.Thread(target=self._raise_again, name="wb-trial", daemon=True).start()
            raise _LinesSpent(self._trace_on)
        return self._count

    def _trace_on(self) -> None:
        self._deleted += 1
        if self._over.is_set() or get_ident() != self._thread:
            return
        frame: FrameType | None = sys._getframe(2)  # the one that caught it
        inside = []
        while frame is not None and frame is not self._frame:
            inside.append(frame)
            frame = frame.f_back
        if frame is None:
            return
        sys.settrace(self._count)
        for each in inside:
            each.f_trace = self._count

    def _raise_again(self) -> None:
        """Raises the error in the thread of the trial until it has ended, if the function keeps what it catches."""
        looks = 0
        while not self._over.wait(_LOOK_SECONDS):
            looks = looks + 1 if self._deleted < self._raised else 0
            if looks < _LOOKS:
                continue
            looks = 0
            frame = sys._current_frames().get(self._thread)
            while frame is not None and frame is not self._frame:
                frame = frame.f_back
            if frame is None:
                return
            # No other thread runs between the look at the frames and this, as both take a moment only.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread), ctypes.py_object(_LinesSpent)
            )
