"""Injected faults happen on the replica that they name and nowhere else, and leave the cluster usable."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import (
    CollectiveMismatch,
    InvalidArgumentError,
    ReplicaLost,
)
from workbench.testing import Killed, NaNInput, OtherCollective, SkippedCollective, Slow, inject


@wb.function
def step(x: Any) -> Any:
    ctx = wb.distribute.get_replica_context()
    return ctx.all_reduce("sum", ctx.all_reduce("sum", x))


ONES = np.ones(3, np.float32)


@pytest.fixture(autouse=True)
def _still_usable(strategy: wb.MirroredStrategy) -> Iterator[None]:
    """After each fault, the plain function runs on the same cluster."""
    yield
    assert [value.tolist() for value in strategy.run(step, args=(ONES,)).values] == [[4.0] * 3] * 2


def test_a_function_without_faults_does_the_same(strategy: wb.MirroredStrategy) -> None:
    copy = inject(step)

    assert type(copy) is type(step)
    assert copy.__name__ == "step"
    assert strategy.run(copy, args=(ONES,)).values[0].tolist() == [4.0] * 3
    assert strategy.run(inject(lambda: 5)).values == (5, 5)
    assert inject(abs, Slow(0, seconds=100))(-3) == 3  # outside of replicas


def test_a_slow_replica_sleeps_and_computes_the_same(strategy: wb.MirroredStrategy) -> None:
    result = strategy.run(inject(step, Slow(1, seconds=0.001)), args=(ONES,))

    assert result.values[1].tolist() == [4.0] * 3


def test_nan_reaches_one_replica_and_not_the_callers_array(strategy: wb.MirroredStrategy) -> None:
    def mean(x: Any, label: Any) -> Any:
        return x.mean() + label

    first, second = strategy.run(inject(mean, NaNInput(1)), args=(ONES, np.float32(3))).values

    assert first == 4
    assert np.isnan(second)
    assert ONES.tolist() == [1.0] * 3


@pytest.mark.parametrize("library", ["torch", "jax", "bfloat16"])
def test_nan_reaches_arrays_of_other_libraries(strategy: wb.MirroredStrategy, library: str) -> None:
    def first_of(x: Any) -> Any:
        return str(x.ravel()[0])

    match library:
        case "torch":
            torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
            array = torch.ones(2, 3)
        case "jax":
            jax = pytest.importorskip("jax", reason="JAX is not installed: pip install -e '.[jax]'")
            array = jax.numpy.ones((2, 3))
        case _:
            dtypes = pytest.importorskip(
                "ml_dtypes", reason="ml_dtypes is not installed: pip install ml_dtypes"
            )
            array = np.ones((2, 3), dtypes.bfloat16)

    texts = strategy.run(inject(first_of, NaNInput(1)), args=(array,)).values

    assert ["nan" in text for text in texts] == [False, True]
    assert float(array.ravel()[0]) == 1


def test_nan_needs_an_array_to_be_put_into(strategy: wb.MirroredStrategy) -> None:
    with pytest.raises(InvalidArgumentError, match="needs a floating array among the arguments"):
        strategy.run(inject(lambda x: x, NaNInput(0)), args=(3,))


def test_a_skipped_collective_is_a_mismatch(strategy: wb.MirroredStrategy) -> None:
    with pytest.raises(CollectiveMismatch, match="replica 1"):
        strategy.run(inject(step, SkippedCollective(1, nth=2)), args=(ONES,)).values


@pytest.mark.parametrize("nth", [1, 2])
def test_another_collective_is_a_mismatch_that_shows_both_calls(
    strategy: wb.MirroredStrategy, nth: int
) -> None:
    with pytest.raises(CollectiveMismatch) as caught:
        strategy.run(inject(step, OtherCollective(0, nth=nth)), args=(ONES,)).values
    for part in ("all_reduce", "barrier", "replica 0", "replica 1", "test_faults.py"):
        assert part in str(caught.value)


def test_a_killed_process_is_a_lost_replica_and_variables_come_back(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        w = wb.Variable(ONES, name="w")
    w.assign_add(ONES)
    before = strategy.run(os.getpid).values

    with pytest.raises(ReplicaLost, match=r"replica 1 .* was killed by SIGKILL") as caught:
        strategy.run(inject(step, Killed(1, nth=2)), args=(ONES,)).values
    after = strategy.run(os.getpid).values

    assert (caught.value.replica, caught.value.pid) == (1, before[1])
    assert (after[0], after[1] != before[1]) == (before[0], True)
    assert [np.asarray(part).tolist() for part in w.values] == [[2.0] * 3] * 2


def test_a_fault_in_a_collective_that_never_comes_is_told(strategy: wb.MirroredStrategy) -> None:
    with pytest.raises(InvalidArgumentError, match=r"nth=3\) did not happen: .* asked for 2 collectives"):
        strategy.run(inject(step, OtherCollective(1, nth=3)), args=(ONES,)).values


def test_a_replica_that_there_is_not_is_told(strategy: wb.MirroredStrategy) -> None:
    with pytest.raises(InvalidArgumentError, match="there are 2 replicas, numbered from 0"):
        strategy.run(inject(step, Slow(2)), args=(ONES,)).values
    with pytest.raises(InvalidArgumentError, match="collectives from 1"):
        inject(step, Killed(0, nth=0))


def test_workers_load_the_faults_without_the_views(strategy: wb.MirroredStrategy) -> None:
    def loaded() -> bool:
        import sys

        return (
            "workbench.testing.faults" in sys.modules and "workbench.ui.inspect.inspection" not in sys.modules
        )

    assert strategy.run(inject(loaded)).values == (True, True)
