"""Waiting for what must happen, in this process or another one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

_SECONDS: Final = 60.0
"""A breach is a hang."""


def until(condition: Callable[[], Any], what: str = "what the test waits for") -> None:
    """Returns once `condition()` is true; an error names `what` otherwise."""
    end = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < end, f"hang: {what} did not happen"
        time.sleep(0.005)
