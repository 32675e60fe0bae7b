"""Checks arguments: whole numbers, flags, functions, lists, texts. Accepts Python's and NumPy's types."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from workbench.errors import InvalidArgumentError, WrongType

_Item = TypeVar("_Item")
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


def whole_number(value: Any, argument: str) -> int:
    """A count or an index: an int, or a NumPy integer, also as an array without dimensions.

    Raises:
      WrongType: if it is something else, such as 1.5 or True.
      InvalidArgumentError: if int64 cannot hold it.
    """
    number = any_whole_number(value, argument)
    if not _LEAST <= number <= _MOST:
        raise InvalidArgumentError(f"{argument} is {_shown(number)}, which int64 cannot hold")
    return number


def any_whole_number(value: Any, argument: str) -> int:
    """As `whole_number`, of any size.

    Raises:
      WrongType: if it is something else.
    """
    if (number := _integer(value)) is not None:
        return number
    raise WrongType(f"{argument} must be a whole number, got {type(value).__name__} {value!r:.60}")


def count(value: Any, argument: str, least: int = 1, *, otherwise: str = "") -> int:
    """A whole number of `least` or more.

    Args:
      value: The argument's value.
      argument: Its name.
      least: The lowest valid number.
      otherwise: Other valid values, for the error, such as ", or None for no limit".

    Raises:
      InvalidArgumentError: if it is something else.
    """
    number = _integer(value)
    if number is not None and number >= least:
        return number
    kind = WrongType if number is None else InvalidArgumentError
    raise kind(f"{argument} must be an integer of at least {least}{otherwise}, got {value!r:.60}")


def flag(value: Any, argument: str) -> bool:
    """True or False, also NumPy's.

    Raises:
      WrongType: if it is something else, such as the text "False".
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise WrongType(f"{argument} must be True or False, got {type(value).__name__} {value!r:.60}")


def optional_flag(value: Any, argument: str) -> bool | None:
    """True, False, or None for the default.

    Raises:
      WrongType: if it is something else.
    """
    return None if value is None else flag(value, argument)


def function(value: Callable[..., Any], argument: str) -> Callable[..., Any]:
    """Something that can be called.

    Raises:
      WrongType: if it cannot be called.
    """
    if callable(value):
        return value
    raise WrongType(f"{argument} must be a function, got {type(value).__name__} {value!r:.60}")


def several(value: Iterable[_Item], argument: str, example: str) -> Iterable[_Item]:
    """Values in a list or any other iterable except a text.

    Args:
      value: The argument's value.
      argument: Its name.
      example: Example code, for the error.

    Raises:
      WrongType: if it is something else.
    """
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return value
    raise WrongType(f"{argument} must be a list, such as {example}, got {type(value).__name__} {value!r:.60}")


def path(value: str | os.PathLike[str], argument: str) -> Path:
    """The path of a file or folder.

    Raises:
      WrongType: if it is neither a text nor a path.
    """
    if isinstance(value, str | os.PathLike):
        return Path(value)
    raise WrongType(f"{argument} must be a path, got {type(value).__name__} {value!r:.60}")


def text(value: str, argument: str) -> str:
    """A text.

    Raises:
      WrongType: if it is something else.
    """
    if isinstance(value, str):
        return value
    raise WrongType(f"{argument} must be a text, got {type(value).__name__} {value!r:.60}")


def _shown(number: int) -> str:
    return str(number) if abs(number) < 1e40 else "a number of many digits"


def _integer(value: Any) -> int | None:
    if isinstance(value, bool):  # operator.index(True) is 1
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None
