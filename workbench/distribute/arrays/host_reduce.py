"""Reduces and gathers components on the host, for `Strategy.reduce` and `Strategy.gather`."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from workbench.backends import numpy as backend
from workbench.backends.users_line import Apply, apply_at_users_line
from workbench.distribute.arrays.as_array import Array, as_array, describe
from workbench.distribute.arrays.indexed_slices import IndexedSlices, concatenate
from workbench.distribute.arrays.reduce_op import ReduceOp
from workbench.errors import InvalidArgumentError, WrongType

_NO_NUMBERS = "bOSUMm"
_AXES: Final = "None, an integer or a tuple of integers"
Axis = int | tuple[int, ...] | None


def as_axis(axis: Any) -> Axis:
    """`axis` of a reduction: None, an integer, or several.

    Raises:
      TypeError: if it is something else.
    """
    if axis is None:
        return None
    if isinstance(axis, (tuple, list)):
        return tuple(whole_axis(item, _AXES) for item in axis)
    return whole_axis(axis, _AXES)


def whole_axis(axis: Any, wanted: str = "an integer") -> int:
    """Checks a user's axis, which may also be an array without dimensions.

    Args:
      axis: The user's value.
      wanted: Describes valid values, for the error.

    Raises:
      TypeError: if it is not an integer.
    """
    try:
        if isinstance(axis, bool):
            raise TypeError
        return operator.index(axis)
    except TypeError:
        raise WrongType(f"axis must be {wanted}, got {axis!r:.60}") from None


def reduce_components(reduce_op: ReduceOp, components: Sequence[Any], axis: Axis) -> Any:
    """Combines one value per replica.

    Args:
      reduce_op: SUM or MEAN; a mean of integers is float64.
      components: Arrays, numbers or IndexedSlices, in replica order.
      axis: Dimensions to reduce first within each component, or None. A mean then divides by the actual number of
        elements, so that uneven and empty components have the right weight.

    Returns:
      An array of the type of the first component; IndexedSlices with all rows for IndexedSlices.

    Raises:
      InvalidArgumentError: if dtypes or shapes do not fit together, or the dtype cannot be reduced.
    """
    if isinstance(components[0], IndexedSlices):
        if axis is not None:
            components = [part.dense() for part in components]
        else:
            return reduce_slices(reduce_op, components)
    arrays = [as_array(component) for component in components]
    _check_dtypes(arrays)
    apply = apply_at_users_line()
    count: float = len(arrays)
    dtype = arrays[0].dtype
    wide = backend.accumulator(dtype)
    if axis is not None:
        for replica, array in enumerate(arrays):
            check_axis(array, axis, f"replica {replica}")
        count = sum(_extent(array, axis) for array in arrays)
        summing = _summing(wide, reduce_op)
        arrays = [np.asarray(apply(np.add.reduce, array, axis, dtype=summing)) for array in arrays]
    _check_shapes(arrays, axis)
    result = _total(arrays, _summing(wide, reduce_op), apply)
    if reduce_op is ReduceOp.MEAN:
        if count:
            apply(np.divide, result, result.dtype.type(count), out=result)
        else:  # a mean over no elements at all is NaN
            with np.errstate(invalid="ignore", divide="ignore"):
                result = np.asarray(np.divide(result, result.dtype.type(count)))
        dtype = backend.mean_dtype(dtype)
    if result.dtype != dtype:
        result = backend.narrowed(result, dtype, apply)
    return backend.like(result, components[0])


def reduce_slices(reduce_op: ReduceOp, parts: Sequence[IndexedSlices]) -> IndexedSlices:
    """The sum (all rows, duplicates kept) or mean of sparse rows."""
    rows = concatenate(parts)
    if reduce_op is ReduceOp.SUM:
        return rows
    values = np.asarray(rows.values)
    mean = (values / len(parts)).astype(backend.mean_dtype(values.dtype), copy=False)
    return IndexedSlices(mean, rows.indices, rows.dense_shape)


def require_dense(value: Any) -> None:
    """Refuses values that cannot be gathered.

    Raises:
      NotImplementedError: if `value` is IndexedSlices.
    """
    if isinstance(value, IndexedSlices):
        raise NotImplementedError(
            "gather and all_gather do not take IndexedSlices; gather their values and indices, or their dense() array"
        )


def gather_components(components: Sequence[Any], axis: Any) -> Any:
    """Concatenates one array per replica along `axis`, in replica order.

    An array without elements along `axis` fits any other, whatever its rank and other dimensions, because a host that
    has run out of data cannot know the lengths of the others' lists in this step.

    Raises:
      InvalidArgumentError: if they are scalars, have no such axis, or differ in dtype; if those that have elements
        along `axis` differ in rank or another dimension.
    """
    axis = whole_axis(axis)
    arrays = [part.dense() if isinstance(part, IndexedSlices) else as_array(part) for part in components]
    leader = next((n for n, array in enumerate(arrays) if _has_any(array, axis)), 0)
    first = arrays[leader]
    for replica, array in enumerate(arrays):
        if array.ndim == 0:
            raise InvalidArgumentError(
                f"gather needs arrays with at least one dimension, replica {replica} has a scalar "
                f"{describe(array)}; give it one with x[np.newaxis], or use reduce"
            )
        check_axis(array, axis, f"replica {replica}")
        off_axis = [n for d, n in enumerate(array.shape) if d != axis % array.ndim]
        wanted = [n for d, n in enumerate(first.shape) if d != axis % first.ndim]
        fits = (array.ndim == first.ndim and off_axis == wanted) or not _has_any(array, axis)
        if array.dtype != first.dtype or not fits:
            raise InvalidArgumentError(
                f"gather along axis {axis}: replica {leader} has {describe(first)}, replica {replica} has "
                f"{describe(array)}; all must have one dtype, and shapes that differ along axis {axis} only"
            )
    filled = [array for array in arrays if _has_any(array, axis)] or arrays[:1]
    return backend.like(np.concatenate(filled, axis=axis), components[0])


def _has_any(array: Array, axis: int) -> bool:
    return -array.ndim <= axis < array.ndim and bool(array.shape[axis])


def _summing(wide: np.dtype[Any], reduce_op: ReduceOp) -> np.dtype[Any]:
    return np.dtype(np.float64) if reduce_op is ReduceOp.MEAN and wide.kind in "iu" else wide


def _total(arrays: Sequence[Array], wide: np.dtype[Any], apply: Apply) -> Array:
    total = np.array(arrays[0], wide)
    for array in arrays[1:]:
        apply(np.add, total, array.astype(wide, copy=False), out=total)
    return total


def _check_dtypes(arrays: Sequence[Array]) -> None:
    first = arrays[0]
    require_reducible(first.dtype, "reduce")
    for replica, array in enumerate(arrays):
        if array.dtype != first.dtype:
            raise InvalidArgumentError(
                f"reduce needs one dtype: replica 0 has {describe(first)}, replica {replica} has {describe(array)}; "
                f"convert them in the replica function"
            )


def require_reducible(dtype: Any, what: str) -> None:
    """Refuses dtypes without a sum in TensorFlow: bools, strings, dates, objects and records.

    Raises:
      WrongType: if `dtype`, of any library, is one of these.
    """
    kind = getattr(dtype, "kind", "")
    if kind in _NO_NUMBERS if kind else str(dtype) == "torch.bool":
        objects = " (text or other Python objects)" if kind == "O" else ""
        raise WrongType(
            f"{what} needs numbers, got dtype {dtype}{objects}; convert them first, for example with x.astype(np.int32)"
        )
    if kind == "V" and backend.is_record(dtype):
        raise WrongType(
            f"{what} needs numbers, got records {backend.dtype_text(dtype)}; {backend.RECORD_REMEDY}"
        )


def _check_shapes(arrays: Sequence[Array], axis: Axis) -> None:
    first = arrays[0]
    for replica, array in enumerate(arrays):
        if array.shape != first.shape:
            after = "" if axis is None else f" after reducing axis {axis}"
            raise InvalidArgumentError(
                f"reduce needs equal shapes{after}: replica 0 has {describe(first)}, replica {replica} has "
                f"{describe(array)}; name the dimension that differs (usually the batch, axis=0) as axis"
            )


def axes_text(ndim: int) -> str:
    """The axes of an array with `ndim` dimensions, as errors recommend them."""
    return "axis=0" if ndim == 1 else f"an axis from 0 to {ndim - 1}"


def check_axis(array: Any, axis: Axis, whose: str = "each replica") -> None:
    """Refuses axes that an array does not have.

    Args:
      array: The array.
      axis: A dimension, several, or None.
      whose: The subject of the error's sentence.

    Raises:
      InvalidArgumentError: if the array has no such axis; it names `whose` array.
    """
    axes = axis if isinstance(axis, tuple) else (axis,)
    for item in axes:
        if item is not None and not -array.ndim <= item < array.ndim:
            raise InvalidArgumentError(
                f"axis {item} is out of range: {whose} has {describe(array)} of rank {array.ndim}; "
                + ("use axis=None for scalars" if array.ndim == 0 else f"use {axes_text(array.ndim)}")
            )


def _extent(array: Array, axis: int | tuple[int, ...]) -> int:
    axes = axis if isinstance(axis, tuple) else (axis,)
    return math.prod(array.shape[item] for item in axes)


def unreduced(reduce_op: ReduceOp, value: Any, replicas: int) -> Any:
    """The result of reducing an ordinary value across replicas: the value itself, if that is meaningful.

    Args:
      reduce_op: The operation.
      value: A value that is not distributed.
      replicas: Number of replicas that count as having it.

    Raises:
      ValueError: for a SUM over several replicas.
    """
    if replicas == 1 or reduce_op is ReduceOp.MEAN:
        return value
    raise ValueError(
        f"reduce with SUM over {replicas} replicas needs a distributed value, got {describe(as_array(value))}, "
        f"which is not one per replica; give what strategy.run or distribute_values_from_function returned, or "
        f"multiply by {replicas} if each replica is meant to count"
    )
