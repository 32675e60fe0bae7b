"""Calls back before each line of the user's functions on one thread.

From Python 3.12 on, this slows only these functions down, and a debugger may follow the same lines. Python 3.11 calls
back for every function, and serves one listener per thread.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, Final, Protocol

from workbench import forks
from workbench.backends.users_line import stands_in
from workbench.runtime.comm.failure_report import is_users


class Call(Protocol):
    """Receives the lines of one call of a function, or of a generator's run up to its next element."""

    def line(self, frame: FrameType) -> None:
        """The line `frame.f_lineno` is about to run."""

    def returned(self, frame: FrameType, result: Any) -> None:
        """The function returned its result, or yielded an element. Not called if an exception ends it."""


Enter = Callable[[FrameType], Call]
"""Receives the frame of each starting function, and returns the receiver of that call's lines."""


@contextlib.contextmanager
def followed_lines(enter: Enter) -> Iterator[None]:
    """Follows the user's functions that the block calls on this thread, which raise what `enter` or a call raises.

    It has no effect in a block that is already followed, or, on Python 3.11, on a thread that a debugger follows.
    """
    with contextlib.ExitStack() as stack:
        if sys.version_info >= (3, 12) and (monitor := _monitor()) is not None:
            stack.enter_context(monitor.following(enter))
        elif sys.gettrace() is None:
            sys.settrace(lambda frame, event, argument: _traced(enter, frame))
            stack.callback(sys.settrace, None)
        yield


def _is_followed(frame: FrameType) -> bool:
    """Whether a function is the user's: not one that stands in for a line or that creates a named tuple."""
    name = frame.f_code.co_filename
    if not is_users(name) or stands_in(frame):
        return False
    return name != "<string>" or not str(frame.f_globals.get("__name__")).startswith("namedtuple_")


def _traced(enter: Enter, frame: FrameType) -> Any:
    """What Python 3.11 calls with a function's events; None for functions that are not followed."""
    if not _is_followed(frame):
        return None
    call, raised = enter(frame), False

    def event(frame: FrameType, event_: str, argument: Any) -> Any:
        nonlocal raised
        if event_ == "line":
            raised = False
            call.line(frame)
        elif event_ == "exception":
            raised = True
        elif event_ == "return" and not raised:
            call.returned(frame, argument)
        return event

    return event


if sys.version_info >= (3, 12):
    _EVENTS = sys.monitoring.events
    _OF_A_FUNCTION: Final = _EVENTS.PY_RESUME | _EVENTS.LINE | _EVENTS.PY_RETURN | _EVENTS.PY_YIELD
    _IDS: Final = (3, 4)
    """The tool ids that Python does not reserve for debuggers, profilers and coverage."""
    _MOST_IDLE: Final = 10_000
    """Events without a listener after which events are switched off. Each switch makes Python rewrite its code."""

    class _Thread(threading.local):
        """The listener of the calling thread, and the calls that have not ended; the innermost call is last."""

        def __init__(self) -> None:
            self.enter: Enter | None = None
            self.calls: list[tuple[FrameType, Call]] = []

    class _Monitor:
        """The monitoring events of this process, which stay on between one block and the next."""

        def __init__(self, tool: int) -> None:
            self._tool = tool
            self._thread = _Thread()
            # Guards what follows. An RLock, because a signal handler that interrupts its owner may call a user's
            # function.
            self._lock = forks.lock(threading.RLock())
            self._on = False
            self._listeners = 0
            # By id, because equal code may belong to different functions.
            self._codes: dict[int, weakref.ref[CodeType]] = {}
            self._idle = 0  # approximate, because threads count without the lock
            for event, called in (
                (_EVENTS.PY_START, self._started),
                (_EVENTS.PY_RESUME, self._resumed),
                (_EVENTS.LINE, self._line),
                (_EVENTS.PY_RETURN, self._returned),
                (_EVENTS.PY_YIELD, self._returned),
            ):
                sys.monitoring.register_callback(tool, event, called)
            # After that, Python runs functions whose modules are already cleared.
            atexit.register(self._stop)

        @contextlib.contextmanager
        def following(self, enter: Enter) -> Iterator[None]:
            """See `followed_lines`."""
            if self._thread.enter is not None:
                yield
                return
            self._thread.enter = enter
            with self._lock:
                self._listeners += 1
                if not self._on:
                    self._on = True
                    sys.monitoring.set_events(self._tool, _EVENTS.PY_START)
            try:
                yield
            finally:
                self._thread.enter, self._thread.calls = None, []
                with self._lock:
                    self._listeners -= 1
                    self._idle = 0

        def _started(self, code: CodeType, offset: int) -> Any:
            frame = sys._getframe(1)
            if not _is_followed(frame):
                return sys.monitoring.DISABLE
            with self._lock:
                known = self._codes.get(id(code))
                if self._on and (known is None or known() is not code):
                    self._codes[id(code)] = weakref.ref(code)
                    sys.monitoring.set_local_events(self._tool, code, _OF_A_FUNCTION)
            self._begin(frame)
            return None

        def _resumed(self, code: CodeType, offset: int) -> None:
            self._begin(sys._getframe(1))

        def _begin(self, frame: FrameType) -> None:
            if self._thread.enter is None:
                self._not_asked_for()
            else:
                self._thread.calls.append((frame, self._thread.enter(frame)))

        def _line(self, code: CodeType, number: int) -> None:
            if self._thread.enter is None:
                self._not_asked_for()
            elif call := self._call(frame := sys._getframe(1)):
                call.line(frame)

        def _returned(self, code: CodeType, offset: int, result: Any) -> None:
            if self._thread.enter is None:
                self._not_asked_for()
            elif call := self._call(frame := sys._getframe(1)):
                self._thread.calls.pop()
                call.returned(frame, result)

        def _call(self, frame: FrameType) -> Call | None:
            """The call with this frame. Exceptions have ended the calls above it, which are dropped."""
            calls = self._thread.calls
            for place in range(len(calls) - 1, -1, -1):
                if calls[place][0] is frame:
                    del calls[place + 1 :]
                    return calls[place][1]
            return None  # it began before the block, or an exception was thrown into a generator

        def _not_asked_for(self) -> None:
            self._idle += 1
            if self._idle > _MOST_IDLE:
                with self._lock:
                    self._idle = 0
                    if not self._listeners:
                        self._stop()

        def _stop(self) -> None:
            with self._lock:
                self._on = False
                sys.monitoring.set_events(self._tool, 0)
                for known in self._codes.values():
                    if (code := known()) is not None:
                        sys.monitoring.set_local_events(self._tool, code, 0)
                self._codes.clear()

    _monitors: list[_Monitor] = []
    _making = forks.lock(threading.Lock())

    def _monitor() -> _Monitor | None:
        """The monitor of this process; None if other tools hold all ids."""
        with _making:
            if not _monitors:
                tool = next((k for k in _IDS if sys.monitoring.get_tool(k) is None), None)
                if tool is not None:
                    sys.monitoring.use_tool_id(tool, "workbench")
                    _monitors.append(_Monitor(tool))
            return _monitors[0] if _monitors else None
