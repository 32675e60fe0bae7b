"""The documented names of the reference: which public name has each, and whether a test uses it."""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.reference.outcomes import exists

TABLE = Path(__file__).parent / "documented.toml"


@dataclass(frozen=True, slots=True)
class Documented:
    """The table.

    Attributes:
      built: Documented name to the public name that has it, such as "wb.data.Options".
      later: Documented name to what brings it, in words.
    """

    built: dict[str, str]
    later: dict[str, str]


def documented() -> Documented:
    """The table as it stands."""
    return Documented(**tomllib.loads(TABLE.read_text(encoding="utf-8")))


def refusals(table: Documented, used: set[str]) -> list[str]:
    """What is wrong with the table, a line each.

    Args:
      table: The documented names.
      used: What tests use, as `names_used` gives it.
    """
    found = [f"{name} is in both tables" for name in table.built.keys() & table.later.keys()]
    for name, public in table.built.items():
        if not exists(public.removeprefix("wb.")):
            found.append(f"{name} is missing: there is no {public}")
        elif public not in used:
            found.append(f"no test uses {public}, which is {name}")
    for name in table.later:
        public = "wb." + name.removeprefix("tf.")
        if exists(public.removeprefix("wb.")):
            found.append(f"{name} is listed as later, but {public} exists: move it to [built]")
    return sorted(found)


def names_used(source: str) -> set[str]:
    """The public names that a program uses, each with what it is in: `wb.data.Options` is a use of `wb.data` too.

    An import alone is no use. Names are followed through imports and through assignments of a name to a name.
    """
    tree = ast.parse(source)
    bound = _bindings(tree)
    used = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            parts = _path(node, bound).split(".")
            used |= {".".join(parts[:length]) for length in range(1, len(parts) + 1) if parts[0] == "wb"}
    return used


def _bindings(tree: ast.Module) -> dict[str, str]:
    """What names stand for: `data` is "wb.data" after `from workbench import data`."""
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                # `import workbench.data` binds `workbench`; `import workbench.data as d` binds the module itself.
                bound |= {
                    a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0]
                    for a in aliases
                }
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                bound |= {a.asname or a.name: f"{module}.{a.name}" for a in aliases}
    public = {name: _public(path) for name, path in bound.items() if path.split(".")[0] == "workbench"}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute() | ast.Name() as value):
                if (path := _path(value, public)).startswith("wb."):
                    public[name] = path
    return public


def _public(path: str) -> str:
    return "wb" + path.removeprefix("workbench")


def _path(node: ast.expr, bound: dict[str, str]) -> str:
    """The dotted path of an attribute of a bound name; "" for anything else."""
    match node:
        case ast.Name(id=name):
            return bound.get(name, "")
        case ast.Attribute(value=value, attr=attribute):
            before = _path(value, bound)
            return f"{before}.{attribute}" if before else ""
    return ""
