"""Seeds of random stages.

A seed is drawn when a stage is described, not when it runs: every host gets the same description, so all of
them shuffle alike, and splitting by position loses and duplicates nothing.
"""

from __future__ import annotations

import itertools
import secrets
import threading

import numpy as np

from workbench import forks
from workbench.arguments import any_whole_number

_MASK = (1 << 63) - 1
_lock = forks.lock(threading.Lock())
_global: tuple[int, itertools.count[int]] | None = None


def set_seed(seed: int | None) -> None:
    """Makes stages without a seed of their own repeatable: the n-th from now on gets the n-th seed.

    Args:
      seed: Any integer, or None to return to fresh random seeds.
    """
    global _global
    with _lock:
        _global = None if seed is None else (seed & _MASK, itertools.count())


class DrawnSeed(int):
    """A seed that was drawn, because the user chose none for the stage."""


def draw(seed: int | None) -> int:
    """The seed of one stage: the one given, or a `DrawnSeed`, which is derived from `set_seed` or random.

    Raises:
      TypeError: if `seed` is not a whole number.
    """
    if seed is not None:
        return any_whole_number(seed, "seed") & _MASK
    with _lock:
        if _global is None:
            return DrawnSeed(secrets.randbits(63))
        base, numbers = _global
        state = np.random.SeedSequence((base, next(numbers))).generate_state(1, np.uint64)
        return DrawnSeed(int(state[0]) & _MASK)
