"""Gradients in traced functions: nothing is summed up behind the user's back."""

from __future__ import annotations

from typing import Any

import numpy as np

import workbench as wb
from tests.tpu.conftest import REPLICAS, by_replica
from workbench.distribute import get_replica_context

RNG = np.random.default_rng(3)
W = RNG.normal(size=5).astype(np.float32)
ROWS = RNG.normal(size=(REPLICAS, 6, 5)).astype(np.float32)


def local_gradient(rank: int) -> Any:
    return 2 * ROWS[rank].T @ (ROWS[rank] @ W)


def test_the_gradient_of_a_replicated_weight_is_the_replicas_own(spread: Any) -> None:
    """The trap: with values marked as replicated, the gradient comes summed, and is then N times too large."""

    def step(w: Any, x: Any) -> Any:
        import jax

        gradient = jax.grad(lambda w: ((x @ w) ** 2).sum())(w)
        return gradient, get_replica_context().all_reduce("SUM", gradient)

    own, total = spread.run(step, (W, by_replica(spread, *ROWS)))

    for rank, part in enumerate(spread.local_results(own)):
        np.testing.assert_allclose(part, local_gradient(rank), rtol=1e-5)
    np.testing.assert_allclose(
        spread.local_results(total)[0], sum(local_gradient(rank) for rank in range(REPLICAS)), rtol=1e-5
    )


def test_the_gradient_with_respect_to_a_variable_is_the_replicas_own(spread: Any) -> None:
    with spread.scope():
        w = wb.Variable(W)

    def step(x: Any) -> Any:
        import jax

        return jax.grad(lambda w: ((x @ w) ** 2).sum())(w.value())

    own = spread.local_results(spread.run(step, (by_replica(spread, *ROWS),)))

    for rank, part in enumerate(own):
        np.testing.assert_allclose(part, local_gradient(rank), rtol=1e-5)


def test_the_gradient_after_a_collective_is_the_replicas_own(spread: Any) -> None:
    """What a collective returns is no different: a later gradient with respect to it is not summed either."""

    def step(w: Any, x: Any) -> Any:
        import jax

        mean = get_replica_context().all_reduce("MEAN", w)
        return jax.grad(lambda w: ((x @ w) ** 2).sum())(mean)

    own = spread.local_results(spread.run(step, (W, by_replica(spread, *ROWS))))

    for rank, part in enumerate(own):
        np.testing.assert_allclose(part, local_gradient(rank), rtol=1e-5)


def test_the_gradient_through_a_collective_is_combined_likewise(spread: Any) -> None:
    """As in the reference: what all replicas' results owe to this replica's value, so a mean leaves it as it is."""

    def step(w: Any, x: Any) -> Any:
        import jax

        ctx = get_replica_context()
        total, mean = (
            jax.grad(lambda w: ctx.all_reduce(op, ((x @ w) ** 2).sum()))(w)  # noqa: B023
            for op in ("SUM", "MEAN")
        )
        return total, mean

    total, mean = spread.run(step, (W, by_replica(spread, *ROWS)))

    for rank in range(REPLICAS):
        np.testing.assert_allclose(spread.local_results(mean)[rank], local_gradient(rank), rtol=1e-5)
        np.testing.assert_allclose(
            spread.local_results(total)[rank], REPLICAS * local_gradient(rank), rtol=1e-5
        )


def test_loops_may_start_from_constants(spread: Any) -> None:
    """With values marked as varying, JAX refuses a loop whose carry starts from a plain zero."""

    def step(x: Any) -> Any:
        import jax
        import jax.numpy as jnp

        total, _ = jax.lax.scan(lambda carry, row: (carry + row.sum(), None), jnp.zeros(()), x)
        return total

    result = spread.local_results(spread.run(step, (by_replica(spread, *ROWS),)))

    np.testing.assert_allclose(result, ROWS.sum(axis=(1, 2)), rtol=1e-4)
