"""What a process notes of its messages and calls while steps are timed: a module, so that workers have their own."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple

from workbench.runtime.comm.links import UnixLink


class Mark(NamedTuple):
    """A message, or several at once: whether they were sent; when that began and ended, by `time.perf_counter_ns`."""

    sent: bool
    began_ns: int
    ended_ns: int


marks: list[Mark] = []
laps: list[tuple[int, ...]] = []
"""Of each step that a replica trained: `time.perf_counter_ns` at its beginning and after each of its parts."""
_calls = 0


def note() -> None:
    """From now on the links of this thread note the time before and after each message."""
    thread = threading.get_ident()
    for name in ("_write", "_read"):
        setattr(UnixLink, name, _noting(getattr(UnixLink, name), thread))


def count() -> None:
    """From now on this thread counts the functions that it calls, Python's and those in C."""
    sys.setprofile(_count)


def counted() -> int:
    """How many that were so far."""
    return _calls


def _noting(move: Callable[..., None], thread: int) -> Callable[..., None]:
    def noted(link: UnixLink, *data: bytes) -> None:
        if threading.get_ident() != thread:  # heartbeats
            move(link, *data)
            return
        began = time.perf_counter_ns()
        move(link, *data)
        marks.append(Mark(bool(data), began, time.perf_counter_ns()))

    return noted


def _count(_frame: FrameType, event: str, _argument: object) -> None:
    global _calls
    _calls += event in ("call", "c_call")
