"""In traced functions `enable_check_numerics` names the first operation that makes a NaN or an infinity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import workbench as wb
from tests.tpu.conftest import by_replica, ids
from workbench.errors import NotFinite


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    wb.debugging.enable_check_numerics()
    yield
    wb.debugging.disable_check_numerics()


def _step(x: Any) -> Any:
    scaled = jnp.sin(x) * 0 + x
    logged = jnp.log(scaled)
    return jnp.exp(logged - 1) + logged


def test_the_first_operation_its_line_replica_and_step_are_named(spread: Any) -> None:
    strategy = spread
    good = by_replica(strategy, *np.arange(1.0, 5.0, dtype=np.float32))
    strategy.run(_step, args=(good,))
    expected = r"log makes a NaN or an infinity on replica 2 at step 1, at test_numerics\.py:\d+ in _step\n"
    with pytest.raises(NotFinite, match=expected):
        strategy.run(_step, args=(by_replica(strategy, *np.float32([1, 2, 0, 3])),))

    assert np.isfinite(strategy.local_results(strategy.run(_step, args=(good,)))[1])


def test_variables_keep_the_values_that_they_had(spread: Any) -> None:
    strategy = spread
    with strategy.scope():
        w = wb.Variable(np.float32(2.0), name="w", aggregation="MEAN")

    @wb.function
    def step(x: Any) -> Any:
        w.assign_add(1 / x)
        return w.read_value()

    ones = by_replica(strategy, *np.ones(4, np.float32))
    strategy.local_results(strategy.run(step, args=(ones,)))
    with pytest.raises(NotFinite, match="div makes a NaN or an infinity on replica 1 at step"):
        strategy.local_results(strategy.run(step, args=(by_replica(strategy, *np.float32([1, 0, 1, 1])),)))
    assert float(w) == 3.0
    strategy.local_results(strategy.run(step, args=(ones,)))
    assert float(w) == 4.0


def test_the_operation_is_found_in_gradients_and_compiled_parts(strategy: Any) -> None:
    @jax.jit
    def inner(x: Any) -> Any:
        return jnp.sqrt(x)

    def step(x: Any) -> Any:
        return jax.grad(inner)(x)

    with pytest.raises(
        NotFinite, match=r"div makes .* on replica 0 at step \d+, at test_numerics\.py:\d+ in inner"
    ):
        strategy.run(step, args=(ids(strategy),))


def test_masks_of_infinity_are_no_error_and_what_comes_in_bad_is_told_where_it_goes_out(
    strategy: Any,
) -> None:
    def masked(x: Any) -> Any:
        return jax.nn.softmax(jnp.where(jnp.arange(4) < 2, x, -jnp.inf))

    found = strategy.local_results(strategy.run(masked, args=(ids(strategy),)))
    assert found[0].tolist() == [0.5, 0.5, 0.0, 0.0]
    bad = by_replica(strategy, *np.float32([np.nan, 1, 1, np.nan]))
    with pytest.raises(
        NotFinite,
        match=r"what the replica function returned is not finite on replica 0 at step \d+; on 2 replicas in all",
    ):
        strategy.run(lambda x: x * 2, args=(bad,))


def test_collectives_and_integers_work_as_before(spread: Any) -> None:
    def step(x: Any) -> Any:
        ctx = wb.distribute.get_replica_context()
        assert ctx is not None
        return ctx.all_reduce("SUM", x), ctx.replica_id_in_sync_group * 2, jnp.arange(3)

    total, rank, numbers = spread.run(step, args=(ids(spread),))
    assert float(spread.local_results(total)[0]) == 6.0
    assert [int(x) for x in spread.local_results(rank)] == [0, 2, 4, 6]
    assert spread.local_results(numbers)[3].tolist() == [0, 1, 2]


def test_functions_that_were_compiled_before_are_checked_and_not_after(strategy: Any) -> None:
    step = wb.function(lambda x: 1 / x)
    wb.debugging.disable_check_numerics()
    assert np.isinf(strategy.local_results(strategy.run(step, args=(ids(strategy),)))[0])
    wb.debugging.enable_check_numerics()
    with pytest.raises(NotFinite, match="div makes"):
        strategy.local_results(strategy.run(step, args=(ids(strategy),)))
    wb.debugging.disable_check_numerics()
    assert np.isinf(strategy.local_results(strategy.run(step, args=(ids(strategy),)))[0])
