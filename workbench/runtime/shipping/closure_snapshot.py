"""Snapshots of what a function captures, for comparison with earlier ones.

Pickling a function costs more than a whole step, because for every module that it names, cloudpickle searches all
loaded ones. A snapshot takes microseconds. If it is unchanged, pickling would result in the same bytes.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any
from weakref import ref

import cloudpickle
import numpy as np

from workbench.runtime.shipping.main_module import MAIN

_CONSTANTS = frozenset({int, float, complex, bool, str, bytes, type(None)})
_NUMPY_CONSTANTS = (np.number, np.bool_, np.ufunc)
_MOST = 1000  # number of values; a function that captures more is pickled each time
_NOTHING = object()


class _MayChangeUnnoticedError(Exception):
    """The pickled form of a value may change although it stays the same object."""


class Snapshot:
    """Everything on which the pickled form of a program depends; keeps only constants alive.

    Modules, importable functions and classes, and objects of classes with `travels_by_id` are compared by identity.
    Lists, tuples, dictionaries, functions that travel by value, and programs (`travels_as_parts`) are compared by
    their contents.
    """

    __slots__ = ("_marks", "_modules")

    def __init__(self, program: Any) -> None:
        self._modules = len(sys.modules)  # pickling would include a submodule imported meanwhile
        self._marks: list[Any] = []
        self._add(program, {})

    @property
    def key(self) -> tuple[int, ...]:
        """Equal to the key of another snapshot, taken while this one exists, exactly if nothing has changed."""
        return (self._modules, *map(id, self._marks))

    def _add(self, value: Any, visited: dict[int, int]) -> None:
        kind, marks = type(value), self._marks
        if len(marks) > _MOST:
            raise _MayChangeUnnoticedError
        if kind in _CONSTANTS or value is _NOTHING or isinstance(value, _NUMPY_CONSTANTS):
            marks.append(value)
        elif kind is CellType:
            self._add(_content(value), visited)
        elif kind is FunctionType and not _importable(value):
            if id(value) in visited:  # the function calls itself
                marks.append(visited[id(value)])
            else:
                visited[id(value)] = len(visited)
                self._add_all(kind, _parts(value), visited)
        elif kind is list or kind is tuple:
            self._add_all(kind, value, visited)
        elif kind is dict:
            self._add_all(kind, [part for item in value.items() for part in item], visited)
        elif getattr(kind, "travels_as_parts", False):
            self._add_all(kind, value.__reduce__()[1], visited)
        elif _stays(value):
            marks.append(ref(value))  # one weak reference per value, shared by all references to it
        else:
            raise _MayChangeUnnoticedError

    def _add_all(self, kind: type, parts: Iterable[Any], visited: dict[int, int]) -> None:
        self._marks.append(kind)
        for part in parts:
            self._add(part, visited)
        self._marks.append(_NOTHING)  # marks the end of the function


def snapshot(program: Any) -> Snapshot | None:
    """A snapshot of `program`, or None if it captures values that may change unnoticed, such as arrays."""
    if cloudpickle.list_registry_pickle_by_value() - MAIN:
        return None
    try:
        return Snapshot(program)
    except _MayChangeUnnoticedError:
        return None


def _stays(value: Any) -> bool:
    kind = type(value)
    if kind is FunctionType or kind is CodeType:  # a function that is imported by name
        return True
    if isinstance(value, ModuleType):
        return sys.modules.get(value.__name__) is value and value.__name__ not in MAIN
    if isinstance(value, type):
        return _importable(value)
    if kind is BuiltinFunctionType:
        return isinstance(value.__self__, ModuleType)
    return bool(getattr(kind, "travels_by_id", False))


def _parts(function: FunctionType) -> tuple[Any, ...]:
    names = function.__globals__
    mentioned = [names.get(name, _NOTHING) for name in _names(function.__code__)]
    closure = function.__closure__ or ()
    return (
        function.__code__,
        function.__qualname__,
        function.__defaults__,
        function.__kwdefaults__,
        function.__dict__,
        *closure,
        *mentioned,
    )


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _NOTHING


@functools.lru_cache(maxsize=1024)
def _names(code: CodeType) -> tuple[str, ...]:
    """The globals and attributes that code and its inner functions refer to."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return tuple(dict.fromkeys([*code.co_names, *(name for names in inner for name in names)]))


def _importable(value: Any) -> bool:
    """Whether workers import a function or class by name."""
    module = value.__module__
    found: Any = None if module in MAIN else sys.modules.get(module or "")
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value
