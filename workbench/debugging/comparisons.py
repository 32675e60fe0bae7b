"""Assertions about numbers: element-wise comparisons, closeness, signs (as those of tf.debugging)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from workbench.debugging.numerics import check_numerics, is_finite_scalar, require_text
from workbench.debugging.operands import (
    array_of,
    described,
    each_replica,
    given,
    is_plain,
    named,
    pair,
    prefix,
    shape_of,
    text,
)
from workbench.errors import InvalidArgumentError

_Compare = Callable[[Any, Any], Any]
_SYMBOLS: dict[_Compare, str] = {
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
}
_SCALARS = frozenset({int, float, *(np.dtype(code).type for code in "bBhHiIlLqQefd")})


def assert_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Checks that `x == y` holds element by element (as tf.debugging.assert_equal).

    NaN equals nothing, and None equals None.

    Args:
      x: An array or number of any shape, strings, or a value with a component per replica, each of which is checked.
      y: An array of the same dtype and a shape that `x` can be broadcast with; a Python number takes the dtype of `x`.
      message: The beginning of the error's message.
      summarize: How many elements of each the error shows: 3 by default, all if negative.
      name: Taken for compatibility, without effect.

    Raises:
      InvalidArgumentError: if this does not hold everywhere, or dtypes or shapes do not fit.

    >>> wb.debugging.assert_equal(np.array([1, 2]), np.array([1, 2]))
    >>> wb.debugging.assert_equal(np.array([1, 2]), np.array([1, 3]), message="labels")
    Traceback (most recent call last):
        ...
    workbench.errors.InvalidArgumentError: labels: assert_equal: x == y does not hold at 1 of 2 elements, ...
    """
    if x is None and y is None:
        return
    _compare("assert_equal", operator.eq, x, y, message=message, summarize=summarize)


def assert_none_equal(
    x: Any, y: Any, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> None:
    """Checks that `x != y` holds for every pair of elements (as tf.debugging.assert_none_equal).

    Args:
      x: See `assert_equal`.
      y: See `assert_equal`.
      summarize: How many elements of each the error shows; comes before `message`, as in the reference.
      message: The beginning of the error's message.
      name: Taken for compatibility, without effect.

    Raises:
      InvalidArgumentError: if two elements are equal, or dtypes or shapes do not fit.
    """
    _compare("assert_none_equal", operator.ne, x, y, message=message, summarize=summarize)


def assert_less(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Checks that `x < y` holds element by element (as tf.debugging.assert_less).

    Args:
      x: Real numbers, otherwise as for `assert_equal`.
      y: See `assert_equal`.
      message: The beginning of the error's message.
      summarize: How many elements of each the error shows.
      name: Taken for compatibility, without effect.

    Raises:
      InvalidArgumentError: if this does not hold everywhere, or dtypes or shapes do not fit.
    """
    _compare("assert_less", operator.lt, x, y, message=message, summarize=summarize)


def assert_less_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Checks that `x <= y` holds element by element (as tf.debugging.assert_less_equal).

    Args:
      x: Real numbers, otherwise as for `assert_equal`.
      y: See `assert_equal`.
      message: The beginning of the error's message.
      summarize: How many elements of each the error shows.
      name: Taken for compatibility, without effect.

    Raises:
      InvalidArgumentError: if this does not hold everywhere, or dtypes or shapes do not fit.
    """
    _compare("assert_less_equal", operator.le, x, y, message=message, summarize=summarize)


def assert_greater(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Checks that `x > y` holds element by element (as tf.debugging.assert_greater).

    Args:
      x: Real numbers, otherwise as for `assert_equal`.
      y: See `assert_equal`.
      message: The beginning of the error's message.
      summarize: How many elements of each the error shows.
      name: Taken for compatibility, without effect.

    Raises:
      InvalidArgumentError: if this does not hold everywhere, or dtypes or shapes do not fit.
    """
    _compare("assert_greater", operator.gt, x, y, message=message, summarize=summarize)


def assert_greater_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Checks that `x >= y` holds element by element (as tf.debugging.assert_greater_equal).

    Args:
      x: Real numbers, otherwise as for `assert_equal`.
      y: See `assert_equal`.
      message: The beginning of the error's message.
      summarize: How many elements of each the error shows.
      name: Taken for compatibility, without effect.

    Raises:
      InvalidArgumentError: if this does not hold everywhere, or dtypes or shapes do not fit.
    """
    _compare("assert_greater_equal", operator.ge, x, y, message=message, summarize=summarize)


def assert_positive(
    x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Checks that every element is above zero (as tf.debugging.assert_positive); NaN is not.

    Args:
      x: Real numbers of any shape, or a value with a component per replica.
      message: The beginning of the error's message.
      summarize: How many elements the error shows: 3 by default, all if negative.
      name: Taken for compatibility, without effect.

    Raises:
      InvalidArgumentError: if an element is not.
    """
    _compare_with_zero("assert_positive", operator.gt, x, message=message, summarize=summarize)


def assert_negative(
    x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Checks that every element is below zero (as tf.debugging.assert_negative); NaN is not.

    Args:
      x: See `assert_positive`.
      message: The beginning of the error's message.
      summarize: How many elements the error shows.
      name: Taken for compatibility, without effect.

    Raises:
      InvalidArgumentError: if an element is not.
    """
    _compare_with_zero("assert_negative", operator.lt, x, message=message, summarize=summarize)


def assert_non_negative(
    x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Checks that no element is below zero or NaN (as tf.debugging.assert_non_negative); -0.0 passes.

    Args:
      x: See `assert_positive`.
      message: The beginning of the error's message.
      summarize: How many elements the error shows.
      name: Taken for compatibility, without effect.

    Raises:
      InvalidArgumentError: if an element is.
    """
    _compare_with_zero("assert_non_negative", operator.ge, x, message=message, summarize=summarize)


def assert_non_positive(
    x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Checks that no element is above zero or NaN (as tf.debugging.assert_non_positive); -0.0 passes.

    Args:
      x: See `assert_positive`.
      message: The beginning of the error's message.
      summarize: How many elements the error shows.
      name: Taken for compatibility, without effect.

    Raises:
      InvalidArgumentError: if an element is.
    """
    _compare_with_zero("assert_non_positive", operator.le, x, message=message, summarize=summarize)


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Checks that `|x - y| < atol + rtol * |y|` holds element by element (as tf.debugging.assert_near).

    The bound itself is outside: 0 is not near 0 with tolerances of 0. Infinities are near nothing.

    Args:
      x: Floating or complex numbers of any shape, or a value with a component per replica.
      y: An array of the same dtype and a shape that `x` can be broadcast with.
      rtol: Tolerance relative to `y`; 10 times the dtype's epsilon by default.
      atol: Absolute tolerance; 10 times the dtype's epsilon by default.
      message: The beginning of the error's message.
      summarize: How many elements of each the error shows: 3 by default, all if negative.
      name: Taken for compatibility, without effect.

    Raises:
      InvalidArgumentError: if this does not hold everywhere, or dtypes or shapes do not fit, or dtypes are not
        floating.

    >>> wb.debugging.assert_near(np.float32(0.1) + np.float32(0.2), np.float32(0.3))
    """
    if _are_surely_near(_scalar(x), _scalar(y), rtol, atol):
        return

    def check(x: Any, y: Any) -> None:
        first, second = pair(x, y, "assert_near")
        if first.dtype == np.float64 and is_plain(x) and is_plain(y):  # the reference takes float32
            first, second = first.astype(np.float32), second.astype(np.float32)
        if first.dtype.kind not in "fcV":
            raise InvalidArgumentError(
                f"{prefix(message)}assert_near compares floating and complex numbers, got {named(first.dtype)}; "
                "assert_equal compares integers"
            )
        absolute = _tolerance("atol", atol, first.dtype)
        relative = _tolerance("rtol", rtol, first.dtype)
        with np.errstate(invalid="ignore", over="ignore"):  # inf - inf is NaN, which is near nothing
            difference = _broadcast(operator.sub, first, second, "assert_near", message)
            near = np.abs(difference) < absolute + relative * np.abs(second)
        if not near.all():
            rule = f"|x - y| < {absolute} + {relative} * |y|"
            _fail("assert_near", rule, near, (first, second), message=message, summarize=summarize)

    each_replica(check, x, y)


def assert_all_finite(x: Any, message: str, name: str | None = None) -> Any:
    """Returns `x` if all elements are finite (as tf.debugging.assert_all_finite); see `check_numerics`.

    Args:
      x: Floating numbers of any shape, or a value with a component per replica.
      message: The beginning of the error's message.
      name: Taken for compatibility, without effect.

    Raises:
      NotFinite: for NaN and infinity.
      InvalidArgumentError: for other dtypes.
      TypeError: if `message` is not text.
    """
    require_text(message, "assert_all_finite")
    x = given(x)
    if is_finite_scalar(x):
        return x
    each_replica(lambda part: _finite(part, message), x)
    return x


def Assert(condition: Any, data: Any, summarize: int | None = None, name: str | None = None) -> None:
    """Checks that `condition` is true (as tf.debugging.Assert).

    Args:
      condition: A bool, a scalar array, or a value with such a component per replica.
      data: A list of arrays and strings that the error shows, or one of them.
      summarize: How many elements of each the error shows: 3 by default, all if negative.
      name: Taken for compatibility, without effect.

    Raises:
      InvalidArgumentError: if it is false, or does not have exactly one element.
    """
    if condition is True or (type(condition) is np.bool_ and condition):  # a fast path for most values
        return

    def check(condition: Any, *data: Any) -> None:
        if math.prod(shape_of(condition)) != 1:
            raise InvalidArgumentError(
                f"Assert takes one bool, got shape {shape_of(condition)}: use .all() or .any()"
            )
        if not array_of(condition, "Assert").item():
            shown = [
                part if isinstance(part, str) else described(f"data {index}", part, summarize)
                for index, part in enumerate(data)
            ]
            raise InvalidArgumentError("assertion failed" + (": " + "; ".join(shown) if shown else ""))

    parts = data if isinstance(data, list | tuple) else [] if data is None else [data]
    each_replica(check, condition, *parts)


def _compare(
    which: str, compare: _Compare, x: Any, y: Any, *, message: str | None, summarize: int | None
) -> None:
    first, second = _scalar(x), _scalar(y)
    # Passes most checks within a microsecond.
    if _are_scalars_of_one_dtype(first, second) and compare(first, second):
        return
    each_replica(partial(_check, which, compare, message=message, summarize=summarize), x, y)


def _scalar(x: Any) -> Any:
    """A 0-dimensional array's element as a scalar of its dtype; anything else unchanged."""
    if type(x) is not np.ndarray or x.ndim:
        return x
    element = x[()]
    return element if isinstance(element, np.generic) else x  # object arrays have other elements


def _are_scalars_of_one_dtype(x: Any, y: Any) -> bool:
    kind, other = type(x), type(y)
    return kind in _SCALARS and (
        kind is other or other is int or (other is float and issubclass(kind, np.floating))
    )


def _are_surely_near(x: Any, y: Any, rtol: Any, atol: Any) -> bool:
    """Whether two scalars are near by a margin above the rounding of their dtype.

    Passes most checks in a microsecond.
    """
    if not _are_scalars_of_one_dtype(x, y) or not isinstance(x, float | np.floating):
        return False
    default = float(_default_tolerance(x.dtype if isinstance(x, np.floating) else np.dtype(np.float32)))
    relative, absolute = (default if given is None else given for given in (rtol, atol))
    if type(relative) is not float or type(absolute) is not float:
        return False
    first, second = float(x), float(y)
    # The tolerance is rounded to the dtype, too; for normal numbers that changes it by less than a tenth.
    return default <= relative + absolute and abs(first - second) < 0.9 * (absolute + relative * abs(second))


def _compare_with_zero(
    which: str, compare: _Compare, x: Any, *, message: str | None, summarize: int | None
) -> None:
    only = _scalar(x)
    if type(only) in _SCALARS and compare(only, 0):
        return

    def check(x: Any) -> None:
        array = array_of(x, which)
        if array.dtype.kind not in "iufV":
            refusal = InvalidArgumentError if array.dtype.kind == "c" else TypeError
            raise refusal(f"{prefix(message)}{which} takes real numbers, got {named(array.dtype)}")
        _check(which, compare, array, array.dtype.type(0), message=message, summarize=summarize)

    each_replica(check, x)


def _check(
    which: str, compare: _Compare, x: Any, y: Any, *, message: str | None, summarize: int | None
) -> None:
    first, second = pair(x, y, which)
    if compare not in (operator.eq, operator.ne) and first.dtype.kind not in "iufV":
        raise InvalidArgumentError(
            f"{prefix(message)}{which} needs numbers with an order, got {named(first.dtype)}"
        )
    holds = _broadcast(compare, first, second, which, message)
    if not holds.all():
        rule = f"x {_SYMBOLS[compare]} y"
        _fail(which, rule, holds, (first, second), message=message, summarize=summarize)


def _broadcast(operation: _Compare, x: np.ndarray, y: np.ndarray, which: str, message: str | None) -> Any:
    try:
        return operation(x, y)
    except ValueError as error:
        raise InvalidArgumentError(
            f"{prefix(message)}{which}: shapes {x.shape} and {y.shape} cannot be broadcast to one"
        ) from error


def _fail(
    which: str,
    rule: str,
    holds: Any,
    operands: tuple[np.ndarray, np.ndarray],
    *,
    message: str | None,
    summarize: int | None,
) -> None:
    holds = np.asarray(holds)
    first = tuple(int(index) for index in np.argwhere(~holds)[0])
    x, y = (text(np.broadcast_to(operand, holds.shape)[first]) for operand in operands)
    values = f"x = {x}, y = {y}"
    if first:
        shown = "; ".join(described(name, part, summarize) for name, part in zip("xy", operands, strict=True))
        where = f" at {np.count_nonzero(~holds)} of {holds.size} elements, the first at {list(first)}"
        values = f"{values} ({shown})"
    else:
        where = ""
    raise InvalidArgumentError(f"{prefix(message)}{which}: {rule} does not hold{where}: {values}")


def _tolerance(what: str, given: Any, dtype: np.dtype[Any]) -> Any:
    if given is None:
        return _default_tolerance(dtype)
    array = array_of(given, "assert_near")
    if array.dtype.kind not in "biufV":
        raise TypeError(f"assert_near: {what} must be a number, got {given!r:.80}")
    return array.astype(_real(dtype))


@cache
def _default_tolerance(dtype: np.dtype[Any]) -> Any:
    """10 times the distance from 1 to the next number. `np.finfo` does not know bfloat16."""
    number = _real(dtype).type
    one = epsilon = number(1)
    while one + epsilon / number(2) != one:
        epsilon = epsilon / number(2)
    return number(10) * epsilon


def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype


def _finite(part: Any, message: str) -> None:
    check_numerics(part, message)
