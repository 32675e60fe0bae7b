"""The operands of assertions: arrays of any library, Python numbers, texts, values with a component per replica."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import numpy as np

from workbench.backends.conversion import holds, leaf_types
from workbench.backends.from_gpu import fetched
from workbench.backends.numpy import STRING, require_values, view
from workbench.errors import InvalidArgumentError, TracingError, WrongType

_T = TypeVar("_T")
DEFAULT_SUMMARIZE = 3
_OF_PYTHON: dict[type, np.dtype[Any]] = {
    bool: np.dtype(np.bool_),
    float: np.dtype(np.float32),
    complex: np.dtype(np.complex128),
    str: STRING,
    bytes: STRING,
}
_WHOLE: Final = (np.dtype(np.int32), np.dtype(np.int64))
_NARROW_TO_WIDE: Final = [_OF_PYTHON[bool], *_WHOLE, _OF_PYTHON[float], _OF_PYTHON[complex], STRING]
_Nested: Final = (list, tuple, range)
_SURELY_FLOAT32: Final = 3e38


def each_replica(check: Callable[..., None], *operands: Any) -> None:
    """Calls `check` with the operands; once per replica if some of them have a component for each.

    Raises:
      InvalidArgumentError: if an operand is None, or operands have different numbers of components; and what `check`
        raises, naming the replica.
    """
    if any(operand is None for operand in operands):
        raise InvalidArgumentError("expected an array or a number, got None")
    distributed = [value for value in operands if _is_distributed(value)]
    if not distributed:
        check(*operands)
        return
    size = len(distributed[0].values)
    columns = [value.values_for(size) if _is_distributed(value) else (value,) * size for value in operands]
    for replica, components in enumerate(zip(*columns, strict=True)):
        try:
            check(*components)
        except (ValueError, TypeError) as error:
            raise type(error)(f"on replica {replica} of {size}: {error}") from error


def _is_distributed(value: Any) -> bool:
    # Recognised by a method, because the class belongs to a higher layer. Variables also have it, and are read as
    # arrays.
    return hasattr(value, "values_for") and not hasattr(value, "assign")


def pair(x: Any, y: Any, which: str) -> tuple[np.ndarray, np.ndarray]:
    """Both operands as arrays of one dtype; one without a dtype, such as a Python number, takes the other's.

    Args:
      x: An array, a number, a text, or nested lists of them.
      y: Another one.
      which: The assertion, for errors.

    Raises:
      InvalidArgumentError: if the dtypes differ, or a number does not fit the other's dtype.
    """
    first, second = array_of(x, which), array_of(y, which)
    if first.dtype != second.dtype:
        if is_plain(y):
            second = _as_dtype(second, first.dtype, which)
        elif is_plain(x):
            first = _as_dtype(first, second.dtype, which)
        else:
            raise InvalidArgumentError(
                f"{which}: x and y must have one dtype, got {named(first.dtype)} and {named(second.dtype)}; convert "
                f"one: y.astype({named(first.dtype)!r})"
            )
    return first, second


def array_of(x: Any, which: str) -> np.ndarray:
    """The operand as an array on the host; texts become objects of type bytes.

    Raises:
      TracingError: if JAX is tracing it: it has no numbers yet.
      TypeError: if it is not an array, a number, a text, or lists of them.
    """
    if isinstance(x, np.ndarray) and x.dtype.kind in "biufc":
        return x
    if isinstance(x, (str, bytes, *_Nested)) or getattr(x, "dtype", None) == STRING:
        plain = _rectangular(x)
        if plain.dtype.kind in "USO":
            return _texts(plain, which)
    try:
        require_values(x)
        return view(fetched(x))
    except TracingError as error:
        raise TracingError(
            f"{which} compares numbers, and this value has none while the function is being traced: return it from the "
            "replica function and check what run returns. Checks of shapes and dtypes work here"
        ) from error


def dtype_of(x: Any) -> np.dtype[Any]:
    """The dtype of an array, traced or not; Python's floats count as float32, integers as int32 if they fit.

    The same holds in lists, and for types derived from Python's, as in TensorFlow.

    Raises:
      InvalidArgumentError: if an integer does not fit 64 bits, or rows differ in length.
    """
    if (kind := _python_type(type(x))) is not None:
        return _whole([x]) if kind is int else _OF_PYTHON[kind]
    known = getattr(x, "dtype", None)
    if isinstance(known, np.dtype):
        return STRING if known.kind in "US" else known
    if isinstance(x, range):
        return _whole(x)
    if not isinstance(x, _Nested):
        return array_of(x, "dtype").dtype
    leaves = _leaf_dtypes(x) or {_OF_PYTHON[float]}
    if len(leaves) == 1:
        _rectangular(x)
        return leaves.pop()
    together = array_of(x, "dtype").dtype
    return (
        max(leaves, key=_NARROW_TO_WIDE.index)
        if leaves.issubset(_NARROW_TO_WIDE) and is_plain(x)
        else together
    )


def _python_type(kind: type) -> type | None:
    """The Python numbers and texts that a type, or its base class, belongs to; None if none."""
    if issubclass(kind, np.generic):  # some NumPy types derive from Python types
        return None
    return next((base for base in kind.__mro__ if base is int or base in _OF_PYTHON), None)


def _leaf_dtypes(x: Any) -> set[np.dtype[Any]]:
    """The dtypes in nested lists; for most types without reading each value."""
    dtypes, whole, other = set(), set(), set()
    types = leaf_types(x)
    for kind in types:
        python = _python_type(kind)
        if python is int:
            whole.add(kind)
        elif python is not None:
            dtypes.add(_OF_PYTHON[python])
        elif issubclass(kind, np.number | np.bool_):
            dtypes.add(np.dtype(kind))
        else:
            other.add(kind)
    if whole == types and (array := _rectangular(x)).dtype == np.int64:
        return {_whole(array)}
    if whole:
        dtypes.add(_whole([leaf for leaf in _leaves(x) if type(leaf) in whole]))
    if other:
        dtypes.update(dtype_of(leaf) for leaf in _leaves(x) if type(leaf) in other)
    return dtypes


def _whole(numbers: range | list[int] | np.ndarray) -> np.dtype[Any]:
    """The narrower of TensorFlow's two integer dtypes that holds these integers."""
    if isinstance(numbers, range):
        numbers = [numbers[0], numbers[-1]] if numbers else [0]
    if isinstance(numbers, list):
        ends = min(numbers), max(numbers)
    else:
        ends = int(numbers.min()), int(numbers.max())
    for dtype in _WHOLE:
        limits = np.iinfo(dtype)
        if limits.min <= ends[0] and ends[1] <= limits.max:
            return dtype
    raise InvalidArgumentError(f"{ends[0] if ends[0] < limits.min else ends[1]} does not fit 64 bits")


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of an array, traced or not, of a number, or of nested lists."""
    shape = getattr(x, "shape", None)
    if shape is not None and hasattr(x, "dtype"):
        return tuple(int(size) for size in shape)
    if isinstance(x, range):
        return (len(x),)
    if isinstance(x, _Nested):
        return _rectangular(x).shape
    if _python_type(type(x)) is not None:
        return ()
    return array_of(x, "shape").shape


def _rectangular(x: Any) -> np.ndarray:
    # Texts become objects: NumPy's own text arrays turn numbers into text and drop trailing NULs.
    has_texts = any(issubclass(kind, str | bytes) for kind in leaf_types(x))
    try:
        array = np.asarray(x, object if has_texts else None)
    except ValueError as error:
        raise _ragged(x) from error
    if has_texts and any(isinstance(value, _Nested) for value in array.flat):
        raise _ragged(x)
    return array


def _ragged(x: Any) -> InvalidArgumentError:
    return InvalidArgumentError(f"the rows of {x!r:.60} differ in length, so it is not an array")


def given(x: _T) -> _T:
    """The operand as a checked value: lists and Python's floats as arrays; anything else unchanged."""
    number: Any = x
    if type(number) is float:
        if abs(number) < _SURELY_FLOAT32:  # a fast path for most numbers
            return np.float32(number)  # type: ignore[return-value]
    elif not isinstance(x, _Nested):
        return x
    with np.errstate(over="ignore"):  # a caller that checks for infinities finds them in the result
        return array_of(x, "x").astype(dtype_of(x))  # type: ignore[return-value]


def named(dtype: np.dtype[Any]) -> str:
    """The dtype's name, "string" for texts."""
    return "string" if dtype == STRING else dtype.name


def described(name: str, x: Any, summarize: int | None) -> str:
    """An operand in an error: name, dtype and shape, and its first `summarize` elements (3; all if negative).

    Args:
      name: The operand in the assertion, such as "x".
      x: The operand.
      summarize: Number of elements to show; None for 3, negative for all.
    """
    array = array_of(x, name)
    sizes = "[" + ",".join(map(str, array.shape)) + "]" if array.shape else ""
    count = DEFAULT_SUMMARIZE if summarize is None else int(summarize)
    flat = array.reshape(-1)
    shown = flat if count < 0 else flat[:count]
    more = ", …" if len(shown) < len(flat) else ""
    values = ", ".join(text(value) for value in shown)
    return f"{name} {named(array.dtype)}{sizes} = " + (f"[{values}{more}]" if array.shape else values)


def text(value: Any) -> str:
    """One element in an error, at most 80 characters."""
    return (repr(value) if isinstance(value, bytes) else str(value))[:80]


def not_finite(array: np.ndarray) -> str:
    """How many elements are not finite, and the first one; "" if all are finite."""
    finite = np.isfinite(array)
    if finite.all():
        return ""
    nan = int(np.isnan(array).sum())
    infinite = int(array.size - finite.sum()) - nan
    first = np.argwhere(~finite)[0].tolist()
    at = f", the first at {first}" if first else ""
    shape = ",".join(map(str, array.shape))
    return f"{nan} NaN and {infinite} infinite of {array.size} elements of {array.dtype.name}[{shape}]{at}"


def prefix(message: str | None) -> str:
    """The beginning of an error: the user's message."""
    return "" if message is None or (isinstance(message, str) and not message) else f"{message}: "


def is_plain(x: Any) -> bool:
    """Whether the operand has no dtype of its own: a Python number, a text, or lists of them."""
    if hasattr(x, "dtype"):
        return False
    other = {kind for kind in leaf_types(x) if _python_type(kind) is None}
    return not other or all(not hasattr(leaf, "dtype") for leaf in _leaves(x) if type(leaf) in other)


def _leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, _Nested):
        for part in x:
            yield from _leaves(part)
    else:
        yield x


def _as_dtype(array: np.ndarray, dtype: np.dtype[Any], which: str) -> np.ndarray:
    if array.dtype.kind == "b" or not holds(dtype, array):
        raise WrongType(
            f"{which}: {text(array.tolist())} does not fit the dtype of the other operand, {named(dtype)}; give an "
            "array of that dtype"
        )
    return array.astype(dtype)


def _texts(plain: np.ndarray, which: str) -> np.ndarray:
    texts = np.empty(plain.shape, STRING)
    for index, value in np.ndenumerate(plain):
        if not isinstance(value, str | bytes):
            raise TypeError(f"{which} takes numbers or texts, got {type(value).__name__}: {value!r:.80}")
        texts[index] = value.encode() if isinstance(value, str) else value
    return texts
