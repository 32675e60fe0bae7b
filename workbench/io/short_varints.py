"""Decodes whole numbers of up to 64 bits at many places, without a loop over their bytes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from workbench.io.example_bytes import ExampleBytes, Places

LONGEST_BYTES: Final = 10
_WORD = 8
_SEVEN: Final = np.uint64(0x7F)
_MORE: Final = np.uint64(0x8080808080808080)
# By number of bytes: the bits of the first and the second word that belong to the number, and the continuation bits.
_OWN: Final = np.array(
    [[(1 << 8 * min(size, 8)) - 1, (1 << 8 * max(size - 8, 0)) - 1] for size in range(LONGEST_BYTES + 1)],
    np.uint64,
).T.copy()
_FOLLOWED: Final = _MORE & np.concatenate([_OWN[:, :1], _OWN[:, :-1]], axis=1)
# Groups of 7, 14 and 28 bits move together: which ones, and how far.
_MOVES: Final = [
    (np.uint64(low << (8 << step)), np.uint64(1 << step))
    for step, low in enumerate((0x007F007F007F007F, 0x00003FFF00003FFF, 0x000000000FFFFFFF))
]


def short_varints(
    examples: ExampleBytes, rows: Places, starts: Places, sizes: Places
) -> np.ndarray[Any, np.dtype[np.int64]] | None:
    """The numbers in short pieces of examples, signed, in the order of `starts.ravel()`.

    Args:
      examples: The bytes.
      rows: Examples, `(n,)`.
      starts: Where the pieces start, `(fields, n)`.
      sizes: How many bytes they have.

    Returns:
      The numbers; None unless each piece is one number of at most ten bytes.
    """
    longest = int(sizes.max())
    if longest > LONGEST_BYTES or sizes.min() < 1:
        return None
    width = _WORD if longest <= _WORD else 2 * _WORD
    words = examples.windows(rows, starts, width).view(np.uint64).reshape(-1, width // _WORD)
    size = sizes.ravel()
    values = words[:, 0] & _OWN[0].take(size)
    values ^= _FOLLOWED[0].take(size)
    if (values & _MORE).any():
        return None
    for step, (move, by) in enumerate(_MOVES):
        if longest <= 1 << step:
            break
        moved = values & move
        values ^= moved
        moved >>= by
        values |= moved
    if longest > _WORD:
        rest = words[:, 1] & _OWN[1].take(size)
        if ((rest & _MORE) != _FOLLOWED[1].take(size)).any():
            return None
        values |= (rest & _SEVEN) << np.uint64(56)
        values |= (rest >> np.uint64(8)) << np.uint64(63)  # the tenth byte contributes one bit
    return np.asarray(values.view(np.int64))
