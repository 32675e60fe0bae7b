"""Compares element specs: dtype and shape, with None for what is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.reference.interpreter.codec import Json, dtype_name
from tests.reference.outcomes import Mismatch


def match_spec(expected: Json, actual: Any, path: str) -> None:
    """Raises `Mismatch` unless the element spec `actual` is what `expected` describes."""
    match expected:
        case {"t": name, "s": shape}:
            _require(hasattr(actual, "shape") and hasattr(actual, "dtype"), path, expected, actual)
            _require(dtype_name(actual.dtype) == name, path, expected, actual)
            found = None if actual.shape is None else list(actual.shape)
            _require(found == shape, path, expected, actual)
        case {"tuple": items} | {"list": items}:
            _require(isinstance(actual, tuple | list) and len(actual) == len(items), path, expected, actual)
            for position, item in enumerate(items):
                match_spec(item, actual[position], f"{path}[{position}]")
        case {"dict": items}:
            _require(isinstance(actual, Mapping) and actual.keys() == items.keys(), path, expected, actual)
            for key, item in items.items():
                match_spec(item, actual[key], f"{path}.{key}")
        case {"dataset": inner}:
            match_spec(inner, actual.element_spec, f"{path}.dataset")
        case {"per_replica": items}:
            specs: tuple[Any, ...] = getattr(actual, "specs", ())
            _require(len(specs) == len(items), path, expected, actual)
            for replica, (item, spec) in enumerate(zip(items, specs, strict=True)):
                match_spec(item, spec, f"{path}<replica {replica}>")
        case _:
            raise ValueError(f"no rule for the spec {expected!r}")


def _require(condition: bool, path: str, expected: object, actual: object) -> None:
    if not condition:
        raise Mismatch(f"{path}: expected the spec {expected}, got {actual!r}")
