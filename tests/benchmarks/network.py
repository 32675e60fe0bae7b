"""The network that all training benchmarks train: 784-128-10, ReLU, softmax, a global batch of 256, plain SGD."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

SHAPES = ((784, 128), (128,), (128, 10), (10,))
BATCH = 256
BATCHES = 100
RATE = 0.05
WHAT = "MLP steps"


def data(seed: int = 0) -> tuple[Any, Any]:
    """Images of shape `(25600, 784)`, float32, and labels."""
    random = np.random.default_rng(seed)
    return random.random((BATCH * BATCHES, 784), dtype=np.float32), random.integers(0, 10, BATCH * BATCHES)


def parameters() -> list[Any]:
    """Weights and biases to start from."""
    random = np.random.default_rng(7)
    return [random.normal(0, 0.05, shape).astype(np.float32) * (len(shape) > 1) for shape in SHAPES]


def loss_and_gradients(weights: Any, x: Any, y: Any, out: Any) -> float:
    """This part's share of the mean loss over `BATCH`; its gradients are written to `out`."""
    first, first_bias, second, second_bias = weights
    hidden = x @ first
    hidden += first_bias
    np.maximum(hidden, 0, out=hidden)
    logits = hidden @ second
    logits += second_bias
    logits -= logits.max(axis=1, keepdims=True)
    error = np.exp(logits)
    sums = error.sum(axis=1, keepdims=True)
    rows = np.arange(len(y))
    loss = float((np.log(sums[:, 0]) - logits[rows, y]).sum()) / BATCH
    error /= sums
    error[rows, y] -= 1
    error /= BATCH
    np.matmul(hidden.T, error, out=out[2])
    error.sum(axis=0, out=out[3])
    back = error @ second.T
    back *= hidden > 0
    np.matmul(x.T, back, out=out[0])
    back.sum(axis=0, out=out[1])
    return loss


def steps_per_second(
    step: Callable[[int], Any], finish: Callable[[Any], float], seconds: float
) -> list[float]:
    """Five rates of `step(number)`, after checking that training lowers the loss; `finish` reads a step's loss."""
    first = finish(step(0))
    for number in range(1, 301):
        result = step(number % 3)
    assert finish(step(0)) < first, "the loss did not fall"
    rates = []
    for _ in range(5):
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            for _ in range(10):
                result = step(count)
                count += 1
        finish(result)
        rates.append(count / (time.perf_counter() - start))
    return rates
