"""JAX arrays among ours: looked at without a copy, never written, handed out as owned arrays."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.backends import numpy as backend
from workbench.distribute import get_replica_context

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install -e '.[jax]'")
jnp = jax.numpy


def test_a_jax_array_is_viewed_without_a_copy_and_read_only() -> None:
    array = jnp.arange(1000.0)

    view = backend.view(array)

    assert not view.flags.writeable
    assert np.shares_memory(view, np.asarray(array))


def test_what_is_handed_out_does_not_share_our_memory() -> None:
    """`jax.device_put` would alias an aligned buffer, which the pool hands out again."""
    ours = np.zeros(1 << 16, np.float32)

    theirs = backend.like(ours, jnp.zeros(1))
    ours[:] = 7

    assert float(theirs.max()) == 0


def test_bfloat16_goes_both_ways() -> None:
    array = jnp.asarray([1.5, -2.0], jnp.bfloat16)

    back = backend.like(np.array(backend.view(array)), array)

    assert back.dtype == jnp.bfloat16
    assert back.tolist() == [1.5, -2.0]


def test_narrowing_is_warned_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.backends import numpy as library

    monkeypatch.setattr(library, "_warned_narrow", set())
    with pytest.warns(UserWarning, match=r"narrows float64 to 32 bits.*jax_enable_x64"):
        backend.like(np.zeros(2), jnp.zeros(1))
    backend.like(np.zeros(2), jnp.zeros(1))  # pytest would turn a warning into an error


def test_integers_that_would_become_others_are_refused() -> None:
    with pytest.raises(wb.errors.InvalidArgumentError, match=r"do not fit into the 32 bits"):
        backend.like(np.array([2**40]), jnp.zeros(1))


@pytest.fixture
def strategy() -> Any:
    with wb.connect(replicas=2, processes=False):
        yield wb.MirroredStrategy(backend="jax")


def test_variables_and_xp_are_of_jax(strategy: Any) -> None:
    with strategy.scope():
        w = wb.Variable(np.ones(3, np.float32))

    def step() -> Any:
        ctx = get_replica_context()
        w.assign_add(ctx.xp.ones(3) * (ctx.replica_id_in_sync_group + 1))
        total = ctx.all_reduce("SUM", w.value())
        return isinstance(w.value(), jax.Array), isinstance(total, jax.Array), total, w * 2 + 1

    of_jax, total_of_jax, total, computed = strategy.run(step)

    assert all(strategy.local_results(of_jax) + strategy.local_results(total_of_jax))
    assert strategy.local_results(total)[1].tolist() == [5, 5, 5]
    assert strategy.local_results(computed)[1].tolist() == [7, 7, 7]
    assert isinstance(w.numpy(), np.ndarray)


@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize(
    "make",
    [
        lambda: wb.OneDeviceStrategy("CPU:0", backend="jax"),
        lambda: wb.MultiWorkerMirroredStrategy(backend="jax"),
        lambda: wb.distribute.experimental.CentralStorageStrategy(backend="jax"),
    ],
    ids=["one device", "multi worker", "central storage"],
)
def test_every_strategy_on_cpus_takes_jax(make: Any, hosts: int) -> None:
    with wb.connect(replicas=2, hosts=hosts, processes=hosts > 1):
        strategy = make()
        with strategy.scope():
            w = wb.Variable(np.ones(3, np.float32), aggregation="SUM")

        def step() -> Any:
            ctx = get_replica_context()
            w.assign_add(ctx.xp.ones(3))
            return isinstance(ctx.xp.zeros(1) + w, jax.Array), w * 2

        of_jax, doubled = strategy.run(step)

        assert all(strategy.local_results(of_jax))
        assert strategy.local_results(doubled)[0].tolist() == [2 * (1 + strategy.num_replicas_in_sync)] * 3


def test_an_input_of_all_reduce_keeps_its_value(strategy: Any) -> None:
    def step() -> Any:
        array = jnp.ones(4) * (get_replica_context().replica_id_in_sync_group + 1)
        get_replica_context().all_reduce("SUM", array)
        return array

    assert [part.tolist() for part in strategy.local_results(strategy.run(step))] == [[1] * 4, [2] * 4]


def test_differentiating_through_an_eager_all_reduce_fails_and_is_not_silent(strategy: Any) -> None:
    def step() -> Any:
        return jax.grad(lambda x: get_replica_context().all_reduce("SUM", x).sum())(jnp.ones(2))

    with pytest.raises(wb.errors.TracingError, match=r"Differentiate locally, then combine the gradient"):
        strategy.run(step)


def test_a_jitted_function_around_an_eager_all_reduce_is_told_why_it_cannot_be(strategy: Any) -> None:
    def step() -> Any:
        return jax.jit(lambda x: get_replica_context().all_reduce("SUM", x))(jnp.ones(2))

    with pytest.raises(wb.errors.TracingError, match=r"inside of jax\.grad, jax\.jit or jax\.vmap"):
        strategy.run(step)


@pytest.mark.parametrize("aggregation", ["NONE", "MEAN"])
@pytest.mark.parametrize("backend", ["jax", "numpy"])
def test_a_variable_does_not_keep_what_jax_is_tracing(strategy: Any, backend: Any, aggregation: str) -> None:
    strategy = wb.MirroredStrategy(backend=backend)
    with strategy.scope():
        w = wb.Variable(np.ones(2, np.float32), aggregation=aggregation)

    def step() -> Any:
        return jax.jit(lambda x: w.assign_add(x).value())(jnp.ones(2))

    with pytest.raises(
        wb.errors.TracingError, match=r"given to a collective or a variable.*return from jax\.jit"
    ):
        strategy.run(step)
    assert w.numpy().tolist() == [1, 1]


def test_a_variable_that_jax_narrows_is_announced(strategy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.backends import numpy as library

    monkeypatch.setattr(library, "_warned_narrow", set())

    with strategy.scope(), pytest.warns(UserWarning, match="JAX narrows float64 to 32 bits") as seen:
        first, second = (wb.Variable(np.zeros(2), name=name) for name in "ab")

    assert len(seen) == 1
    assert strategy.run(lambda: (first + second).dtype).values == (np.float32, np.float32)


def test_an_integer_variable_that_jax_would_change_is_refused(strategy: Any) -> None:
    with (
        strategy.scope(),
        pytest.raises(wb.errors.InvalidArgumentError, match=r"do not fit into the 32 bits.*JAX_ENABLE_X64"),
    ):
        wb.Variable(np.array([2**40]))


def test_an_unknown_backend_is_refused() -> None:
    with (
        wb.connect(replicas=1, processes=False),
        pytest.raises(wb.errors.InvalidArgumentError, match="numpy, cupy"),
    ):
        wb.MirroredStrategy(backend="tensorflow")  # type: ignore[arg-type]


def test_whole_numbers_are_said_to_be_narrowed_also_after_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.backends import numpy as library

    monkeypatch.setattr(library, "_warned_narrow", set())

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for array in (np.ones(2), np.ones(2, np.int64), np.ones(3), np.ones(3, np.uint64)):
            library.check_jax_width(array)

    assert [str(one.message).partition(";")[0] for one in seen] == [
        "JAX narrows float64 to 32 bits",
        "JAX narrows int64 to 32 bits, and what it computes of them wraps around beyond that",
    ]
