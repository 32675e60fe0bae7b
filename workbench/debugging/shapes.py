"""Assertions about shapes, which hold for traced values, too (as those of tf.debugging)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

from workbench.arguments import several
from workbench.debugging.operands import described, dtype_of, each_replica, prefix, shape_of
from workbench.errors import InvalidArgumentError, WrongType

_ANY = (None, ".")
_LEADING = (..., "...", "*")
_PAIRS = "[(x, ('N', 3))]"


def assert_rank(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Checks that `x` has `rank` dimensions (as tf.debugging.assert_rank).

    Args:
      x: An array, a number, or a value with a component per replica.
      rank: A whole number.
      message: The beginning of the error's message.
      name: Taken for compatibility, without effect.

    Raises:
      InvalidArgumentError: if it has more or fewer.
      TypeError: if `rank` is not a whole number.
    """
    wanted = _rank(rank, "assert_rank")

    def check(x: Any) -> None:
        if len(shape_of(x)) != wanted:
            raise InvalidArgumentError(
                f"{prefix(message)}assert_rank: x must have rank {wanted}, got {_shaped(x)}"
            )

    each_replica(check, x)


def assert_rank_at_least(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Checks that `x` has `rank` dimensions or more (as tf.debugging.assert_rank_at_least).

    Args:
      x: An array, a number, or a value with a component per replica.
      rank: A whole number.
      message: The beginning of the error's message.
      name: Taken for compatibility, without effect.

    Raises:
      InvalidArgumentError: if it has fewer.
      TypeError: if `rank` is not a whole number.
    """
    least = _rank(rank, "assert_rank_at_least")

    def check(x: Any) -> None:
        if len(shape_of(x)) < least:
            raise InvalidArgumentError(
                f"{prefix(message)}assert_rank_at_least: x must have rank {least} or more, got {_shaped(x)}"
            )

    each_replica(check, x)


def assert_rank_in(x: Any, ranks: Iterable[Any], message: str | None = None, name: str | None = None) -> None:
    """Checks that the number of dimensions of `x` is among `ranks` (as tf.debugging.assert_rank_in).

    Args:
      x: An array, a number, or a value with a component per replica.
      ranks: Whole numbers.
      message: The beginning of the error's message.
      name: Taken for compatibility, without effect.

    Raises:
      InvalidArgumentError: if it is not among them.
      TypeError: if one of `ranks` is not a whole number.
    """
    wanted = [_rank(rank, "assert_rank_in") for rank in several(ranks, "assert_rank_in: ranks", "[1, 2]")]

    def check(x: Any) -> None:
        if len(shape_of(x)) not in wanted:
            raise InvalidArgumentError(
                f"{prefix(message)}assert_rank_in: x must have a rank of {wanted}, got {_shaped(x)}"
            )

    each_replica(check, x)


def assert_scalar(tensor: Any, message: str | None = None, name: str | None = None) -> None:
    """Checks that `tensor` has no dimensions (as tf.debugging.assert_scalar).

    Args:
      tensor: An array, a number, or a value with a component per replica.
      message: The beginning of the error's message.
      name: Taken for compatibility, without effect.

    Raises:
      InvalidArgumentError: if it has dimensions, like an array of shape (1,).
    """

    def check(tensor: Any) -> None:
        if shape_of(tensor) != ():
            raise InvalidArgumentError(
                f"{prefix(message)}assert_scalar: expected a scalar, got {_shaped(tensor)}"
            )

    each_replica(check, tensor)


def assert_shapes(
    shapes: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Checks shapes, and that sizes with the same symbol are equal (as tf.debugging.assert_shapes).

    A shape has an entry per dimension: a number or a text of digits is a size; None and "." are any size; everything
    else is a symbol for one size in all shapes. A leading `...` or "*" leaves all but the last dimensions open. A text
    is read letter by letter: "NQ" is ("N", "Q"). Scalars, and shapes without entries, also after `...`, count as one
    dimension of size 1. None instead of a shape is any shape.

        wb.debugging.assert_shapes([(x, ("N", "Q")), (y, ("N", "D")), (parameters, ("Q",)), (loss, ())])

    Args:
      shapes: Pairs of array and shape, or a dict from hashable arrays to shapes. Values with a component per replica
        are checked replica by replica.
      data: Arrays and strings that the error shows; by default the array that does not fit.
      summarize: How many elements of each the error shows: 3 by default, all if negative.
      message: The beginning of the error's message.
      name: Taken for compatibility, without effect.

    Raises:
      InvalidArgumentError: for the first array that does not fit; for `...` that is not at the beginning.

    >>> x, y = np.zeros((5, 2)), np.zeros((5, 3))
    >>> wb.debugging.assert_shapes([(x, ("N", "Q")), (y, ("N", "D"))])
    >>> wb.debugging.assert_shapes([(x, ("N", "Q")), (y, ("N", "Q"))])
    Traceback (most recent call last):
        ...
    workbench.errors.InvalidArgumentError: assert_shapes: array 1 has shape (5, 3), where 'Q' is 3; it is 2 in ...
    """
    given = shapes.items() if isinstance(shapes, dict) else shapes
    pairs = [
        (array, shape)
        for array, shape in map(_pair, several(given, "assert_shapes: shapes", _PAIRS))
        if shape is not None
    ]
    wanted = [_entries(shape) for _, shape in pairs]

    def check(*arrays: Any) -> None:
        sizes: dict[Any, tuple[int, int]] = {}
        for index, (array, (leading, entries)) in enumerate(zip(arrays, wanted, strict=True)):
            if problem := _misfit(shape_of(array), leading, entries, sizes, index):
                shown = [array] if data is None else data
                texts = [
                    part
                    if isinstance(part, str)
                    else described(f"array {index}" if data is None else "data", part, summarize)
                    for part in shown
                ]
                raise InvalidArgumentError(f"{prefix(message)}assert_shapes: {problem} ({'; '.join(texts)})")

    each_replica(check, *(array for array, _ in pairs))


def _pair(pair: Any) -> tuple[Any, Any]:
    if isinstance(pair, tuple | list) and len(pair) == 2:
        return pair[0], pair[1]
    raise WrongType(f"assert_shapes: shapes has pairs of array and shape, such as {_PAIRS}, got {pair!r:.60}")


def _entries(shape: Any) -> tuple[bool, list[Any]]:
    """Whether leading dimensions are left open, and the entries of the others: None, a size or a symbol."""
    if isinstance(shape, Integral):
        raise WrongType(f"assert_shapes: a shape is a tuple, got {shape}; write ({shape},)")
    if not isinstance(shape, Iterable):
        raise WrongType(f"assert_shapes: a shape is a tuple, such as ('N', 3), got {shape!r:.60}")
    given = list(shape)
    leading = bool(given) and any(given[0] is mark or given[0] == mark for mark in _LEADING)
    entries = given[1:] if leading else given
    if any(entry is ... or entry in ("...", "*") for entry in entries if not isinstance(entry, Integral)):
        raise InvalidArgumentError(f"assert_shapes: ... and * stand only first in a shape, got {shape!r}")
    return leading, [_entry(entry) for entry in entries]


def _entry(entry: Any) -> Any:
    if entry in _ANY:
        return None
    return (
        int(entry) if isinstance(entry, Integral) or (isinstance(entry, str) and entry.isdigit()) else entry
    )


def _misfit(
    shape: tuple[int, ...], leading: bool, entries: list[Any], sizes: dict[Any, tuple[int, int]], index: int
) -> str:
    """Why the shape of array `index` does not fit, or "". Records each symbol's size, and which array set it."""
    whole = shape
    if len(entries) <= 1 and (leading or len(shape) <= 1):
        # A scalar and a shape without entries count as one dimension of size 1.
        shape, entries = shape or (1,), entries or [1]
    if len(shape) < len(entries) or (len(shape) > len(entries) and not leading):
        return f"array {index} has shape {whole}, expected {len(entries)} dimensions{' or more' if leading else ''}"
    inner = shape[len(shape) - len(entries) :]
    for size, entry in zip(inner, entries, strict=True):
        if isinstance(entry, int):
            if size != entry:
                return f"array {index} has shape {whole}, expected a size of {entry} where it has {size}"
        elif entry is not None:
            known, origin = sizes.setdefault(entry, (size, index))
            if known != size:
                return f"array {index} has shape {whole}, where {entry!r} is {size}; it is {known} in array {origin}"
    return ""


def _rank(rank: Any, which: str) -> int:
    if type(rank) is int:
        return rank
    if rank is None or shape_of(rank) != ():
        raise InvalidArgumentError(f"{which}: a rank is one whole number, got {rank!r:.80}")
    if dtype_of(rank).kind not in "iu":
        raise TypeError(f"{which}: a rank is a whole number, got {rank!r:.80} of type {type(rank).__name__}")
    return int(rank)


def _shaped(x: Any) -> str:
    shape = shape_of(x)
    return f"rank {len(shape)} with shape {shape}"
