"""What this process keeps for later and writes before its driver lets it go, such as the newest rows of a dump."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

last_writes: Final[list[Callable[[], list[str]]]] = []
"""Each writes what it keeps, and returns the reason if it could not; it may be called again."""


def write_all() -> list[str]:
    """Has everything written; returns why what could not be written was not."""
    return [failure for write in tuple(last_writes) for failure in write()]
