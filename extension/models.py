"""Writes `src/models.ts` from the Python classes that define the views' models: `python extension/models.py`.

For models that come from a file, `src/shapes.ts` has the same as data, to check them at run time.

A number may be null where its text says so, and where it is a figure of an array that can be NaN.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from pathlib import Path
from typing import Any, Final

from workbench.backends.summary import Summary
from workbench.telemetry.added import ADDED
from workbench.ui.models.inspected import Agreement, Difference
from workbench.ui.models.messages import MODELS

TARGET: Final = Path(__file__).with_name("src") / "models.ts"
SHAPES: Final = TARGET.with_name("shapes.ts")
NULLABLE: Final = {(Summary, name) for name in ("mean", "std", "min", "max", "l2")} | {
    (Agreement, "max_abs_difference"),
    (Difference, "largest"),
}
"""Floats that can be NaN or infinite, which travel as null."""
HEAD: Final = """// Generated from workbench/ui/models/messages.py by `python extension/models.py`; do not edit.
"""


SHAPES_HEAD: Final = """
export type Shape =
  | "string"
  | "integer"
  | "number"
  | "boolean"
  | "null"
  | { list: Shape }
  | { tuple: Shape[] }
  | { either: Shape[] }
  | { optional: Shape }
  | { object: string };

"""


def typescript() -> str:
    """The TypeScript declarations of all models."""
    known = _all_classes()
    parts = [HEAD, *(_interface(model) for model in known.values())]
    views = "\n".join(f"  {view}: {model.__name__};" for view, model in MODELS.items())
    parts.append(f"/** What each view draws. */\nexport interface Models {{\n{views}\n}}\n")
    return "\n".join(parts)


def shapes() -> str:
    """The fields of all models as TypeScript data."""
    rows = [f"  {name}: {json.dumps(fields)}," for name, fields in all_shapes().items()]
    views = [f'  {view}: "{model.__name__}",' for view, model in MODELS.items()]
    body = "\n".join(["export const SHAPES: Record<string, Record<string, Shape>> = {", *rows, "};", ""])
    drawn = "\n".join(
        ["/** View -> the class that it draws. */", "export const DRAWN = {", *views, "} as const;", ""]
    )
    return f"{HEAD}{SHAPES_HEAD}{body}\n{drawn}"


def all_shapes() -> dict[str, dict[str, Any]]:
    """The shape of each field of each class that a model consists of."""
    return {name: _shapes(model) for name, model in _all_classes().items()}


def _all_classes() -> dict[str, type]:
    known: dict[str, type] = {}
    for model in MODELS.values():
        _collect(model, known)
    return known


def fields(model: type) -> dict[str, Any]:
    """Name -> type of each field, as it is in JSON."""
    hints = typing.get_type_hints(model)
    return {
        field.name: hints[field.name] | None if (model, field.name) in NULLABLE else hints[field.name]
        for field in dataclasses.fields(model)
    }


def _added(model: type) -> set[str]:
    """Fields that models in files of earlier versions lack."""
    return {field.name for field in dataclasses.fields(model) if field.metadata == ADDED}


def _shapes(model: type) -> dict[str, Any]:
    added = _added(model)
    return {
        field: {"optional": _shape(kind)} if field in added else _shape(kind)
        for field, kind in fields(model).items()
    }


def _collect(kind: Any, known: dict[str, type]) -> None:
    """All dataclasses in a type, parts before wholes."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ in known:
            return
        for part in fields(kind).values():
            _collect(part, known)
        known[kind.__name__] = kind
    for part in typing.get_args(kind):
        _collect(part, known)


def _interface(model: type) -> str:
    summary = (model.__doc__ or "").strip().partition("\n")[0]
    added = _added(model)
    body = "\n".join(
        f"  {name}{'?' if name in added else ''}: {_written(kind)};" for name, kind in fields(model).items()
    )
    return f"/** {summary} */\nexport interface {model.__name__} {{\n{body}\n}}\n"


def _written(kind: Any) -> str:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(_written(part) for part in arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        inner = _written(arguments[0])
        return f"({inner})[]" if " " in inner else f"{inner}[]"
    if origin is tuple:
        return f"[{', '.join(map(_written, arguments))}]"
    if dataclasses.is_dataclass(kind):
        return kind.__name__
    return {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}[kind]


def _shape(kind: Any) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return {"either": [_shape(part) for part in arguments]}
    if origin is tuple and arguments[-1] is Ellipsis:
        return {"list": _shape(arguments[0])}
    if origin is tuple:
        return {"tuple": [_shape(part) for part in arguments]}
    if dataclasses.is_dataclass(kind):
        return {"object": kind.__name__}
    return {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}[kind]


if __name__ == "__main__":
    SHAPES.write_text(shapes(), encoding="utf-8")
    TARGET.write_text(typescript(), encoding="utf-8")
