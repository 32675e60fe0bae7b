"""Calls a user's function with made-up values, and ends the call if a loop in it would not end.

`while x != 0: x -= 1` may end for every element of a dataset, but never for a made-up -1.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from threading import get_ident
from types import FrameType
from typing import Any, Final, TypeVar

_MOST_LINES: Final = 200_000
_LOOK_SECONDS: Final = 0.002
_LOOKS: Final = 10
"""How often in a row no further error must have been raised until another thread raises one."""
_ONE_BY_ONE: Final = 20
"""How many errors it raises one by one before it raises them as fast as it can."""
_SWITCH_SECONDS: Final = 1e-6
"""How often threads take turns then."""
_Result = TypeVar("_Result")


class Unending(Exception):
    """A trial ran so long that it may never end."""


class AnswersSpent(BaseException):
    """Ends a trial that requests answers endlessly; functions that handle errors do not catch it."""


class _LinesSpent(BaseException):
    """Ends a trial that has run too many lines.

    Python stops tracing when it is raised. A bare `except:` in an endless loop catches it. Once that is done and this
    object is deleted, tracing resumes, and the next line, outside that `try`, raises another one. If a function keeps
    the errors it catches, or another thread deletes them, another thread raises further ones in it.
    """

    def __init__(self, trace_on: Callable[[], None]) -> None:
        """Calls `trace_on()` when it is deleted."""
        super().__init__()
        self._trace_on = trace_on

    def __del__(self) -> None:
        self._trace_on()


class _Ended(BaseException):
    """Ends a trial that handles or keeps each `_LinesSpent`."""


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
    except (_LinesSpent, _Ended):
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
        self._over = False
        self._frame: FrameType | None = None
        self._raised = 0

    def result(self, call: Callable[[], _Result]) -> _Result:
        """What `call` returns.

        Raises:
          _LinesSpent: if it takes more lines.
          _Ended: likewise, if it handles or keeps all that was raised before.
        """
        try:
            return self._traced(call)
        finally:
            self._over = True  # the other thread raises nothing any more
            _arrived()  # what it has raised until now arrives here at the latest
            self._frame = None

    def _traced(self, call: Callable[[], _Result]) -> _Result:
        self._frame = sys._getframe()
        sys.settrace(self._count)  # from the next frame on; this one is not traced
        try:
            return call()
        finally:
            sys.settrace(None)

    def _count(self, frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code is _LinesSpent.__del__.__code__:  # what is raised there ends nothing
            return None
        self._left -= event == "line"
        if self._left < 0:
            self._raised += 1
            if self._raised == 1:
                threading.Thread(target=self._raise_again, name="wb-trial", daemon=True).start()
            raise _LinesSpent(self._trace_on)
        return self._count

    def _trace_on(self) -> None:
        if self._over or get_ident() != self._thread:
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
        """Raises errors in the thread of the trial until it has ended, whenever tracing no longer does so.

        Python looks for such an error at calls and at the ends of loops only. One at a time is handled by the innermost
        `try` of several. So in the end they follow each other so fast that some reach what handles others.
        """

        class Again(_LinesSpent):
            """What Python makes, without arguments, in the thread of the trial."""

            def __init__(error) -> None:
                super().__init__(self._trace_on)

        for _ in range(_ONE_BY_ONE):
            self._wait_until_quiet()
            if not self._raise(Again):
                return
        switch, report = sys.getswitchinterval(), sys.unraisablehook
        sys.setswitchinterval(_SWITCH_SECONDS)
        # Nobody needs to know of one that is raised while a finalizer runs, because the next one follows.
        sys.unraisablehook = lambda lost: None if lost.exc_type is _Ended else report(lost)
        try:
            while self._raise(_Ended):
                time.sleep(0)
        finally:
            sys.setswitchinterval(switch)
            sys.unraisablehook = report

    def _wait_until_quiet(self) -> None:
        """Waits until tracing has raised nothing for a while, or the trial has ended."""
        looks, before = 0, self._raised
        while looks < _LOOKS and not self._over:
            time.sleep(_LOOK_SECONDS)
            looks = looks + 1 if before == self._raised else 0
            before = self._raised

    def _raise(self, kind: type[BaseException]) -> bool:
        """Has Python raise an error in the thread of the trial, and returns True, unless the trial has ended."""
        thread, error = ctypes.c_ulong(self._thread), ctypes.py_object(kind)
        raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
        if self._over:
            return False
        raise_in(thread, error)  # no other thread has run since the look
        return True


def _arrived() -> None:
    """Gives Python the opportunity to raise what another thread has raised in this one."""
