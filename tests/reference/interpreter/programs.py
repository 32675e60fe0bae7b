"""Runs the programs of the vectors in a namespace of which only the names that they mention are looked up."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.reference.interpreter.codec import Json

Namespace = Mapping[str, Callable[[], Any]]
"""A value for each name, made when it is asked for; making it may raise `Missing`."""


def run_program(code: Json, namespace: Namespace) -> Any:
    """Runs the lines `code` and returns what they leave in the variable `result`."""
    program = compile(code if isinstance(code, str) else "\n".join(code), "<program>", "exec")
    mentioned = names_in(program)
    variables = {name: make() for name, make in namespace.items() if name in mentioned}
    exec(program, variables)
    return variables["result"]


def mentions(code: Json, name: str) -> bool:
    """Whether the program uses `name`, as a variable or as an attribute."""
    return name in names_in(compile(code if isinstance(code, str) else "\n".join(code), "<program>", "exec"))


def names_in(code: types.CodeType) -> set[str]:
    """The global names and attributes that `code` and the functions defined in it mention."""
    return set(_names(code))


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
