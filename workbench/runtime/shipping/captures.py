"""The variables that a function captures, by their names in the user's code."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

from workbench import by_value
from workbench.errors import CaptureError, WorkbenchError
from workbench.runtime.comm.failure_report import safe_text
from workbench.runtime.shipping.main_module import MAIN

LARGE_BYTES = 10_000_000
_MAX_DEPTH = 4


def captured(function: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yields (path, value) of everything that `function` captures, such as ("step → loss → table", array).

    Args:
      function: A function, a bound method, a partial or an object that can be called.
      path: Where it is captured, in words.
      depth: Number of functions around it that capture it.
    """
    if depth >= _MAX_DEPTH:
        return
    if isinstance(function, functools.partial):
        yield from _values({"partial's function": function.func}, path, depth)
        yield from _values(
            {f"argument {i}": v for i, v in enumerate(function.args)} | function.keywords, path, depth
        )
        return
    if isinstance(function, types.MethodType):
        yield from _values({"self": function.__self__}, path, depth)
        function = function.__func__
    function = getattr(function, "__wrapped__", function)
    if not isinstance(function, types.FunctionType):
        yield from _values(dict(getattr(function, "__dict__", {})), path, depth)
        return
    names: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue  # not assigned yet
    defaults = function.__defaults__ or ()
    positional = function.__code__.co_varnames[: function.__code__.co_argcount]
    for parameter, value in zip(positional[len(positional) - len(defaults) :], defaults, strict=True):
        names[f"{parameter}="] = value
    names |= {f"{parameter}=": value for parameter, value in (function.__kwdefaults__ or {}).items()}
    if not _importable(function):
        names |= {
            n: function.__globals__[n] for n in _global_names(function.__code__) if n in function.__globals__
        }
    yield from _values(names, path, depth)


def _values(names: dict[str, Any], path: str, depth: int) -> Iterator[tuple[str, Any]]:
    for name, value in names.items():
        here = f"{path} → {name}" if path else name
        if isinstance(value, types.ModuleType):
            continue
        yield here, value
        if isinstance(value, (types.FunctionType, types.MethodType, functools.partial)) and not _importable(
            value
        ):
            yield from captured(value, here, depth + 1)
        elif isinstance(value, (list, tuple)) and len(value) <= 1000:
            yield from (
                _values({f"[{i}]": v for i, v in enumerate(value)}, here, depth + 1) if depth < 2 else ()
            )
        elif isinstance(value, dict) and len(value) <= 1000 and depth < 2:
            yield from _values({f"[{k!r:.40}]": v for k, v in value.items()}, here, depth + 1)


def _importable(function: Any) -> bool:
    """Whether workers import the function by name instead of receiving its code."""
    module = getattr(function, "__module__", None)
    local = "<locals>" in getattr(function, "__qualname__", "<locals>")
    return module is not None and module not in MAIN and not local


def _global_names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return names


def explain_unpicklable(function: Callable[..., Any], error: BaseException) -> CaptureError:
    """The error for a function that cannot be pickled; names the deepest captured variable at fault."""
    culprit = ""
    for path, value in captured(function):
        try:
            by_value.dumps(value)
        except Exception as reason:
            culprit = path  # continue, because a later, longer path may be more exact
            kind, refusal = type(value), reason
    name = getattr(function, "__qualname__", repr(function))
    if not culprit:
        return CaptureError(f"{name!r} cannot be sent to the workers: {safe_text(error)}")
    captures = f"{name!r} cannot be sent to the workers: it captures {culprit!r}"
    if isinstance(refusal, WorkbenchError):  # the errors of workbench's own objects name the remedy
        return CaptureError(f"{captures}. {refusal}")
    return CaptureError(
        f"{captures}, a {kind.__module__}.{kind.__qualname__}, which does not pickle ({safe_text(refusal)}). "
        f"Create it inside the function, or pass what it holds as an argument."
    )


def check_size(function: Callable[..., Any], size_bytes: int) -> None:
    """Refuses a function that captures an array above 10 MB.

    Raises:
      CaptureError: if it does; names the variable, its size, and the remedy.
    """
    if size_bytes <= LARGE_BYTES:
        return
    name = getattr(function, "__qualname__", repr(function))
    largest, culprit = 0, "data"
    for path, value in captured(function):
        size = int(getattr(value, "nbytes", 0) or 0) if not isinstance(value, type) else 0
        if size >= largest and size > 0:
            largest, culprit = size, path
    raise CaptureError(
        f"{name!r} captures {culprit!r} of {(largest or size_bytes) / 1e6:.0f} MB, which would travel to every worker. "
        f"Give it to the replicas once instead: wb.Variable(...) in strategy.scope() for state, "
        f"strategy.distribute_dataset(...) for data, or "
        f"strategy.distribute_values_from_function(lambda ctx: {culprit.split(' → ')[-1]}) for a constant; "
        f"and pass that as an argument."
    )
