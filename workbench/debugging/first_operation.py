"""The operation that makes a NaN or an infinity, as detected by NumPy and JAX: at no cost in NumPy, op by op in JAX.

The processor sets a flag when a floating-point operation is invalid, divides by zero or overflows, and NumPy checks it
after each of its functions. So the first operation that goes wrong is found without reading arrays.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import sys
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any, Final

import numpy as np

from workbench.backends.users_line import is_users, stands_in
from workbench.errors import NotFinite
from workbench.runtime.comm.failure_report import is_users as is_users_file

_WATCHED: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dump", "watched.py")
_BETWEEN: Final = os.path.dirname(os.path.abspath(np.__file__)) + os.sep, _WATCHED
"""Files whose frames may lie between a line and its operation: NumPy's, and those of recorded arrays."""
_MAKES: Final = {"invalid value": "a NaN", "divide by zero": "an infinity", "overflow": "an infinity"}
_OF_JAX: Final = "invalid value ("
_SHOWN_CHARACTERS: Final = 120


@contextlib.contextmanager
def stopping(place: str) -> Iterator[None]:
    """Raises where an operation in the block makes a NaN or an infinity; `np.errstate` inside takes precedence.

    Args:
      place: Where the block runs, for the error: "on replica 1 at step 17".

    Raises:
      NotFinite: naming the operation, its line, and the place.
    """
    handler = functools.partial(_stop, place)
    jax = sys.modules.get("jax")
    with contextlib.ExitStack() as stack:
        stack.enter_context(np.errstate(invalid="call", divide="call", over="call", call=handler))
        if jax is not None:
            from workbench.backends.jax.eager import checked_operations

            stack.enter_context(checked_operations())
        try:
            yield
        except FloatingPointError as error:
            if not str(error).startswith(_OF_JAX):
                raise
            raise NotFinite(f"JAX: {error} {place}{_line_of(error.__traceback__)}") from error


class NotebookErrors:
    """NumPy's settings for such operations on the thread that enabled the checks, now and before."""

    def __init__(self) -> None:
        self._before: tuple[Any, Any] | None = None

    def enable(self) -> None:
        """Makes NumPy raise from now on; does nothing if called again."""
        if self._before is None:
            handler = np.seterrcall(functools.partial(_stop, ""))
            self._before = np.seterr(invalid="call", divide="call", over="call"), handler

    def disable(self) -> None:
        """Restores the earlier settings."""
        if self._before is not None:
            settings, handler = self._before
            self._before = None
            np.seterr(**settings)
            np.seterrcall(handler)


def _stop(place: str, kind: str, flag: int) -> None:
    """NumPy calls this on the thread whose operation went wrong, below its line."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_between(frame):
        frame = frame.f_back
    # Our own arithmetic, possibly for several replicas, must not fail halfway; its result is checked instead.
    if frame is None or not is_users(frame) or stands_in(frame):
        return
    code = frame.f_code
    where = f"{os.path.basename(code.co_filename)}:{frame.f_lineno} in {code.co_name}"
    source = _source(frame)
    operation = f"`{source}`" if source else "an operation of NumPy"
    raise NotFinite(
        f"{operation} makes {_MAKES.get(kind, kind)} ({kind}){f' {place}' if place else ''}, at {where}; where that "
        f"is meant: with np.errstate({_SETTING.get(kind, 'all')}='ignore')"
    )


def _is_between(frame: FrameType) -> bool:
    """Whether a frame lies between a user's line and the operation, or stands in for the line."""
    if stands_in(frame):
        return frame.f_back is not None and frame.f_back.f_code.co_filename == _WATCHED
    return frame.f_code.co_filename.startswith(_BETWEEN)


_SETTING: Final = {"invalid value": "invalid", "divide by zero": "divide", "overflow": "over"}


def _source(frame: FrameType) -> str:
    """The source text of the expression that a frame evaluates; "" if this process does not have it."""
    positions = list(frame.f_code.co_positions())
    line, last, column, end = positions[frame.f_lasti // 2]
    if line is None or last is None or column is None or end is None:
        return ""
    text = linecache.getlines(frame.f_code.co_filename, frame.f_globals)[line - 1 : last]
    if len(text) != last - line + 1:
        return ""
    text[-1] = text[-1].encode()[:end].decode(errors="ignore")
    text[0] = text[0].encode()[column:].decode(errors="ignore")
    return " ".join("".join(text).split())[:_SHOWN_CHARACTERS]


def _line_of(traceback: TracebackType | None) -> str:
    """The innermost user line in a traceback, as ", at train.py:12 in step"."""
    found = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_users_file(code.co_filename):
            found = f", at {os.path.basename(code.co_filename)}:{traceback.tb_lineno} in {code.co_name}"
        traceback = traceback.tb_next
    return found
