"""Many small leaves of a result on their way to the driver: those that are alike travel as the rows of one array.

Pickling an array takes microseconds, which a result of 100,000 leaves pays on each replica, and once more here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.runtime.comm.messages import INLINE_BYTES

_FEW = 64
"""So many leaves that are alike are pickled one by one."""


class PackedLeaves(NamedTuple):
    """The leaves of a result.

    Attributes:
      leaves: As DONE carries them; None for those that are rows.
      rows: (number of the leaf of each row, shape `(rows, ...)`; whether leaves are NumPy's scalars) of each array.
    """

    leaves: list[Any]
    rows: list[tuple[list[int], np.ndarray[Any, Any], bool]]


def packed(leaves: Sequence[Any], travelling: Callable[[Any], tuple[Any, ...]]) -> list[Any] | PackedLeaves:
    """Leaves of a result as DONE carries them.

    Args:
      leaves: The results of a replica function.
      travelling: What to make of a leaf that travels alone.
    """
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
    """The inverse of `packed`: every leaf with memory of its own."""
    if type(leaves) is not PackedLeaves:
        return leaves  # type: ignore[return-value]
    found = leaves.leaves
    for numbers, array, scalars in leaves.rows:
        if scalars:
            for number, value in zip(numbers, array, strict=True):
                found[number] = (value,)
        else:
            for number, row in zip(numbers, array, strict=True):
                found[number] = (np.array(row),)
    return found


def _key(leaf: Any) -> Any:
    """What must be equal for leaves to be rows of one array, None for those that travel alone."""
    if type(leaf) is np.ndarray:
        dtype = leaf.dtype
        small = leaf.nbytes <= INLINE_BYTES and leaf.flags.c_contiguous
        return (dtype, leaf.shape, False) if small and dtype.kind in "biufc" and dtype.isnative else None
    if isinstance(leaf, np.number | np.bool_) and leaf.dtype.isbuiltin == 1:
        return leaf.dtype, (), True
    return None
