"""Functions for parallel calls that change the order of elements; by themselves, as an event has no fingerprint."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

WAIT_SECONDS = 60
SECOND_MADE = threading.Event()
SECOND_MADE.set()
_MADE = [threading.Event() for _ in range(40)]


def made(x: Any) -> Any:
    """Element x; element 0 only after element 1, each time that `SECOND_MADE` was cleared."""
    if x == 0:
        assert SECOND_MADE.wait(WAIT_SECONDS)
    if x == 1:
        SECOND_MADE.set()
    return x


def late_again() -> None:
    """Lets elements be late until those that follow were made."""
    for each in _MADE:
        each.clear()


def no_longer_late() -> None:
    """Lets all elements come at once."""
    for each in _MADE:
        each.set()


def late_if_even(x: Any) -> Any:
    """Element x; an even one only after the next, until that was made."""
    if x % 2 == 0:
        assert _MADE[int(x) + 1].wait(WAIT_SECONDS)
    _MADE[int(x)].set()
    return x


def ten(x: Any) -> Iterator[int]:
    """Ten numbers; those of 0 only after four of 1, until these were made."""
    if x == 0:
        assert _MADE[1].wait(WAIT_SECONDS)
    for number in range(10):
        if x == 1 and number == 4:
            _MADE[1].set()
        yield 10 * int(x) + number


def late_in_process(x: Any, folder: str) -> Any:
    """Element x; element 0 only after element 1, while the folder has a file `late` and a pipe `made`."""
    if x < 2 and os.path.exists(f"{folder}/late"):
        with open(f"{folder}/made", "rb" if x == 0 else "wb") as pipe:
            if x == 0:
                pipe.read()
    return x
