"""Encodes leaves of results for the driver: a step's result is often small, and pickling arrays is not cheap.

If there are many small leaves, similar ones travel as the rows of one array. Pickling an array takes microseconds, and
a result of 100,000 leaves would cost that on each replica, and again in the driver.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.backends.cupy import is_gpu_array
from workbench.backends.from_gpu import fetched
from workbench.runtime.comm.messages import INLINE_BYTES, PickledLeaf, RemoteLeaf

_SMALL_TYPES = (int, float, bool, complex, type(None))
_NUMBERS = "biufc"
_FEW = 64
"""Up to this many similar leaves are pickled one by one."""


class PackedLeaves(NamedTuple):
    """The leaves of a result.

    Attributes:
      leaves: The leaves for DONE; None for those that are rows.
      rows: For each array of shape `(rows, ...)`: the leaf number of each row, and whether leaves are NumPy scalars.
    """

    leaves: list[Any]
    rows: list[tuple[list[int], np.ndarray[Any, Any], bool]]


def packed(leaves: Sequence[Any]) -> list[Any] | PackedLeaves:
    """Encodes the leaves of a replica function's result for DONE."""
    if len(leaves) <= _FEW:
        return [travelling(leaf) for leaf in leaves]
    alike: dict[Any, list[int]] = {}
    for number, leaf in enumerate(leaves):
        if (key := _key(leaf)) is not None:
            alike.setdefault(key, []).append(number)
    rows = []
    together = set()
    for (dtype, shape, scalars), numbers in alike.items():
        if len(numbers) > _FEW:
            array = np.empty((len(numbers), *shape), dtype)
            if shape:
                np.concatenate(
                    [leaves[number] for number in numbers],
                    out=array.reshape(len(numbers) * shape[0], *shape[1:]),
                )
            else:
                array[:] = [leaves[number] for number in numbers]
            rows.append((numbers, array, scalars))
            together.update(numbers)
    return PackedLeaves(
        [None if number in together else travelling(leaf) for number, leaf in enumerate(leaves)], rows
    )


def unpacked(leaves: list[Any] | PackedLeaves) -> list[Any]:
    """The inverse of `packed`: for every leaf (value,), with its own memory, or a stand-in for the value."""
    if type(leaves) is not PackedLeaves:
        return [arrived(leaf) for leaf in leaves]
    found = [arrived(leaf) for leaf in leaves.leaves]
    for numbers, array, scalars in leaves.rows:
        if scalars:
            for number, value in zip(numbers, array, strict=True):
                found[number] = (value,)
        else:
            for number, row in zip(numbers, array, strict=True):
                found[number] = (np.array(row),)
    return found


def arrived(leaf: Any) -> Any:
    """The inverse of `travelling` for small plain leaves: (value,)."""
    if type(leaf) is not tuple or len(leaf) == 1:
        return leaf
    dtype, shape, data = leaf
    if shape is None:
        return (np.ndarray((), dtype, data)[()],)
    return (np.array(np.ndarray(shape, dtype, data)),)


def travelling(leaf: Any) -> tuple[Any, ...]:
    """Encodes a leaf for DONE: small plain ones as they are, small ones of uncommon types pickled, others described.

    Small NumPy arrays and scalars become (dtype, shape, bytes), with None for the shape of a scalar: pickling and
    unpickling an array takes 10 µs of a step's 150.
    """
    kind = type(leaf)
    if kind in _SMALL_TYPES:
        return (leaf,)
    if kind is np.ndarray:
        if leaf.nbytes > INLINE_BYTES or leaf.dtype.hasobject:
            return RemoteLeaf("numpy.ndarray", str(leaf.dtype), leaf.shape, leaf.nbytes)
        if leaf.dtype.isbuiltin == 1:
            if leaf.dtype.kind in _NUMBERS and leaf.flags.c_contiguous:
                return leaf.dtype.str, leaf.shape, leaf.tobytes()
            return (leaf,)
    if isinstance(leaf, np.generic) and leaf.dtype.isbuiltin == 1:
        return (leaf.dtype.str, None, leaf.tobytes()) if leaf.dtype.kind in _NUMBERS else (leaf,)
    if kind in (str, bytes) and len(leaf) <= INLINE_BYTES:
        return (leaf,)
    if is_gpu_array(leaf):
        if leaf.nbytes > INLINE_BYTES:
            dtype = str(leaf.dtype).rpartition(".")[2]
            return RemoteLeaf(
                f"{kind.__module__}.{kind.__qualname__}", dtype, tuple(leaf.shape), int(leaf.nbytes)
            )
        return (fetched(leaf),)
    name = f"{kind.__module__}.{kind.__qualname__}"
    shape = getattr(leaf, "shape", None)
    dtype = str(getattr(leaf, "dtype", "")).rpartition(".")[2]
    try:
        size = int(getattr(leaf, "nbytes", 0) or sys.getsizeof(leaf))
        described = None if shape is None else tuple(int(n) for n in shape)
    except Exception:  # a foreign object's attributes may raise anything
        size, described = 0, None
    try:
        small = pickle.dumps(leaf, protocol=5) if size <= INLINE_BYTES else b""
    except Exception:
        small = b""
    if small and len(small) <= INLINE_BYTES:
        return PickledLeaf(small)
    return RemoteLeaf(name, dtype, described, size)


def _key(leaf: Any) -> Any:
    """The properties that leaves in one array must share; None for leaves that are sent alone."""
    if type(leaf) is np.ndarray:
        dtype = leaf.dtype
        small = leaf.nbytes <= INLINE_BYTES and leaf.flags.c_contiguous
        return (dtype, leaf.shape, False) if small and dtype.kind in "biufc" and dtype.isnative else None
    if isinstance(leaf, np.number | np.bool_) and leaf.dtype.isbuiltin == 1:
        return leaf.dtype, (), True
    return None
