"""The demo's network: right gradients, and it learns."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.cli import digits


def test_the_data_is_split_once_and_without_overlap() -> None:
    data = digits.load()

    assert data.train_images.shape == (1437, 64)
    assert data.test_labels.shape == (360,)
    assert (data.train_images.min(), data.train_images.max()) == (0, 1)
    assert np.array_equal(digits.load().train_labels, data.train_labels)


@pytest.mark.parametrize("which", range(4))
def test_gradients_agree_with_finite_differences(which: int) -> None:
    data = digits.load()
    images, labels = data.train_images[:32].astype(np.float64), data.train_labels[:32]
    parameters = [value.astype(np.float64) for value in digits.initial_parameters()]
    direction = np.random.default_rng(2).normal(size=parameters[which].shape)
    step = 1e-6

    def loss_at(scale: float) -> float:
        moved = list(parameters)
        moved[which] = parameters[which] + scale * direction
        return float(digits.loss_and_gradients(moved, images, labels)[0])

    slope = (loss_at(step) - loss_at(-step)) / (2 * step)
    _, gradients = digits.loss_and_gradients(parameters, images, labels)

    assert slope == pytest.approx(float((gradients[which] * direction).sum()), rel=1e-5)


def test_the_network_learns_on_its_own() -> None:
    data, parameters = digits.load(), digits.initial_parameters()
    for _ in range(15):
        for start in range(0, 1437, 64):
            batch = slice(start, start + 64)
            _, gradients = digits.loss_and_gradients(
                parameters, data.train_images[batch], data.train_labels[batch]
            )
            parameters = [
                value - 0.3 * gradient for value, gradient in zip(parameters, gradients, strict=True)
            ]

    assert digits.accuracy(parameters, data.test_images, data.test_labels) > 0.95
