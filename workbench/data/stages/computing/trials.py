"""Calls a user's function with made-up values, and ends the call if a loop in it would not end.

`while x != 0: x -= 1` may end for every element of a dataset, but never for a made-up -1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import get_ident
from types import FrameType
from typing import Any, Final, TypeVar

_MOST_LINES: Final = 200_000
_Result = TypeVar("_Result")


class Unending(Exception):
    """A trial ran so long that it may never end."""


class AnswersSpent(BaseException):
    """Ends a trial that requests answers endlessly; functions that handle errors do not catch it."""


class _LinesSpent(BaseException):
    """Ends a trial that has run too many lines.

    Python stops tracing when it is raised. A bare `except:` in an endless loop catches it. Once that is done and this
    object is deleted, tracing resumes, and the next line, outside that `try`, raises another one. Only a function that
    keeps all the errors it catches is not ended.
    """

    def __init__(self, trace_on: Callable[[], None]) -> None:
        """Calls `trace_on()` when it is deleted."""
        super().__init__()
        self._trace_on = trace_on

    def __del__(self) -> None:
        self._trace_on()


def tried(call: Callable[[], _Result]) -> _Result:
    """What `call` returns, if it takes at most 200,000 lines of Python; nested trials share this limit.

    A debugger also traces lines, and only one of the two can: under a debugger, nothing is ended.

    Raises:
      Unending: if it takes more.
    """
    try:
        return call() if sys.gettrace() is not None else _within_lines(call)
    except AnswersSpent:
        raise Unending from None


def _within_lines(call: Callable[[], _Result]) -> _Result:
    left, ended, thread = _MOST_LINES, False, get_ident()

    def count(frame: Any, event: str, arg: Any) -> Any:
        nonlocal left
        left -= event == "line"
        if left < 0:
            raise _LinesSpent(trace_on)
        return count

    def trace_on() -> None:
        if ended or get_ident() != thread:
            return
        sys.settrace(count)
        frame: FrameType | None = sys._getframe(2)  # the one that caught it
        while frame is not None and frame.f_code is not _within_lines.__code__:
            frame.f_trace = count
            frame = frame.f_back

    sys.settrace(count)  # from the next frame on; this one, which catches the error, is not traced
    try:
        return call()
    except _LinesSpent:
        raise Unending from None
    finally:
        ended = True
        sys.settrace(None)
