"""Reduces and gathers trees with very many leaves: similar leaves are computed as one array.

A NumPy call costs more than the arithmetic on a small array, and fetching a value costs a message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from workbench.distribute.arrays.host_reduce import Axis
from workbench.distribute.values.distributed_values import DistributedValues
from workbench.errors import InvalidArgumentError
from workbench.runtime.driver.handle import Handle, fetch_all

FEW = 8
"""Up to this many leaves are computed one by one, which is not slower."""
_LARGE_BYTES = 64 * 1024  # from this size on, copying an array costs more than the saved calls


def bring(leaves: Sequence[Any]) -> None:
    """Fetches the missing components of all leaves, with few messages."""
    if len(leaves) > 1:
        handles = [leaf.handle for leaf in leaves if isinstance(leaf, DistributedValues)]
        fetch_all([handle for handle in handles if type(handle) is Handle])


def together(
    combine: Callable[[list[np.ndarray[Any, Any]], Axis], Any],
    components: dict[int, tuple[Any, ...]],
    axis: Axis,
) -> dict[int, Any]:
    """Combines similar leaves as one array with a row for each.

    Args:
      combine: Called with one array of shape (leaves, ...) per replica, and `axis` counted in these.
      components: By leaf number, one value per replica.
      axis: The axis that the user gave, counted in a leaf.

    Returns:
      Results by leaf number, without leaves that have too few similar ones, or are not plain arrays.
    """
    groups: dict[Any, list[int]] = {}
    for number, parts in components.items():
        if (key := _alike(parts)) is not None:
            groups.setdefault(key, []).append(number)
    results: dict[int, Any] = {}
    for (kind, shapes), numbers in groups.items():
        rank = len(shapes[0])
        inner = _inner(axis, rank)
        if len(numbers) <= FEW or inner is _NO_SUCH_AXIS:
            continue
        columns = zip(*[components[number] for number in numbers], strict=True)
        try:
            found = combine([_stacked(column, kind) for column in columns], inner)
        except InvalidArgumentError:  # computed one by one, so that the error describes a leaf
            continue
        rows = found if kind is float else [found[row, ...] for row in range(len(numbers))]
        results.update(zip(numbers, rows, strict=True))
    return results


_NO_SUCH_AXIS = object()


def _inner(axis: Axis, rank: int) -> Any:
    """A leaf's `axis` in an array with an additional first dimension."""
    if axis is None:
        return None
    axes = axis if isinstance(axis, tuple) else (axis,)
    if any(not -rank <= item < rank for item in axes):
        return _NO_SUCH_AXIS  # the error then describes a leaf
    moved = tuple(item % rank + 1 for item in axes)
    return moved if isinstance(axis, tuple) else moved[0]


def _alike(parts: tuple[Any, ...]) -> Any:
    """The properties that leaves computed together must share; None for leaves that are computed alone."""
    first = parts[0]
    kind: Any = type(first)
    if kind is float:
        return (kind, ((),)) if all(type(part) is float for part in parts) else None
    if kind is np.ndarray:
        dtype = first.dtype
        if dtype.kind not in "iufc" or not dtype.isnative or first.nbytes > _LARGE_BYTES:
            return None
        if all(type(part) is np.ndarray and part.dtype == dtype for part in parts):
            return dtype, tuple([part.shape for part in parts])
    return None


def _stacked(column: Sequence[Any], kind: Any) -> np.ndarray[Any, Any]:
    if kind is float:
        return np.array(column, np.float32)  # the dtype that `as_array` uses for each
    return np.stack(column)
