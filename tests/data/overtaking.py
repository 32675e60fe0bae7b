"""A function for parallel calls that change the order of elements; by itself, as an event has no fingerprint."""

from __future__ import annotations

import threading
from typing import Any

SECOND_MADE = threading.Event()
SECOND_MADE.set()


def made(x: Any) -> Any:
    """Element x; element 0 only after element 1, each time that `SECOND_MADE` was cleared."""
    if x == 0:
        assert SECOND_MADE.wait(60)
    if x == 1:
        SECOND_MADE.set()
    return x
