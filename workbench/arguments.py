"""What arguments have to be: whole numbers, True or False, functions. Python's and NumPy's count alike."""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from workbench.errors import InvalidArgumentError


def whole_number(value: Any, argument: str) -> int:
    """A number that says how many or which, given as an int or an integer array of one number.

    Raises:
      TypeError: if it is something else: 1.5 elements are not 1.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{argument} is a whole number, got {type(value).__name__} {value!r:.60}") from None


def flag(value: Any, argument: str) -> bool:
    """True or False, also of NumPy.

    Raises:
      TypeError: if it is something else: the text "False" is not False.
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise TypeError(f"{argument} is True or False, got {type(value).__name__} {value!r:.60}")


def function(value: Callable[..., Any], argument: str) -> Callable[..., Any]:
    """Something that can be called.

    Raises:
      TypeError: if it cannot.
    """
    if callable(value):
        return value
    raise TypeError(f"{argument} is a function, got {type(value).__name__} {value!r:.60}")


def count(value: Any, argument: str) -> int:
    """A whole number above 0; True and False are none.

    Raises:
      InvalidArgumentError: if it is something else.
    """
    if not isinstance(value, bool | np.bool_):
        with suppress(TypeError):
            number = operator.index(value)
            if number > 0:
                return number
    raise InvalidArgumentError(f"{argument} must be an integer of at least 1, got {value!r:.60}")
