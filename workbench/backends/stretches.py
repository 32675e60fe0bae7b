"""Reads large arrays in stretches that fit in a core's cache, with checksums that distinguish them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import numpy as np

STRETCH: Final = 1 << 16
"""Elements per stretch; an array of this size stays in the level-2 cache."""
MOST_READ: Final = 1 << 28
"""Only a part of larger arrays is read unless the caller requests all, so that an answer takes no longer."""
_MOST_STRETCHES: Final = (1 << 26) // STRETCH  # of an array larger than that


def numbers_read(size: int, *, exact: bool) -> range:
    """Which stretches of an array with `size` elements to read: all, or evenly spaced ones. An empty array has one."""
    every = 1 if exact or size <= MOST_READ else -(-size // (STRETCH * _MOST_STRETCHES))
    return range(0, max(1, -(-size // STRETCH)), every)


def stretches(array: np.ndarray, numbers: Iterable[int]) -> Iterator[np.ndarray]:
    """These stretches, as rows of elements in C order; copies only if the array is not contiguous."""
    if array.flags.c_contiguous:
        flat = array.reshape(-1)
        yield from (flat[number * STRETCH : (number + 1) * STRETCH] for number in numbers)
        return
    # Any, because NumPy's type is too narrow: for one array, the iterator yields arrays, and its range can be set.
    iterator: Any = np.nditer(array, ["external_loop", "buffered", "ranged"], order="C", buffersize=STRETCH)
    for number in numbers:
        iterator.iterrange = number * STRETCH, min((number + 1) * STRETCH, array.size)
        yield np.concatenate([piece.copy() for piece in iterator])


def checksum(stretch: np.ndarray, room: np.ndarray) -> bytes:
    """16 bytes that distinguish stretches, computed four times as fast as a cryptographic digest.

    Args:
      stretch: At most `STRETCH` elements of at most 16 bytes.
      room: Scratch space: an array of `2 * STRETCH` 64-bit floats.
    """
    data = stretch.view(np.uint8)
    if data.size % 8:
        return hashlib.sha256(data.data).digest()[:16]
    words = data.view(np.uint64)
    # In a product, each bit affects only higher bits, so the upper halves get their own sum.
    weights, others = _weights()
    lower = np.dot(words, weights[: words.size])
    halves = np.right_shift(words, np.uint64(32), out=room.view(np.uint64)[: words.size])
    upper = np.dot(halves, others[: words.size])
    return np.array([lower, upper]).tobytes()


@lru_cache(maxsize=1)
def _weights() -> tuple[np.ndarray, np.ndarray]:
    """Two rows of odd pseudo-random numbers, the same on every machine."""
    x = np.arange(1, 2 * STRETCH * 2 + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    x = x ^ (x >> np.uint64(31)) | np.uint64(1)
    return x[: 2 * STRETCH], x[2 * STRETCH :]
