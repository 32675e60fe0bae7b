"""Warnings name the user's line: all of them go through one function, which looks for it."""

from __future__ import annotations

import ast
import contextlib
import functools
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import workbench
from workbench.backends import users_line

_PACKAGE = Path(workbench.__file__).parent
_WARNS = "backends/users_line.py"


def test_only_one_file_calls_what_warns() -> None:
    found = [
        f"{path.relative_to(_PACKAGE)}:{node.lineno}"
        for path in sorted(_PACKAGE.rglob("*.py"))
        if path.relative_to(_PACKAGE).as_posix() != _WARNS
        for node in ast.walk(ast.parse(path.read_bytes()))
        if (isinstance(node, ast.Attribute) and node.attr in ("warn", "warn_explicit"))
        or (isinstance(node, ast.ImportFrom) and node.module == "warnings")
    ]
    assert not found, f"these name a line of the package; call `warn` of {_WARNS}: {found}"


def _ours(source: str) -> dict[str, object]:
    """The definitions in `source`, as if it were a file of the package."""
    names: dict[str, object] = {"contextlib": contextlib, "functools": functools, "warn": users_line.warn}
    exec(compile(source, users_line.PACKAGE + "made_up.py", "exec"), names)
    return names


_SOURCE = """
def deep():
    warn("told", RuntimeWarning)

@contextlib.contextmanager
def block():
    yield
    deep()

class Thing:
    @functools.cached_property
    def property(self):
        return deep()
"""


@pytest.fixture
def told() -> Iterator[list[warnings.WarningMessage]]:
    """The warnings of the test."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield seen


def test_a_warning_names_the_line_that_called_the_package(told: list[warnings.WarningMessage]) -> None:
    names = _ours(_SOURCE)
    line = sys._getframe().f_lineno
    names["deep"]()
    with names["block"]():
        pass
    with contextlib.ExitStack() as stack:
        stack.enter_context(names["block"]())
    names["Thing"]().property
    assert [(one.filename, one.lineno - line) for one in told] == [
        (__file__, 1),
        (__file__, 2),
        (__file__, 4),
        (__file__, 6),
    ]
