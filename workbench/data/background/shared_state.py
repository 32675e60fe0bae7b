"""State that a function refers to and that a process would copy, so that changes to it would be lost."""

from __future__ import annotations

import dis
import functools
import re
import types
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

_WRITES: Final = frozenset({"STORE_SUBSCR", "STORE_ATTR", "STORE_SLICE", "DELETE_SUBSCR", "DELETE_ATTR"})
_PLAIN: Final = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    np.generic,
    np.dtype,
    re.Pattern,
    range,
    slice,
)
_CODE: Final = (types.ModuleType, type, types.BuiltinFunctionType, np.ufunc)


def shared_state(function: Any) -> str:
    """The first such object, by kind and name, such as "list 'seen'"; "" if there is none."""
    return next(_found(function, getattr(function, "__name__", type(function).__name__), set(), False), "")


def _found(value: Any, name: str, seen: set[int], written: bool) -> Iterator[str]:
    if id(value) in seen:
        return
    seen.add(id(value))
    match value:
        case functools.partial():
            for part in (value.func, *value.args, *value.keywords.values()):
                yield from _found(part, name, seen, written)
        case types.MethodType():
            yield from _found(value.__self__, name, seen, written)
            yield from _found(value.__func__, name, seen, written)
        case types.FunctionType():
            yield from _in_function(value, seen)
        case tuple() | frozenset():
            for part in value:
                yield from _found(part, name, seen, written)
        case np.ndarray() if not written:
            return
        case _ if not isinstance(value, _PLAIN + _CODE):
            yield f"{type(value).__name__} {name!r}"


def _in_function(function: types.FunctionType, seen: set[int]) -> Iterator[str]:
    module = function.__globals__.get("__name__", "").partition(".")[0]
    if module in ("workbench", "numpy"):
        return
    code = function.__code__
    operations = list(_operations(code))
    for operation in operations:
        if operation.opname == "STORE_GLOBAL" or (
            operation.opname == "STORE_DEREF" and operation.argval in code.co_freevars
        ):
            yield f"variable {operation.argval!r}"
    written = any(operation.opname in _WRITES for operation in operations)
    named: dict[str, Any] = {}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            named[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    names = {operation.argval for operation in operations if operation.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    named |= {name: function.__globals__[name] for name in names if name in function.__globals__}
    named |= {f"default {index}": value for index, value in enumerate(function.__defaults__ or ())}
    named |= function.__kwdefaults__ or {}
    for name, value in named.items():
        yield from _found(value, name, seen, written)


def _operations(code: types.CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _operations(constant)
