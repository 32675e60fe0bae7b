"""About 2 ms of Python that holds the interpreter's lock. Standard library only."""

from __future__ import annotations

from typing import Any

_ROUNDS = 56_000


def work(number: Any) -> Any:
    """`number`, after some arithmetic."""
    total = 0
    for step in range(_ROUNDS):
        total += step & 7
    return number if total else 0
