"""`wb.function`: a replica function that is sent once, with steps that follow one another without waiting."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import CodeType
from typing import Any, Final, overload

from workbench.errors import WrongType
from workbench.runtime.user_code.notebook_cells import file_name

_ASYNCHRONOUS: Final = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_NOT_RUN_BY_A_CALL: Final = inspect.CO_GENERATOR | _ASYNCHRONOUS


class Function:
    """A function with a promise that lets `strategy.run` pipeline it.

    The promise: the values that it captures (globals, closures) may be fixed at its first run, and it always returns
    the same structure. Called directly, it is the plain function.

    Steps in progress when a replica is lost run again once it is replaced, in order, before the next step; so effects
    of the function beyond variables may happen twice. The next `run` raises the loss, once.

    Attributes:
      python_function: The plain function.
      name: Its name.
    """

    __wrapped__: Callable[..., Any]

    def __init__(self, python_function: Callable[..., Any]) -> None:
        while isinstance(python_function, Function):
            python_function = python_function.__wrapped__
        if not callable(python_function):
            raise TypeError(f"wb.function decorates a function, got {python_function!r}")
        self.python_function = python_function
        functools.update_wrapper(self, python_function)
        self.name = getattr(python_function, "__name__", type(python_function).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the plain function."""
        return self.python_function(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Function:
        """The method of `instance`: the same object each time, so that it is also sent once."""
        if instance is None:
            return self
        bound = Function(self.python_function.__get__(instance, owner))
        if hasattr(instance, "__dict__"):
            instance.__dict__[self.name] = bound  # later accesses find this rather than the descriptor
        return bound

    def __reduce__(self) -> tuple[Any, ...]:
        return Function, (self.python_function,)

    def __repr__(self) -> str:
        return f"<wb.function {self.name}>"


@overload
def function(python_function: Callable[..., Any]) -> Function: ...


@overload
def function(python_function: None = None) -> Callable[[Callable[..., Any]], Function]: ...


def function(python_function: Callable[..., Any] | None = None) -> Any:
    """Marks a replica function for pipelining by `strategy.run`; as `@wb.function` or `@wb.function()`.

    >>> @wb.function
    ... def double(x):
    ...     return 2 * x
    >>> strategy.run(double, args=(3,)).values
    (6, 6)
    """
    return Function if python_function is None else Function(python_function)


def plain_function(fn: Callable[..., Any], call: str = "strategy.run") -> Callable[..., Any]:
    """The plain function of `fn`, which was passed to the method `call`.

    Raises:
      TypeError: if it is not a function, or calling it would not run its body: one with `yield` or `async def`.
    """
    if not callable(fn):
        raise WrongType(f"{call} needs a function, got {fn!r}; write {call}(fn, args=(...))")
    plain = fn.python_function if isinstance(fn, Function) else fn
    code = _code_of(plain)
    if code is not None and code.co_flags & _NOT_RUN_BY_A_CALL:
        raise TypeError(_refusal(code, _name_of(plain), call))
    return plain


def checked_arguments(args: Any, kwargs: Any, call: str = "strategy.run") -> tuple[Any, ...]:
    """Checks arguments and returns `args` as a tuple.

    Args:
      args: The positional arguments for a function.
      kwargs: Its keyword arguments.
      call: The method to which they were passed.

    Raises:
      TypeError: if it is not a sequence of arguments, or `kwargs` not a dictionary.
    """
    if not isinstance(args, tuple | list):
        raise WrongType(
            f"{call}: args must be a tuple with the arguments of the function, got {type(args).__name__}; write "
            f"args=(value,) for a single one"
        )
    if kwargs is not None and not isinstance(kwargs, dict):
        raise WrongType(
            f"{call}: kwargs must be a dictionary of arguments by name, got {type(kwargs).__name__}; write "
            f"kwargs={{'name': value}}"
        )
    for name in kwargs or ():
        if not isinstance(name, str):
            raise WrongType(f"{call}: the names in kwargs must be strings, got {name!r:.60}")
    return tuple(args)


def signature_text(fn: Callable[..., Any]) -> str:
    """Signature and place of `fn`, for the end of an error: "; it is step(x, y) (train.py:12)"; or ""."""
    code = _code_of(fn)
    if code is None:
        return ""
    try:
        given = inspect.signature(fn)
        plain = [one.replace(annotation=one.empty) for one in given.parameters.values()]
        text = str(given.replace(parameters=plain, return_annotation=given.empty))
    except Exception:  # the repr of a default may raise any error
        text = "(…)"
    return f"; it is {_name_of(fn)}{text} ({_place_of(code)})"


def _code_of(fn: Any) -> CodeType | None:
    """The code with which a call of `fn` begins, if it is Python."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    found = getattr(fn, "__code__", None) or getattr(type(fn).__call__, "__code__", None)
    return found if isinstance(found, CodeType) else None


def _name_of(fn: Any) -> str:
    """The function's name; for a callable object, the name of its class."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return str(getattr(fn, "__name__", None) or type(fn).__name__)


def _place_of(code: CodeType) -> str:
    return f"{file_name(code.co_filename)}:{code.co_firstlineno}"


def _refusal(code: CodeType, name: str, call: str) -> str:
    if code.co_flags & _ASYNCHRONOUS:
        kind = "is an async function"
        remedy = (
            "write it with def and without await; work that has to be awaited is done in the notebook, and its "
            "result passed as an argument"
        )
    else:
        kind = "is a generator function (it has a yield)"
        remedy = (
            "return what it yields, for several values a list, or loop over it in a function that returns"
        )
    return (
        f"{name} {kind}, and {call} only calls it: that would make an object and run nothing of "
        f"it; {remedy} ({_place_of(code)})"
    )
