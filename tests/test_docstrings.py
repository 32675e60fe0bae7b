"""What docstrings say: each argument, where there are three or more; errors in one form."""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import workbench
from tests.test_public_api import PACKAGES

MOST_WITHOUT = 2
"""Fewer than three arguments may be clear from the name and the first line."""
MADE_BY_WORKBENCH = {
    "Cluster": "connect",
    "Dataset": "Dataset.from_tensor_slices and others",
    "DistributedDataset": "Strategy.distribute_dataset",
    "DistributedIterator": "iter of a distributed dataset",
    "Group": "Cluster.group",
    "ReplicaEnv": "a worker",
    "Strategy": "its subclasses",
}
"""Classes that nobody else calls, and what calls them."""


def functions(package: str) -> Iterator[tuple[str, Callable[..., Any], str]]:
    """Public functions, classes and their methods: names, what can be called, and the docstrings."""
    module = importlib.import_module(package)
    for name in module.__all__:
        value = getattr(module, name)
        if not callable(value) or not getattr(value, "__module__", "").startswith("workbench"):
            continue
        if name not in MADE_BY_WORKBENCH:
            yield name, value, inspect.getdoc(value) or ""
        if inspect.isclass(value):
            for method in sorted(set(dir(value))):
                function = inspect.getattr_static(value, method)
                function = getattr(function, "__func__", function)
                if method[0] != "_" and inspect.isfunction(function) and "workbench" in function.__module__:
                    yield f"{name}.{method}", function, inspect.getdoc(getattr(value, method)) or ""


def arguments(function: Callable[..., Any]) -> list[str]:
    """The names of the arguments; none of what the reader does not call."""
    if inspect.isclass(function) and (
        issubclass(function, enum.Enum) or getattr(function, "_is_protocol", False)
    ):
        return []
    try:
        return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    except ValueError:  # a class from an extension module
        return []


def undescribed(names: list[str], text: str) -> list[str]:
    """Those of the arguments that a docstring does not describe."""
    _, _, described = text.partition("Args:") if "Args:" in text else text.partition("Attributes:")
    entries = re.findall(r"^ +([\w*, ]+):", described, re.MULTILINE)
    known = {name.strip().lstrip("*") for entry in entries for name in entry.split(",")}
    return [name for name in names if name not in known]


@pytest.mark.parametrize("package", PACKAGES)
def test_three_or_more_arguments_are_described(package: str) -> None:
    missing = {
        f"{package}.{name}": without
        for name, function, text in functions(package)
        if len(names := arguments(function)) > MOST_WITHOUT and (without := undescribed(names, text))
    }

    assert not missing


def test_an_argument_that_is_left_out_is_found() -> None:
    text = "Adds.\n\nArgs:\n  a, b: Numbers.\n  *more: Further ones.\n\nReturns:\n  The sum."

    assert undescribed(["a", "b", "c", "more"], text) == ["c"]
    assert undescribed(["a", "b", "c"], "Adds three numbers.") == ["a", "b", "c"]


def capitalised(text: str) -> list[str]:
    """Entries of the section Raises that begin like a sentence: "ValueError: If" instead of "ValueError: if"."""
    _, _, raised = text.partition("Raises:\n")
    section = raised.partition("\n\n")[0]
    indent = re.match(" *", section)
    assert indent is not None
    return re.findall(rf"^{indent[0]}([\w.]+: [A-Z][a-z]*\b.*)", section, re.MULTILINE)


def test_what_raises_an_error_goes_on_in_lower_case() -> None:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [
        f"{file.name}: {entry}"
        for file in Path(workbench.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, kinds)
        for entry in capitalised(ast.get_docstring(node) or "")
    ]

    assert not found


def test_an_error_that_begins_like_a_sentence_is_found() -> None:
    text = "Adds.\n\nRaises:\n  ValueError: if\n    Text: Its own line.\n  TypeError: If it is not.\n\n  See: There."

    assert capitalised(text) == ["TypeError: If it is not."]
