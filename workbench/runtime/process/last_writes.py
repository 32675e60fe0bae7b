"""What this process keeps for later and writes before its driver lets it go, such as the newest rows of a dump."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

last_writes: Final[list[Callable[[], object]]] = []
"""Each writes what it keeps, and may be called again."""


def write_all() -> list[str]:
    """Has everything written; returns why what could not be written was not."""
    failures = []
    for write in tuple(last_writes):
        try:
            write()
        except Exception as error:  # the others' must be written all the same
            failures.append(f"{type(error).__name__}: {error}")
    return failures
