"""The job that the pages show: two replicas fit a plane to points, and the second one is late in each step."""

from __future__ import annotations

import time

import numpy as np

REPLICAS = 2
LATE_SECONDS = 0.02
RATE = 0.003
_PLANE = np.linspace(-1, 1, 64)
_POINTS = 32


def begin() -> np.ndarray:
    """The weights before the first step, shape `(64,)`."""
    return np.zeros_like(_PLANE)


def part(weights: np.ndarray, step: int, replica: int) -> tuple[float, np.ndarray]:
    """What one replica does in a step: its loss, and the gradient of it, shape `(64,)`."""
    if replica == REPLICAS - 1:
        time.sleep(LATE_SECONDS)
    random = np.random.default_rng((step, replica))
    points = random.normal(size=(_POINTS, len(_PLANE)))
    difference = points @ (weights - _PLANE) + 0.1 * random.normal(size=_POINTS)
    return float(np.square(difference).mean()), 2 * points.T @ difference / _POINTS
