"""Cases that a way of running replicas cannot express, recognised by the error that they end in or by what they do.

Only a case that is not met is looked at. An error excuses by its class and its text together, so that another error of
the same class, or the same words in another error, is a failure.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tests.reference.interpreter.codec import Json
from tests.reference.observation import Observed
from workbench.errors import CaptureError, InvalidArgumentError, TracingError


class Excuse(NamedTuple):
    """An error that says that a case cannot be expressed.

    Attributes:
      error: The exact class.
      text: A part of the message.
      reason: What the case does, for the report.
    """

    error: type[Exception]
    text: str
    reason: str


ON_TPU = (
    Excuse(TracingError, "wb.Variable(...) was called", "creates a variable in a replica function"),
    Excuse(TracingError, "`if`", "branches in Python on a value"),
    Excuse(TracingError, "given to NumPy", "computes with NumPy"),
    Excuse(TracingError, "needed as a concrete number", "needs a value while it is traced"),
    Excuse(TracingError, "an array of object", "computes with texts"),
    Excuse(
        InvalidArgumentError,
        "has another shape on some replicas",
        "components have different shapes, and a program has one shape",
    ),
)
"""What tracing refuses."""

OVER_PROCESSES = (
    Excuse(
        CaptureError,
        "iterator of a distributed dataset cannot be used",
        "takes an iterator of the notebook to the replicas",
    ),
)
"""What cannot be sent to another process."""

_EFFECTS = "its replica functions change an object of the notebook, and a copy of them runs elsewhere"
_CHANGES = {"append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "add", "discard"}
_RUNS_ON_REPLICAS = {"run", "merge_call"}


def excuse_of(case: Json, observed: Observed, excuses: tuple[Excuse, ...]) -> str | None:
    """Why the case cannot be expressed, None if it can and so has failed."""
    for excuse in excuses:
        if type(observed.error) is excuse.error and excuse.text in str(observed.error):
            return excuse.reason
    code = case["input"].get("code", "")
    return _EFFECTS if changed_outside(code if isinstance(code, str) else "\n".join(code)) else None


def changed_outside(code: str) -> set[str]:
    """The lists, dicts and sets of the program's top level that functions given to `run` or `merge_call` change."""
    program = ast.parse(code)
    outside = {
        target.id
        for statement in program.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.List | ast.Dict | ast.Set)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    functions = {node.name: node for node in ast.walk(program) if isinstance(node, ast.FunctionDef)}
    found: set[str] = set()
    for call in _calls(program):
        if _name(call.func) in _RUNS_ON_REPLICAS and call.args:
            first = call.args[0]
            body = functions.get(first.id) if isinstance(first, ast.Name) else first
            found |= set(_changed(body)) if body is not None else set()
    return found & outside


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _changed(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in _CHANGES:
                yield name
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                yield name


def _name(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
