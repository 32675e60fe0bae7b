"""What goes wrong silently between array libraries, each on replicas that combine such arrays: it must not."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.backends import numpy as backend
from workbench.distribute import get_replica_context

REPLICAS = 4


@pytest.fixture(scope="module")
def strategy() -> Iterator[Any]:
    """Replicas in this process, so that they can see each other's memory."""
    with wb.connect(replicas=REPLICAS, processes=False):
        yield wb.MirroredStrategy()


def test_a_jax_array_that_comes_home_can_be_written_to(strategy: Any, jax: Any) -> None:
    """NumPy's view of a JAX array is read-only, and one that is not would change what cannot change."""
    of_jax = wb.MirroredStrategy(backend="jax")
    with of_jax.scope():
        w = wb.Variable(np.arange(3, dtype=np.float32))

    home = w.numpy()
    home[0] = 7

    assert isinstance(of_jax.run(w.value).values[0], jax.Array)
    assert w.numpy().tolist() == [0, 1, 2]


def test_a_tensor_over_a_jax_array_does_not_make_us_write_there(strategy: Any, torch: Any, jax: Any) -> None:
    """`torch.from_dlpack` gives a view that can be written to, of memory that must not change."""

    def step() -> Any:
        array = jax.numpy.ones(5)
        tensor = torch.from_dlpack(array)
        total = get_replica_context().all_reduce("SUM", tensor)
        total += 1
        return array.tolist(), tensor.tolist(), total.tolist()

    array, tensor, total = strategy.run(step)

    assert [strategy.local_results(part)[1] for part in (*array, *tensor)] == [1.0] * 10
    assert [strategy.local_results(part)[2] for part in total] == [REPLICAS + 1.0] * 5


@pytest.mark.parametrize("count", [7, 1 << 16])
def test_results_given_to_jax_share_no_memory_that_is_used_again(strategy: Any, jax: Any, count: int) -> None:
    """`jax.device_put` takes aligned memory over without a copy."""

    def step() -> Any:
        ctx = get_replica_context()
        kept = [ctx.all_reduce("SUM", jax.numpy.full(count, float(turn))) for turn in range(6)]
        return [float(array.max() + array.min()) / 2 for array in kept]

    assert [strategy.local_results(value)[0] for value in strategy.run(step)] == [
        float(REPLICAS * turn) for turn in range(6)
    ]


def test_arrays_that_run_backwards_come_and_go(strategy: Any, torch: Any) -> None:
    """PyTorch has no negative strides: `torch.from_dlpack` of one ends the process."""

    def step() -> Any:
        ctx = get_replica_context()
        backwards = np.arange(6, dtype=np.float32)[::-1]
        return ctx.all_reduce("SUM", backwards), ctx.all_gather(backwards[::2], 0), backwards

    total, gathered, own = strategy.run(step)

    np.testing.assert_array_equal(strategy.local_results(total)[1], REPLICAS * np.arange(6.0)[::-1])
    np.testing.assert_array_equal(strategy.local_results(gathered)[1], [5, 3, 1] * REPLICAS)
    np.testing.assert_array_equal(strategy.local_results(own)[1], np.arange(6.0)[::-1])
    tensor = backend.like(np.arange(3.0)[::-1], torch.ones(1))
    assert tensor.tolist() == [2, 1, 0]


def test_gradients_and_parameters_of_torch_are_read_and_never_written(strategy: Any, torch: Any) -> None:
    """Writing through a view would go past the counters by which autograd notices."""

    def step() -> Any:
        ctx = get_replica_context()
        weight = torch.ones(4, requires_grad=True)
        ((ctx.replica_id_in_sync_group + 1) * weight**2).sum().backward()
        versions = weight._version, weight.grad._version
        before = weight.grad.clone()
        gradient, parameter = ctx.all_reduce("MEAN", [weight.grad, weight])
        unchanged = torch.equal(weight.grad, before) and (weight._version, weight.grad._version) == versions
        gradient.zero_()  # writable
        return (
            unchanged and torch.equal(weight.grad, before),
            parameter.requires_grad,
            parameter.tolist(),
        )

    unchanged, requires, parameter = strategy.run(step)

    assert strategy.local_results(unchanged) == (True,) * REPLICAS
    assert strategy.local_results(requires) == (False,) * REPLICAS
    assert [strategy.local_results(part)[0] for part in parameter] == [1.0] * 4


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_narrow_floats_are_added_in_float32_and_rounded_once(
    strategy: Any, request: pytest.FixtureRequest, library: str, name: str
) -> None:
    """256 + 1 + 1 + 1 in bfloat16 is 256 three times over; in eight bits 16 + 1 + 1 + 1 is 16."""
    request.getfixturevalue(library)
    large, want = (256.0, 260.0) if name == "bfloat16" else (16.0, 20.0)

    def step() -> Any:
        ctx = get_replica_context()
        value = large if ctx.replica_id_in_sync_group == 0 else 1.0
        if library == "torch":
            import torch

            mine = torch.full((3,), value).to(getattr(torch, name))
            total = ctx.all_reduce("SUM", mine)
            return total.dtype is mine.dtype, float(total[1].float())
        import jax

        array = jax.numpy.full(3, value).astype(name)
        summed = ctx.all_reduce("SUM", array)
        return summed.dtype == array.dtype, float(summed[1])

    same, total = strategy.run(step)

    assert strategy.local_results(same) == (True,) * REPLICAS
    assert strategy.local_results(total) == (want,) * REPLICAS


def test_that_jax_narrows_is_said_once(strategy: Any, jax: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def step() -> Any:
        ctx = get_replica_context()
        first, *_ = [ctx.all_reduce("MEAN", jax.numpy.arange(3)) for _ in range(3)]
        return first

    from workbench.backends import numpy as library

    monkeypatch.setattr(library, "_warned_narrow", set())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = strategy.run(step)

    assert len([one for one in seen if "32 bits" in str(one.message)]) == 1
    assert strategy.local_results(result)[0].tolist() == [0, 1, 2]
