"""Whether the code of a function has a `while`, which may never end for made-up values."""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any, Final

_MOST_FUNCTIONS: Final = 50


def has_while(fn: Callable[..., Any]) -> bool:
    """Whether a function, or one that it refers to, has a `while` loop.

    Only then is it worth the time to limit its trial calls: a `for` loop ends with its iterable.
    """
    waiting: list[Any] = [fn]
    seen: list[Any] = []
    while waiting and len(seen) < _MOST_FUNCTIONS:
        function = _plain(waiting.pop())
        if not isinstance(function, types.FunctionType) or any(function is each for each in seen):
            continue
        if _loops(function.__code__):
            return True
        seen.append(function)
        waiting += _others(function)
    return False


def _plain(value: Any) -> Any:
    """The function behind a method, a partial call or an object that can be called."""
    while isinstance(value, functools.partial):
        value = value.func
    if isinstance(value, types.MethodType):
        return value.__func__
    call = type(value).__dict__.get("__call__")
    return call if isinstance(call, types.FunctionType) else value


def _others(function: types.FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # an empty cell
            continue
    for name in function.__code__.co_names:
        if name in function.__globals__:
            yield function.__globals__[name]


@functools.lru_cache(maxsize=1024)
def _loops(code: types.CodeType) -> bool:
    instructions = {each.offset: each for each in dis.get_instructions(code)}
    for each in instructions.values():
        if "JUMP" not in each.opname or not isinstance(each.argval, int) or each.argval >= each.offset:
            continue
        target = instructions.get(each.argval)
        if target is None or target.opname not in ("FOR_ITER", "SEND"):
            return True
    return any(_loops(inner) for inner in code.co_consts if isinstance(inner, types.CodeType))
