"""The layout of an all_gather's arrays: each replica's arrays form one block, one after another.

Their shapes travel with them, so that no replica needs to know another's. A part without elements along the axis fits
any other, because a host that has run out of data cannot know how long the other hosts' lists are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from workbench.backends import numpy as backend
from workbench.communicators.core.call import difference
from workbench.communicators.core.failure import Failure
from workbench.communicators.core.link import Link
from workbench.communicators.core.position import Position

Shape = tuple[int, ...]


class GatherLayout:
    """Where each array is in the blocks of all replicas.

    Arrays of one dtype are adjacent, the dtypes with the largest items first, so that each array is aligned.

    Attributes:
      what: Dtypes and shapes in words, with "*" for the gathered dimension.
      alike: Dtypes in words; they must be equal on all replicas.
      dtypes: The dtype of each array.
      shapes: See `written_shapes`.
    """

    def __init__(self, views: Sequence[np.ndarray], axis: int) -> None:
        """Lays out arrays in native byte order, each of which has that axis."""
        self._views = views
        self._axis = axis
        self.dtypes = [view.dtype for view in views]
        self.what = in_words(self.dtypes, [view.shape for view in views], axis)
        self.alike = ", ".join(map(backend.dtype_text, self.dtypes))
        self.shapes = written_shapes(views)
        self._by_size = sorted(set(self.dtypes), key=lambda dtype: (-dtype.itemsize, dtype.name))
        places = {dtype: place for place, dtype in enumerate(self._by_size)}
        self._order = sorted(range(len(views)), key=lambda index: places[views[index].dtype])

    def block(self) -> np.ndarray:
        """This replica's arrays, copied one after another: shape `(bytes,)`, uint8."""
        block = np.empty(sum(view.nbytes for view in self._views), np.uint8)
        low = 0
        for index in self._order:
            view = self._views[index]
            high = low + view.nbytes
            np.copyto(block[low:high].view(view.dtype).reshape(view.shape), view)
            low = high
        return block

    def by_dtype(self, block: np.ndarray) -> list[np.ndarray]:
        """Splits a result of `block` by dtype: one array of shape `(elements,)` for each."""
        sizes = [sum(view.nbytes for view in self._views if view.dtype == dtype) for dtype in self._by_size]
        parts = np.split(block, np.cumsum(sizes)[:-1])
        return [part.view(dtype) for part, dtype in zip(parts, self._by_size, strict=True)]

    def concatenated(
        self, blocks: Sequence[np.ndarray], shapes: Sequence[Sequence[Shape]]
    ) -> list[np.ndarray]:
        """Concatenates each array over all replicas.

        Args:
          blocks: The result of `block` on each replica, in rank order.
          shapes: Shapes of each replica's arrays.
        """
        lows = [0] * len(blocks)
        results: list[np.ndarray] = [None] * len(self._views)  # type: ignore[list-item]
        for index in self._order:
            dtype = self.dtypes[index]
            parts = []
            for rank, block in enumerate(blocks):
                shape = shapes[rank][index]
                high = lows[rank] + math.prod(shape) * dtype.itemsize
                parts.append(block[lows[rank] : high].view(dtype).reshape(shape))
                lows[rank] = high
            results[index] = np.concatenate(filled(parts, self._axis), axis=self._axis)
        return results


def written_shapes(views: Sequence[np.ndarray]) -> np.ndarray:
    """Number of dimensions and shape of each array, one after another: shape `(bytes,)`, uint8."""
    return np.array([n for view in views for n in (view.ndim, *view.shape)], np.int64).view(np.uint8)


def fitting_shapes(
    link: Link,
    position: Position,
    blocks: Sequence[np.ndarray],
    *,
    dtypes: Sequence[np.dtype],
    axis: int,
    generation: int,
) -> list[tuple[Shape, ...]]:
    """Decodes and checks the shapes of all replicas' arrays after the exchange, in rank order.

    Args:
      link: Broken if they do not fit together; every replica detects that independently.
      position: The replica's position in the collective.
      blocks: The result of `written_shapes` on each replica, in rank order.
      dtypes: The dtypes of the arrays.
      axis: The axis along which they are gathered.
      generation: The generation of the group.

    Raises:
      CollectiveMismatch: if arrays that have elements along `axis` differ in rank or another dimension.
    """
    shapes = [_read_shapes(block.tobytes()) for block in blocks]
    if any(other is not shapes[0] for other in shapes):
        for of_array in zip(*shapes, strict=True):
            if misfits := _misfits(of_array, axis):
                asked = position.asked()
                calls = [
                    replace(asked, rank=rank, what=in_words(dtypes, shapes[rank], axis)) for rank in misfits
                ]
                text, name = difference(calls), asked.collective
                failure = Failure("mismatch", text, -1, generation, position.step, name)
                link.fail(failure)
                raise failure.error()
    return shapes


def filled(parts: Sequence[np.ndarray], axis: int) -> Sequence[np.ndarray]:
    """The parts that have elements along `axis`; the first part if none has."""
    return [part for part in parts if part.shape[axis]] or parts[:1]


def in_words(dtypes: Sequence[np.dtype], shapes: Sequence[Shape], axis: int) -> str:
    """Dtypes and shapes, such as "float32[*,10]"."""
    return ", ".join([_in_words(dtype, shape, axis) for dtype, shape in zip(dtypes, shapes, strict=True)])


@functools.lru_cache(maxsize=1024)
def _in_words(dtype: np.dtype, shape: Shape, axis: int) -> str:
    sizes = [str(n) for n in shape]
    sizes[axis] = "*"
    return f"{backend.dtype_text(dtype)}[{','.join(sizes)}]"


@functools.lru_cache(maxsize=256)  # most replicas have equal shapes, so equal bytes share one object
def _read_shapes(data: bytes) -> tuple[Shape, ...]:
    """The inverse of `written_shapes`."""
    numbers = np.frombuffer(data, np.int64).tolist()
    shapes: list[Shape] = []
    low = 0
    while low < len(numbers):
        high = low + 1 + numbers[low]
        shapes.append(tuple(numbers[low + 1 : high]))
        low = high
    return tuple(shapes)


def _misfits(shapes: Sequence[Shape], axis: int) -> tuple[int, int] | None:
    """Two replicas with parts that cannot be concatenated; None if all parts can be."""
    others = {rank: _other_dimensions(shape, axis) for rank, shape in enumerate(shapes) if shape[axis]}
    leader = next(iter(others), -1)
    return next(((leader, rank) for rank in others if others[rank] != others[leader]), None)


def _other_dimensions(shape: Shape, axis: int) -> Shape:
    axis %= len(shape)
    return (*shape[:axis], -1, *shape[axis + 1 :])
