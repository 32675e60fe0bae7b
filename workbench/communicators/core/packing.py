"""The layout of arrays for sending: in packs of one dtype, or one by one as blocks of bytes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from workbench.backends import numpy as backend
from workbench.communicators.core.options import Options

_AUTOMATIC_BYTES = 4 * 1024 * 1024  # a pack stays in the last-level cache between packing and combining


@dataclass(frozen=True, slots=True)
class Pack:
    """Arrays that are combined as one.

    Attributes:
      indices: Positions of its arrays.
      offsets: Where each array begins, in elements, and where the last one ends.
      dtype: The dtype in which they are combined.
    """

    indices: tuple[int, ...]
    offsets: tuple[int, ...]
    dtype: np.dtype

    @property
    def count(self) -> int:
        """Number of elements in the pack."""
        return self.offsets[-1]


def packs_of(
    arrays: Sequence[np.ndarray],
    op: str,
    *,
    options: Options | None = None,
    packs: int | None = None,
    dtype_of: Callable[[np.dtype, str], np.dtype] | None = None,
) -> tuple[Pack, ...]:
    """Distributes arrays over packs.

    Args:
      arrays: The arrays to combine.
      op: The reduction, which decides the dtype to accumulate in.
      options: A pack is closed once it has `bytes_per_pack` bytes.
      packs: Number of packs per dtype, of about equal size; 0 for one per array. Overrides `options`.
      dtype_of: Maps (dtype, op) to the dtype to combine in; by default `backends.numpy.accumulator`.

    Returns:
      Packs that together hold each array once, grouped by dtype, with the arrays in their order.
    """
    by_dtype: dict[np.dtype, list[int]] = {}
    for index, array in enumerate(arrays):
        by_dtype.setdefault((dtype_of or _accumulator)(array.dtype, op), []).append(index)
    limit = (options.bytes_per_pack if options else 0) or _AUTOMATIC_BYTES
    found: list[Pack] = []
    for dtype, indices in by_dtype.items():
        nbytes = [arrays[index].size * dtype.itemsize for index in indices]
        if packs is None:
            groups = _filled(indices, nbytes, limit)
        elif packs == 0:
            groups = [[index] for index in indices]
        else:
            groups = _even(indices, nbytes, packs)
        for group in groups:
            offsets = tuple(accumulate((arrays[index].size for index in group), initial=0))
            found.append(Pack(tuple(group), offsets, dtype))
    return tuple(found)


@functools.lru_cache(maxsize=256)
def _accumulator(dtype: np.dtype, op: str) -> np.dtype:
    return backend.accumulator(dtype, op).newbyteorder("=")


def _filled(indices: list[int], nbytes: list[int], limit: int) -> list[list[int]]:
    groups: list[list[int]] = []
    filling: list[int] = []
    room = 0
    for index, size in zip(indices, nbytes, strict=True):
        if size >= limit:
            # A large array travels uncopied in its own pack; the small ones around it can still share a pack.
            groups.append([index])
            continue
        if room <= 0:
            filling = []
            groups.append(filling)
            room = limit
        filling.append(index)
        room -= size
    return groups


def _even(indices: list[int], nbytes: list[int], packs: int) -> list[list[int]]:
    total = max(1, sum(nbytes))
    groups: dict[int, list[int]] = {}
    before = 0
    for index, size in zip(indices, nbytes, strict=True):
        groups.setdefault(min(packs - 1, before * packs // total), []).append(index)
        before += size
    return list(groups.values())


def flatten(pack: Pack, arrays: Sequence[np.ndarray], scratch: np.ndarray) -> np.ndarray:
    """Copies the arrays of a pack one after another into `scratch` (bytes), converting them to the pack's dtype.

    Args:
      pack: The pack: its arrays and their offsets.
      arrays: All arrays of the collective.
      scratch: At least as many bytes as the pack takes.
    """
    flat = scratch[: pack.count * pack.dtype.itemsize].view(pack.dtype)
    for index, low, high in zip(pack.indices, pack.offsets, pack.offsets[1:], strict=False):
        array = arrays[index]
        np.copyto(flat[low:high].reshape(array.shape), array)
    return flat


def bytes_of(array: np.ndarray) -> np.ndarray:
    """The elements of an array as a block: shape `(nbytes,)`, uint8; copied only if not contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def header(array: Any) -> np.ndarray:
    """Encodes dtype and shape of any library's array as a block, which `described` reads."""
    name = array.dtype.name if array.dtype.kind == "V" else array.dtype.str
    return np.frombuffer(f"{name} {' '.join(map(str, array.shape))}".encode(), np.uint8)


def described(block: np.ndarray) -> tuple[np.dtype, tuple[int, ...]]:
    """The inverse of `header`."""
    name, *shape = block.tobytes().decode().split()
    return backend.dtype_named(name), tuple(map(int, shape))
