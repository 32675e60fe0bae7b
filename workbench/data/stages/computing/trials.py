"""Calls of a user's function with made-up values, which end although a loop in it may not.

`while x != 0: x -= 1` ends for every element that a dataset has, and never for a made-up -1.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, Final

_MOST_LINES: Final = 200_000


class Unending(Exception):
    """A trial ran for so long that nobody knows whether it would end."""


class AnswersSpent(BaseException):
    """Ends a trial that asks on and on; functions that handle errors do not handle it."""


class _LinesSpent(BaseException):
    """Ends a trial that has run too many lines."""


@contextlib.contextmanager
def trial() -> Iterator[None]:
    """Ends what runs inside after 200,000 lines of Python; inside of another trial, together with that.

    A debugger sees lines as well, and there can be only one of both: under it, nothing is ended.

    Raises:
      Unending: if that came.
    """
    if sys.gettrace() is not None:
        with _told(AnswersSpent):
            yield
        return
    left = _MOST_LINES

    def count(frame: Any, event: str, arg: Any) -> Any:
        nonlocal left
        left -= event == "line"
        if left < 0:
            raise _LinesSpent
        return count

    with _told(AnswersSpent, _LinesSpent):
        sys.settrace(count)
        try:
            yield
        finally:
            sys.settrace(None)


@contextlib.contextmanager
def _told(*spent: type[BaseException]) -> Iterator[None]:
    try:
        yield
    except spent:
        raise Unending from None
