"""Calls of a user's function with made-up values, which end although a loop in it may not.

`while x != 0: x -= 1` ends for every element that a dataset has, and never for a made-up -1.
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
    """A trial ran for so long that nobody knows whether it would end."""


class AnswersSpent(BaseException):
    """Ends a trial that asks on and on; functions that handle errors do not handle it."""


class _LinesSpent(BaseException):
    """Ends a trial that has run too many lines.

    Python stops to trace when it is raised. A bare `except:` in an endless loop handles it; as soon as it has, and this
    is deleted, tracing goes on, and the next line, which is outside of that `try`, raises another one. Only a function
    that keeps all errors that it handles is not ended.
    """

    def __init__(self, trace_on: Callable[[], None]) -> None:
        """Calls `trace_on()` when it is deleted."""
        super().__init__()
        self._trace_on = trace_on

    def __del__(self) -> None:
        self._trace_on()


def tried(call: Callable[[], _Result]) -> _Result:
    """What `call` returns, if it does within 200,000 lines of Python; inside of another trial, together with that.

    A debugger sees lines as well, and there can be only one of both: under it, nothing is ended.

    Raises:
      Unending: if it does not.
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
        frame: FrameType | None = sys._getframe(2)  # the one that has handled it
        while frame is not None and frame.f_code is not _within_lines.__code__:
            frame.f_trace = count
            frame = frame.f_back

    sys.settrace(count)  # from the next frame on; this one, which handles the error, is not traced
    try:
        return call()
    except _LinesSpent:
        raise Unending from None
    finally:
        ended = True
        sys.settrace(None)
