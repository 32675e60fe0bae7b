"""Errors: which exceptions an expectation accepts, and when they may come."""

from __future__ import annotations

from typing import Any

from tests.reference.interpreter.codec import Json

_WHILE_MADE = {"build", "construct", "distribute"}


def accepts(expected: Json, error: BaseException) -> bool:
    """Whether `error` is of a class that `expected` names and contains the caller's own message."""
    names = {expected["kind"], *expected.get("also_accept", ())}
    kind_fits = any(kind.__name__ in names for kind in type(error).__mro__)
    return kind_fits and expected.get("message_contains", "") in str(error)


def in_time(expected: Json, phase: str, delivered: Any) -> bool:
    """Whether an error in `phase` may stand for the expected one, before which `delivered` was read."""
    wanted = expected.get("phase", phase)
    if wanted in _WHILE_MADE:
        return phase in _WHILE_MADE
    if wanted == "iterate" and phase != "iterate":
        return not delivered
    return True
