"""`wb.function`: a replica function that is sent once, and whose steps follow one another without waiting."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload


class Function:
    """A function with a promise, which lets `strategy.run` pipeline it.

    The promise: what it captures (globals, closures) may be fixed at its first run, and it returns the same structure
    each time. Called directly it is the plain function.

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
        """The method of `instance`: the same object each time, so that it too is sent once."""
        if instance is None:
            return self
        bound = Function(self.python_function.__get__(instance, owner))
        if hasattr(instance, "__dict__"):
            instance.__dict__[self.name] = bound  # found before this descriptor from now on
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
    """Marks a replica function to be pipelined by `strategy.run`; as `@wb.function` or `@wb.function()`.

    >>> @function
    ... def double(x):
    ...     return 2 * x
    >>> double(3)
    6
    """
    return Function if python_function is None else Function(python_function)
