"""Dataclasses as JSON-able values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from workbench.telemetry.formatting import encodable


def plain(model: Any) -> dict[str, Any]:
    """A model as JSON-able dicts and lists. NaN and infinity become None, and lone surrogates escapes."""
    found: dict[str, Any] = _plain(asdict(model))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value
