"""Delays Ctrl-C until a cluster has started or ended, so that all of it can be ended."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

_kept_back: set[Any] = set()


@contextlib.contextmanager
def delayed_interrupt() -> Iterator[None]:
    """Delivers Ctrl-C when the context ends; a second Ctrl-C is delivered at once.

    Dask starts servers, threads and processes, and cannot end all of them if an exception comes between any two lines.
    """
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield
        return

    def note(signum: int, frame: FrameType | None) -> None:
        if note in _kept_back:
            previous(signum, frame)
        _kept_back.add(note)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
        pressed = note in _kept_back
        _kept_back.discard(note)
    if pressed:
        previous(signal.SIGINT, None)


def is_interrupt_kept_back() -> bool:
    """Whether Ctrl-C was pressed and waits to be delivered; running code should then end soon."""
    return bool(_kept_back)
