"""The line that makes a NaN or an infinity in an array on a GPU.

GPUs do not report such operations, and CuPy's do not tell of themselves. So Python calls a function between the lines
of the user's functions, which looks at the arrays that variables hold by then. Each line waits for the GPU: that is for
finding a NaN, not for training.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any, Final

import numpy as np

from workbench.backends import cupy as gpu
from workbench.backends import cupy_contents
from workbench.debugging.operands import not_finite
from workbench.errors import NotFinite
from workbench.runtime.comm.failure_report import is_users

_MOST_IN_ONE: Final = 64
"""Lists, tuples and dictionaries of more entries are not looked into."""
_RESULT: Final = "its result"
_SHOWN_CHARACTERS: Final = 120


@contextlib.contextmanager
def watched_lines(place: str) -> Iterator[None]:
    """Raises after the first line of the block's functions that leaves a GPU array that is not finite in a variable.

    It does nothing where this process computes on no GPU, and where something else, such as a debugger, follows lines.

    Args:
      place: Where the block runs, for the error: "on replica 1 at step 17".

    Raises:
      NotFinite: naming the line, the variable, and the place.
    """
    if not gpu.in_use() or sys.gettrace() is not None:
        yield
        return
    sys.settrace(_Watch(place).enter)
    try:
        yield
    finally:
        sys.settrace(None)


class _Watch:
    """What was seen in one call of a function by the runtime, on its thread."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._known: dict[int, Any] = {}  # not finite before the function began, or because that is meant

    def enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Called by Python for each call of a function."""
        return _Call(self).event if is_users(frame.f_code.co_filename) else None

    def look(self, frame: FrameType, line: int, result: Any) -> None:
        """Looks at what variables of a function hold after a line of it; before the first one that is 0."""
        held = {id(x): (name, x) for name, x in _arrays(frame, result) if id(x) not in self._known}
        if not held:
            return
        finite = cupy_contents.finite([x for _, x in held.values()])
        for (name, x), fine in zip(held.values(), finite, strict=True):
            if fine:
                continue
            self._known[id(x)] = x
            if line and (what := _unwanted(host := gpu.to_host(x))):
                code = frame.f_code
                source = linecache.getline(code.co_filename, line, frame.f_globals).strip()
                operation = f"`{source[:_SHOWN_CHARACTERS]}`" if source else "a line"
                where = name if name == _RESULT else f"`{name}`"
                raise NotFinite(
                    f"{operation} gives {what} in {where} {self._place}, at {os.path.basename(code.co_filename)}:"
                    f"{line} in {code.co_name}: {not_finite(host)}; where that is meant: with np.errstate(all='ignore')"
                )


class _Call:
    """One call of a user's function."""

    def __init__(self, watch: _Watch) -> None:
        self._watch = watch
        self._line = 0  # that runs
        self._raised = False

    def event(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Called by Python before each line, and when the function returns or an exception passes."""
        if event == "exception":
            self._raised = True
        elif event == "line":
            self._watch.look(frame, self._line, None)
            self._line, self._raised = frame.f_lineno, False
        elif event == "return" and not self._raised:
            self._watch.look(frame, self._line, argument)
        return self.event


def _arrays(frame: FrameType, result: Any) -> Iterator[tuple[str, Any]]:
    """Arrays of CuPy in variables, also in plain containers, and in what is returned; with the variable's name."""
    for name, value in (*frame.f_locals.items(), (_RESULT, result)):
        for x in _parts(value):
            if type(x).__module__.partition(".")[0] == "cupy" and hasattr(x, "dtype") and hasattr(x, "shape"):
                yield name, x


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values() if len(value) <= _MOST_IN_ONE else ()
    if isinstance(value, list | tuple):
        return value if len(value) <= _MOST_IN_ONE else ()
    return (value,)


def _unwanted(array: np.ndarray) -> str:
    """What an array has in it that the user's `np.errstate` does not allow; "" for nothing."""
    settings = np.geterr()
    if settings["invalid"] != "ignore" and np.isnan(array).any():
        return "a NaN"
    if (settings["divide"], settings["over"]) != ("ignore", "ignore") and np.isinf(array).any():
        return "an infinity"
    return ""
