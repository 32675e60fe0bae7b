"""Data that this process writes before its driver releases it, such as the newest rows of a dump."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

last_writes: Final[list[Callable[[], list[str]]]] = []
"""Each function writes its data and returns the reasons for failures; it may be called again."""


def write_all() -> list[str]:
    """Writes everything; returns the reasons for failures."""
    return [failure for write in tuple(last_writes) for failure in write()]
