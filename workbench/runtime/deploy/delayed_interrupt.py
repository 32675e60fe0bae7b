"""Ctrl-C while a cluster starts: kept back until that has started, so that all of it can be ended."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def delayed_interrupt() -> Iterator[None]:
    """Delivers Ctrl-C on leaving; pressed a second time, at once.

    Dask starts servers, threads and processes, and cannot end them where an exception comes between any two lines.
    """
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield
        return
    pressed = False

    def note(signum: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            previous(signum, frame)
        pressed = True

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if pressed:
        previous(signal.SIGINT, None)
