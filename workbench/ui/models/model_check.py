"""Whether a view can draw a value from a file."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from typing import Any

from workbench.telemetry.added import ADDED


def fields_of(model: type) -> dict[str, Any]:
    """The type of each field of a model, by name. Every float may be None, which replaces NaN and infinity."""
    hints = typing.get_type_hints(model)
    names = [field.name for field in dataclasses.fields(model)]
    return {name: float | None if hints[name] is float else hints[name] for name in names}


def misfits(
    value: Any, kind: Any, fields: Callable[[type], dict[str, Any]] = fields_of, where: str = "model"
) -> list[str]:
    """Where a JSON value does not match a Python type; empty if it matches.

    Args:
      value: The result of `json.loads`.
      kind: A dataclass, or the type of one of its fields.
      fields: Returns name and type of each field of a dataclass.
      where: The value's name.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        found = [misfits(value, part, fields, where) for part in arguments]
        return [] if any(not wrong for wrong in found) else min(found, key=len)
    if origin is tuple:
        if not isinstance(value, list):
            return [f"{where}: {value!r:.80} is not a list"]
        kinds = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        if len(kinds) != len(value):
            return [f"{where}: {len(value)} items"]
        parts = enumerate(zip(value, kinds, strict=True))
        return [
            wrong for index, (part, one) in parts for wrong in misfits(part, one, fields, f"{where}[{index}]")
        ]
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        expected = fields(kind)
        needed = {field.name for field in dataclasses.fields(kind) if field.metadata != ADDED}
        if not isinstance(value, dict) or not needed <= set(value) <= set(expected):
            return [f"{where}: has {sorted(value) if isinstance(value, dict) else value!r:.80}"]
        return [
            wrong
            for name, one in expected.items()
            if name in value
            for wrong in misfits(value[name], one, fields, f"{where}.{name}")
        ]
    if kind is float:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
    else:
        fits = value is None if kind is type(None) else type(value) is kind
    return [] if fits else [f"{where}: {value!r:.80} is not of the type {getattr(kind, '__name__', kind)}"]
