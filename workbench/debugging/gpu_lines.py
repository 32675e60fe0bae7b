"""The line that makes a NaN or an infinity in an array on a GPU.

GPUs do not report such operations, and CuPy's cannot be intercepted. So Python calls a function between the lines of
the user's functions. It queues a check of the arrays in the variables that the line names: only those are new or
changed, unless the line calls code that has them from elsewhere. The GPU makes the check right after the line's own
work, and nothing waits for it. So the error names the line, although the function may be some lines further.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import linecache
import os
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

import numpy as np

from workbench.backends import cupy as gpu
from workbench.backends.cupy_contents import QueuedChecks
from workbench.debugging.followed_lines import followed_lines
from workbench.debugging.operands import not_finite
from workbench.errors import NotFinite

_MOST_IN_ONE: Final = 64
"""Lists, tuples and dictionaries with more entries are not searched."""
_MOST_BYTES: Final = 64 << 20
"""Arrays being checked stay in memory; above this many bytes, the thread waits for the checks."""
_RESULT: Final = "its result"
_SHOWN_CHARACTERS: Final = 120


@contextlib.contextmanager
def watched_lines(place: str) -> Iterator[None]:
    """Raises if a line of the block's functions leaves a GPU array that is not finite in a variable.

    It does nothing if this process does not compute on a GPU, or, on Python 3.11, if a debugger follows lines.

    Args:
      place: Where the block runs, for the error: "on replica 1 at step 17".

    Raises:
      NotFinite: naming the first such line, the variable, and the place; replaces an error that the block raised after
        that line.
    """
    if not gpu.in_use():
        yield
        return
    watch = _Watch(place)
    try:
        with followed_lines(watch.enter):
            yield
    except Exception as error:
        try:
            watch.settle()
        except NotFinite as found:
            raise found from error
        raise
    else:
        watch.settle()
    finally:
        watch.close()


class _Held(NamedTuple):
    """An array that a variable holds after a line.

    Attributes:
      code: The function.
      names: Its globals, for finding its source.
      line: Its line; 0 before the first one.
      name: The variable.
      made: Whether this line, and not an earlier one, made or changed the array.
      array: The array.
      allowed: The user's `np.errstate` for such elements.
    """

    code: CodeType
    names: dict[str, Any]
    line: int
    name: str
    made: bool
    array: Any
    allowed: Mapping[str, Any]


class _Watch:
    """The state of one call of a function by the runtime, on its thread.

    Attributes:
      calls: Number of calls of the user's functions so far.
    """

    def __init__(self, place: str) -> None:
        self.calls = 0
        self._place = place
        self._known: dict[int, Any] = {}  # not finite before the function began, or intentionally
        self._checks = QueuedChecks()
        self._queued: list[_Held] = []
        self._bytes = 0

    def enter(self, frame: FrameType) -> _Call:
        """Follows one call of a user's function."""
        self.calls += 1
        return _Call(self, frame.f_code)

    def look(self, frame: FrameType, line: int, made: Mapping[str, Any], others: Mapping[str, Any]) -> None:
        """Queues checks of what a function's variables hold after one of its lines.

        Args:
          frame: The function's frame.
          line: Its line that ran; 0 before the first one.
          made: What the line may have made or changed, by variable name.
          others: What else to check, changed by this line or an earlier one.

        Raises:
          NotFinite: if an earlier check has found something.
        """
        seen = set()
        allowed: Mapping[str, Any] = {}
        for variables in (made, others):
            for name, value in variables.items():
                for x in _arrays(value):
                    if id(x) in seen or id(x) in self._known:
                        continue
                    seen.add(id(x))
                    allowed = allowed or np.geterr()
                    self._queue(
                        _Held(frame.f_code, frame.f_globals, line, name, variables is made, x, allowed)
                    )
        if self._checks.found_any():
            self.settle()

    def _queue(self, held: _Held) -> None:
        self._checks.add(held.array)
        self._queued.append(held)
        self._bytes += held.array.nbytes
        if self._checks.full or self._bytes > _MOST_BYTES:
            self.settle()

    def settle(self) -> None:
        """Waits for the checks.

        Raises:
          NotFinite: for the first array that is not finite and not allowed by `np.errstate`.
        """
        queued, self._queued, self._bytes = self._queued, [], 0
        for place in self._checks.wait():
            held = queued[place]
            if id(held.array) in self._known:
                continue
            self._known[id(held.array)] = held.array
            if held.line and (what := _unwanted(host := gpu.to_host(held.array), held.allowed)):
                raise NotFinite(self._text(held, what, not_finite(host) or "it is overwritten by now"))

    def _text(self, held: _Held, what: str, elements: str) -> str:
        source = linecache.getline(held.code.co_filename, held.line, held.names).strip()
        operation = f"`{source[:_SHOWN_CHARACTERS]}`" if source else "a line"
        done = f"{operation} gives" if held.made else f"{operation}, or a line before it, leaves"
        variable = held.name if held.name == _RESULT else f"`{held.name}`"
        where = f"{os.path.basename(held.code.co_filename)}:{held.line} in {held.code.co_name}"
        return (
            f"{done} {what} in {variable} {self._place}, at {where}: {elements}; where that is meant: with "
            "np.errstate(all='ignore')"
        )

    def close(self) -> None:
        """Waits for the checks, and ends them."""
        self._checks.close()


class _Call:
    """One call of a user's function."""

    def __init__(self, watch: _Watch, code: CodeType) -> None:
        self._watch = watch
        self._named = _named(code)
        self._line = 0  # that runs
        self._calls = watch.calls  # before that line

    def line(self, frame: FrameType) -> None:
        """See `followed_lines.Call`."""
        self._watch.look(frame, self._line, self._made(frame.f_locals), {})
        self._line, self._calls = frame.f_lineno, self._watch.calls

    def returned(self, frame: FrameType, result: Any) -> None:
        """See `followed_lines.Call`."""
        variables = frame.f_locals
        made = self._made(variables)
        others = {name: value for name, value in variables.items() if name not in made}
        self._watch.look(frame, self._line, {**made, _RESULT: result}, others)

    def _made(self, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """The variables that the line may have changed: all, if it called another of the user's functions."""
        names = None if self._watch.calls != self._calls else self._named.get(self._line)
        return variables if names is None else {name: variables[name] for name in names if name in variables}


@functools.lru_cache(maxsize=1024)
def _named(code: CodeType) -> Mapping[int, frozenset[str]]:
    """The variables of a function that each of its lines names, with all lines of an expression that spans several."""
    variables = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    at: dict[int, set[str]] = {}
    last: dict[int, int] = {}
    for step in dis.get_instructions(code):
        if (where := step.positions) is None or where.lineno is None or where.end_lineno is None:
            continue
        last[where.lineno] = max(last.get(where.lineno, 0), where.end_lineno)
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        at.setdefault(where.lineno, set()).update(name for name in names if name in variables)
    return {line: frozenset().union(*(at.get(k, ()) for k in range(line, last[line] + 1))) for line in at}


def _arrays(value: object) -> Iterable[Any]:
    """The CuPy arrays in a value, including those in plain containers."""
    if _is_array(type(value)):
        return (value,)
    if isinstance(value, dict | list | tuple) and len(value) <= _MOST_IN_ONE:
        parts: Iterable[object] = value.values() if isinstance(value, dict) else value
        return [x for x in parts if _is_array(type(x))]
    return ()


def _is_array(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "cupy" and hasattr(kind, "dtype") and hasattr(kind, "shape")


def _unwanted(array: np.ndarray, allowed: Mapping[str, Any]) -> str:
    """What the user's `np.errstate` does not allow in an array that is not finite; "" for nothing."""
    nan_is_meant = allowed["invalid"] == "ignore"
    infinity_is_meant = (allowed["divide"], allowed["over"]) == ("ignore", "ignore")
    if np.isfinite(array).all():
        return "" if nan_is_meant and infinity_is_meant else "a NaN or an infinity"
    if not nan_is_meant and np.isnan(array).any():
        return "a NaN"
    return "an infinity" if not infinity_is_meant and np.isinf(array).any() else ""
