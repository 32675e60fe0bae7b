"""Figures that are far from the others, by the quartiles of all."""

from __future__ import annotations

from typing import Final

import numpy as np

FENCE: Final = 3.0
"""Tukey's outer fences, in widths of the middle half: one of 400,000 normally distributed numbers lies beyond them."""


def distances(values: np.ndarray, least: float = 0.0) -> np.ndarray:
    """How far each number is outside of the middle half, in widths of that half; 0 if inside, or not finite.

    Args:
      values: The numbers; NaN for one that is not known.
      least: The width is at least this, for figures whose small differences tell nothing.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return np.zeros(len(values))
    low, high = np.quantile(finite, (0.25, 0.75))
    outside = np.nan_to_num(np.maximum(low - values, values - high), nan=0.0, posinf=0.0, neginf=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(outside > 0, outside / max(high - low, least), 0.0)
    return np.nan_to_num(distance, nan=0.0, posinf=np.finfo(float).max)
