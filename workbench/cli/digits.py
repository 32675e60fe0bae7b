"""The network of the demo: 64 pixels, one hidden layer, 10 digits; its gradients written out in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]

HIDDEN = 128


@dataclass(frozen=True, slots=True)
class Digits:
    """Handwritten digits, split into a part to train on and one to test with.

    Attributes:
      train_images: Shape `(1437, 64)`, brightness from 0 to 1.
      train_labels: Shape `(1437,)`, 0 to 9.
      test_images: Shape `(360, 64)`.
      test_labels: Shape `(360,)`.
    """

    train_images: Floats
    train_labels: Labels
    test_images: Floats
    test_labels: Labels


def load() -> Digits:
    """The 1,797 scanned digits that come with scikit-learn, shuffled and split four to one.

    Raises:
      ModuleNotFoundError: if scikit-learn is not installed.
    """
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = (images[order] / 16).astype(np.float32), labels[order].astype(np.int64)
    split = len(images) * 4 // 5
    return Digits(images[:split], labels[:split], images[split:], labels[split:])


def initial_parameters() -> list[Floats]:
    """Two layers of weights and biases, of shapes `(64, 128)`, `(128,)`, `(128, 10)` and `(10,)`."""
    random = np.random.default_rng(1)
    first = random.normal(0, np.sqrt(2 / 64), (64, HIDDEN)).astype(np.float32)
    second = random.normal(0, np.sqrt(1 / HIDDEN), (HIDDEN, 10)).astype(np.float32)
    return [first, np.zeros(HIDDEN, np.float32), second, np.zeros(10, np.float32)]


def loss_and_gradients(
    parameters: Sequence[Floats], images: Floats, labels: Labels
) -> tuple[np.float32, list[Floats]]:
    """The mean cross-entropy of a batch, and its gradients in the order of `parameters`.

    Args:
      parameters: The result of `initial_parameters`.
      images: Shape `(batch, 64)`.
      labels: Shape `(batch,)`.
    """
    first, first_bias, second, second_bias = parameters
    hidden = np.maximum(images @ first + first_bias, 0)
    logits = hidden @ second + second_bias
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = shifted / shifted.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -np.log(probabilities[rows, labels] + 1e-9).mean()

    error = probabilities  # becomes d loss / d logits
    error[rows, labels] -= 1
    error /= np.float32(len(labels))
    backwards = (error @ second.T) * (hidden > 0)
    return loss, [images.T @ backwards, backwards.sum(axis=0), hidden.T @ error, error.sum(axis=0)]


def accuracy(parameters: Sequence[Floats], images: Floats, labels: Labels) -> float:
    """The share of images that the network classifies correctly."""
    first, first_bias, second, second_bias = parameters
    logits = np.maximum(images @ first + first_bias, 0) @ second + second_bias
    return float((logits.argmax(axis=1) == labels).mean())
