"""How the arrays of one all_gather are laid out: those of a replica travel behind each other, in one block."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from workbench.backends import numpy as backend


class GatherLayout:
    """Where arrays are in the blocks of all replicas, which may differ along one dimension of each array.

    Arrays of one dtype lie together, those of the largest items first, so that each is aligned.

    Attributes:
      what: Dtypes and shapes in words, with "*" for the dimension that may differ.
      extents: Length of this replica's arrays along that dimension, shape `(arrays,)`, int64.
    """

    def __init__(self, views: Sequence[np.ndarray], axes: Sequence[int]) -> None:
        """Arrays in the byte order of the machine, and the dimension of each, counted from the front."""
        self._views = views
        self._axes = axes
        found = [_described(view.dtype, view.shape, axis) for view, axis in zip(views, axes, strict=True)]
        self.what = ", ".join([text for text, _ in found])
        self.extents = np.array([view.shape[axis] for view, axis in zip(views, axes, strict=True)], np.int64)
        self._dtypes = sorted({view.dtype for view in views}, key=lambda dtype: (-dtype.itemsize, dtype.name))
        places = {dtype: place for place, dtype in enumerate(self._dtypes)}
        self._order = sorted(range(len(views)), key=lambda index: places[views[index].dtype])
        self._bytes_of_one = np.array([nbytes for _, nbytes in found], np.int64)[self._order]

    def block(self) -> np.ndarray:
        """This replica's arrays, copied behind each other: shape `(bytes,)`, uint8."""
        ends = self._ends(self.extents)
        block = np.empty(ends[-1], np.uint8)
        low = 0
        for index, high in zip(self._order, ends.tolist(), strict=True):
            view = self._views[index]
            np.copyto(block[low:high].view(view.dtype).reshape(view.shape), view)
            low = high
        return block

    def by_dtype(self, block: np.ndarray) -> list[np.ndarray]:
        """The elements in what `block` gave, shape `(elements,)` for each dtype."""
        sizes = [sum(view.nbytes for view in self._views if view.dtype == dtype) for dtype in self._dtypes]
        parts = np.split(block, np.cumsum(sizes)[:-1])
        return [part.view(dtype) for part, dtype in zip(parts, self._dtypes, strict=True)]

    def concatenated(self, blocks: Sequence[np.ndarray], extents: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Each array of all replicas, one behind the other.

        Args:
          blocks: What `block` gave on each replica, in rank order.
          extents: Likewise.
        """
        ends = [self._ends(each).tolist() for each in extents]
        lengths = [each.tolist() for each in extents]
        lows = [0] * len(blocks)
        results: list[np.ndarray] = [None] * len(self._views)  # type: ignore[list-item]
        for place, index in enumerate(self._order):
            view, axis = self._views[index], self._axes[index]
            before, after = view.shape[:axis], view.shape[axis + 1 :]
            parts = []
            for rank, block in enumerate(blocks):
                high = ends[rank][place]
                part = block[lows[rank] : high].view(view.dtype)
                parts.append(part.reshape(*before, lengths[rank][index], *after))
                lows[rank] = high
            results[index] = np.concatenate(parts, axis=axis)
        return results

    def _ends(self, extents: np.ndarray) -> np.ndarray:
        """Where the arrays of a replica end in its block, in bytes, in the order in which they lie there."""
        return np.cumsum(extents[self._order] * self._bytes_of_one)


@functools.lru_cache(maxsize=1024)
def _described(dtype: np.dtype, shape: tuple[int, ...], axis: int) -> tuple[str, int]:
    """An array in words, and the bytes of one element along `axis`."""
    others = shape[:axis] + shape[axis + 1 :]
    sizes = ["*" if i == axis else str(n) for i, n in enumerate(shape)]
    return f"{backend.dtype_text(dtype)}[{','.join(sizes)}]", math.prod(others) * dtype.itemsize
