"""Autograd that users bring: gradients of PyTorch and JAX go through our all_reduce, on every kind of replica."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.distribute import get_replica_context

RNG = np.random.default_rng(5)
X = RNG.normal(size=(64, 6)).astype(np.float32)
Y = (X @ RNG.normal(size=6) + 0.1 * RNG.normal(size=64)).astype(np.float32)
STEPS = 12

Gradient = Callable[[Any, Any, Any], tuple[Any, Any]]


def by_hand(w: Any, x: Any, y: Any) -> tuple[Any, Any]:
    error = np.asarray(x) @ np.asarray(w) - y
    return np.float32((error**2).mean()), 2 * x.T @ error / np.float32(len(y))


def with_torch(w: Any, x: Any, y: Any) -> tuple[Any, Any]:
    import torch

    leaf = torch.tensor(np.array(w), requires_grad=True)
    loss = ((torch.tensor(x) @ leaf - torch.tensor(y)) ** 2).mean()
    loss.backward()
    return loss.item(), leaf.grad


def with_jax(w: Any, x: Any, y: Any) -> tuple[Any, Any]:
    import jax

    found: tuple[Any, Any] = jax.value_and_grad(lambda w: ((x @ w - y) ** 2).mean())(w)
    return found


def losses(strategy: Any, gradient: Gradient) -> list[float]:
    """Trains a linear model; the mean loss of each step."""
    with strategy.scope():
        w = wb.Variable(np.zeros(6, np.float32))

    def step(batch: Any) -> Any:
        ctx = get_replica_context()
        loss, own = gradient(w.value(), *batch)
        w.assign_sub(0.1 * ctx.all_reduce("MEAN", own))
        return loss

    run = wb.function(step)
    data = wb.data.Dataset.from_tensor_slices((X, Y)).batch(16).repeat(3)
    found = [strategy.run(run, (batch,)) for batch in strategy.distribute_dataset(data)]
    return [float(strategy.reduce("MEAN", loss, axis=None)) for loss in found]


@pytest.fixture(scope="module")
def expected() -> Iterator[list[float]]:
    """The losses of gradients by hand, on two replicas."""
    with wb.connect(replicas=2, processes=False):
        yield losses(wb.MirroredStrategy(), by_hand)


def test_the_loss_falls(expected: list[float]) -> None:
    assert len(expected) == STEPS
    assert expected[-1] < expected[0] / 3


@pytest.mark.parametrize("processes", [False, True], ids=["threads", "processes"])
def test_torch_trains_alike(expected: list[float], processes: bool) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    with wb.connect(replicas=2, processes=processes, replace=True):
        np.testing.assert_allclose(losses(wb.MirroredStrategy(), with_torch), expected, atol=1e-5)


@pytest.mark.parametrize("processes", [False, True], ids=["threads", "processes"])
@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_jax_trains_alike(expected: list[float], processes: bool, backend: Any) -> None:
    pytest.importorskip("jax", reason="JAX is not installed: pip install -e '.[jax]'")
    with wb.connect(replicas=2, processes=processes, replace=True):
        np.testing.assert_allclose(
            losses(wb.MirroredStrategy(backend=backend), with_jax), expected, atol=1e-5
        )


@pytest.mark.parametrize("hosts", [1, 2])
def test_traced_jax_trains_alike(expected: list[float], hosts: int) -> None:
    pytest.importorskip("jax", reason="JAX is not installed: pip install -e '.[jax]'")
    with wb.connect(hosts=hosts, tpu=2 // hosts, replace=True):
        np.testing.assert_allclose(losses(wb.TPUStrategy(), with_jax), expected, atol=1e-5)
