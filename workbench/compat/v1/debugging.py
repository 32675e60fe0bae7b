"""`wb.compat.v1.debugging`: the assertions of TensorFlow 1.15 (as tf.compat.v1.debugging).

Their arguments have another order than those of `wb.debugging`, and include `data`, which errors show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from workbench import debugging as modern
from workbench.debugging import experimental
from workbench.debugging.device_placement import get_log_device_placement, set_log_device_placement
from workbench.debugging.numerics import check_numerics, disable_check_numerics, enable_check_numerics
from workbench.debugging.operands import array_of, described, dtype_of, named
from workbench.debugging.shapes import assert_shapes
from workbench.debugging.types import (
    assert_integer,
    assert_proper_iterable,
    assert_same_float_dtype,
    assert_type,
    is_numeric_tensor,
)
from workbench.errors import InvalidArgumentError

Assert = modern.Assert
_SHOWN: Final = """data: What an error shows besides: a list of arrays and texts.
      summarize: How many elements of each the error shows: 3 by default, all if negative."""
_UNUSED: Final = """data: Without effect: shapes are known at once.
      summarize: Without effect, too."""
_DOCUMENTATION: Final = """As `wb.debugging.{name}`.

    Args:
      {operands}
      {data}
      message: The beginning of the error's message.
      name: Taken for compatibility, without effect.
    """


def _comparison(check: Callable[..., None]) -> Callable[..., None]:
    def with_data(
        x: Any,
        y: Any,
        data: Any = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> None:
        with _showing(data, summarize):
            check(x, y, message=message, summarize=summarize)

    return _called(with_data, check, "x: See there.\n      y: See there.")


def _sign(check: Callable[..., None]) -> Callable[..., None]:
    def with_data(
        x: Any,
        data: Any = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> None:
        with _showing(data, summarize):
            check(x, message=message, summarize=summarize)

    return _called(with_data, check, "x: See there.")


def _rank(check: Callable[..., None]) -> Callable[..., None]:
    def with_data(
        x: Any,
        rank: Any,
        data: Any = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> None:
        check(x, rank, message=message)

    return _called(with_data, check, "x: See there.\n      rank: See there.", _UNUSED)


def _called(
    function: Callable[..., None], today: Callable[..., None], operands: str, data: str = _SHOWN
) -> Callable[..., None]:
    name = function.__name__ = function.__qualname__ = today.__name__
    function.__doc__ = _DOCUMENTATION.format(name=name, operands=operands, data=data)
    return function


@contextmanager
def _showing(data: Any, summarize: int | None) -> Iterator[None]:
    """Adds `data` to the error of a check that fails inside the block."""
    try:
        yield
    except InvalidArgumentError as error:
        if data is None:
            raise
        parts = data if isinstance(data, list | tuple) else [data]
        shown = (
            part if isinstance(part, str) else described(f"data {index}", part, summarize)
            for index, part in enumerate(parts)
        )
        raise type(error)(f"{error}; {'; '.join(shown)}") from None


assert_equal = _comparison(modern.assert_equal)
assert_none_equal = _comparison(modern.assert_none_equal)
assert_less = _comparison(modern.assert_less)
assert_less_equal = _comparison(modern.assert_less_equal)
assert_greater = _comparison(modern.assert_greater)
assert_greater_equal = _comparison(modern.assert_greater_equal)
assert_positive = _sign(modern.assert_positive)
assert_negative = _sign(modern.assert_negative)
assert_non_negative = _sign(modern.assert_non_negative)
assert_non_positive = _sign(modern.assert_non_positive)
assert_rank = _rank(modern.assert_rank)
assert_rank_at_least = _rank(modern.assert_rank_at_least)


def assert_rank_in(
    x: Any,
    ranks: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """As `wb.debugging.assert_rank_in`.

    Args:
      x: See there.
      ranks: See there.
      data: Without effect, as is `summarize`: shapes are known immediately.
      summarize: See `data`.
      message: The beginning of the error's message.
      name: Taken for compatibility, without effect.
    """
    modern.assert_rank_in(x, ranks, message=message)


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """As `wb.debugging.assert_near`.

    Args:
      x: See there.
      y: See there.
      rtol: See there.
      atol: See there.
      data: Additional content of an error: a list of arrays and texts.
      summarize: How many elements of each the error shows: 3 by default, all if negative.
      message: The beginning of the error's message.
      name: Taken for compatibility, without effect.
    """
    with _showing(data, summarize):
        modern.assert_near(x, y, rtol, atol, message=message, summarize=summarize)


def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Any:
    """As `wb.debugging.assert_scalar`, with the last two arguments in the other order.

    Args:
      tensor: See there.
      name: Taken for compatibility, without effect.
      message: The beginning of the error's message.
    """
    return modern.assert_scalar(tensor, message=message)


def assert_all_finite(
    t: Any = None, msg: str | None = None, name: str | None = None, x: Any = None, message: str | None = None
) -> Any:
    """As `wb.debugging.assert_all_finite`, whose arguments `x` and `message` were once called `t` and `msg`.

    Args:
      t: The array to check.
      msg: The beginning of the error's message.
      name: Taken for compatibility, without effect.
      x: The array, by its newer name.
      message: The beginning of the message, by its newer name.

    Raises:
      ValueError: if one of them is given by both names.
    """
    for old, new, given in (("t", "x", (t, x)), ("msg", "message", (msg, message))):
        if given[0] is not None and given[1] is not None:
            raise InvalidArgumentError(f"assert_all_finite: {old} and {new} are one argument; give {new}")
    found = message if msg is None else msg
    return modern.assert_all_finite(x if t is None else t, "" if found is None else found)


def is_finite(x: Any, name: str | None = None) -> Any:
    """Which elements are neither NaN nor infinite; floating dtypes only."""
    return np.isfinite(_floats(x, "is_finite"))


def is_inf(x: Any, name: str | None = None) -> Any:
    """Which elements are infinite; floating dtypes only."""
    return np.isinf(_floats(x, "is_inf"))


def is_nan(x: Any, name: str | None = None) -> Any:
    """Which elements are NaN; floating dtypes only."""
    return np.isnan(_floats(x, "is_nan"))


def is_non_decreasing(x: Any, name: str | None = None) -> Any:
    """Whether each element, in the order of the flat array, is at least as large as the one before.

    Raises:
      TypeError: if they are not numbers.
    """
    numbers = _flat(x, "is_non_decreasing")
    return np.all(numbers[:-1] <= numbers[1:])


def is_strictly_increasing(x: Any, name: str | None = None) -> Any:
    """Whether each element, in the order of the flat array, is larger than the one before.

    Raises:
      TypeError: if they are not numbers.
    """
    numbers = _flat(x, "is_strictly_increasing")
    return np.all(numbers[:-1] < numbers[1:])


def _floats(x: Any, which: str) -> Any:
    array = array_of(x, which)
    if array.dtype.kind not in "fV":
        raise InvalidArgumentError(f"{which} checks floating numbers, got {named(dtype_of(x))}")
    return array


def _flat(x: Any, which: str) -> Any:
    array = array_of(x, which)
    if array.dtype.kind not in "iufV":
        raise TypeError(f"{which} compares numbers with an order, got {named(dtype_of(x))}")
    return array.reshape(-1)


__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_shapes",
    "assert_type",
    "check_numerics",
    "disable_check_numerics",
    "enable_check_numerics",
    "experimental",
    "get_log_device_placement",
    "is_finite",
    "is_inf",
    "is_nan",
    "is_non_decreasing",
    "is_numeric_tensor",
    "is_strictly_increasing",
    "set_log_device_placement",
]
