"""Checks of values on replicas pass where they should, and say what is wrong where they should not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.testing import assert_finite, assert_in_sync, assert_same_on_all


def rank() -> int:
    found: int = wb.distribute.get_replica_context().replica_id_in_sync_group
    return found


@pytest.fixture
def w(strategy: wb.MirroredStrategy) -> wb.Variable:
    with strategy.scope():
        return wb.Variable(np.zeros(3, np.float32), name="w")


def test_copies_that_are_equal_are_in_sync(strategy: wb.MirroredStrategy, w: wb.Variable) -> None:
    assert_in_sync(w)
    assert_in_sync({"layers": [w]})
    assert_in_sync(strategy)


def test_copies_that_drifted_are_named_with_replica_difference_and_step(
    strategy: wb.MirroredStrategy, w: wb.Variable
) -> None:
    step = strategy.group.number
    strategy.run(lambda: w.assign_add(np.full(3, 0.25 * rank(), np.float32)))

    text = (
        rf"'w:0' is not in sync: it diverged at step {step}, replica 1 is the first .*, max\|Δ\|=0.25\n"
        r"MirroredVariable 'w:0'"
    )
    with pytest.raises(AssertionError, match=text):
        assert_in_sync(w)
    with pytest.raises(AssertionError, match=r"'w:0' is not in sync"):
        assert_in_sync(strategy)


def test_components_that_may_differ_cannot_be_in_sync(strategy: wb.MirroredStrategy) -> None:
    with strategy.scope():
        n = wb.Variable(0, name="n", synchronization="ON_READ", aggregation="SUM")

    with pytest.raises(TypeError, match=r"'n:0' is a SyncOnReadVariable\. Use assert_same_on_all"):
        assert_in_sync(n)
    with pytest.raises(TypeError, match="is a ndarray"):
        assert_in_sync(np.zeros(2))


def test_results_that_are_equal_are_the_same_on_all(strategy: wb.MirroredStrategy, w: wb.Variable) -> None:
    assert_same_on_all(w)
    assert_same_on_all(strategy.run(lambda: {"a": np.array([1.0, np.nan]), "b": "text", "c": 3}))


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (
            lambda: np.array([[0.0, rank()]]),
            r"replica 1 has 1.0 at \[0, 1\] where replica 0 has 0.0 \(1 of 2",
        ),
        (lambda: rank(), r"replica 1 has 1 where replica 0 has 0 \(1 of 1"),
        (lambda: np.zeros(2 + rank()), r"replica 1 has float64\[3\], replica 0 has float64\[2\]"),
        (lambda: np.float32(np.nan if rank() else 0), "replica 1 has nan where replica 0 has 0.0"),
    ],
)
def test_the_first_difference_is_told(strategy: wb.MirroredStrategy, step: Any, text: str) -> None:
    with pytest.raises(AssertionError, match=f"the PerReplica is not the same on all replicas: {text}"):
        assert_same_on_all(strategy.run(step))


def test_every_replica_is_compared_with_the_first() -> None:
    assert_same_on_all(wb.distribute.PerReplica((1.0, 1.0, 1.0, 1.0)))
    with pytest.raises(AssertionError, match=r"replica 3 has 2\.0 where replica 0 has 1\.0"):
        assert_same_on_all(wb.distribute.PerReplica((1.0, 1.0, 1.0, 2.0)))


def test_a_tolerance_passes_over_small_differences(strategy: wb.MirroredStrategy) -> None:
    result = strategy.run(lambda: np.float64(1 + 1e-9 * rank()))

    assert_same_on_all(result, rtol=1e-6)
    with pytest.raises(AssertionError, match="'result' is not the same on all replicas: replica 1 has"):
        assert_same_on_all(result)


def test_a_value_of_which_there_is_one_cannot_differ() -> None:
    with pytest.raises(TypeError, match="got ndarray, of which there is one"):
        assert_same_on_all(np.zeros(3))


def test_nan_on_one_replica_is_told_with_replica_and_step(strategy: wb.MirroredStrategy) -> None:
    loss = strategy.run(lambda: np.float32(0.5))
    assert_finite(loss)

    number = strategy.group.number
    loss = strategy.run(lambda: np.array([0, np.nan if rank() else 1, np.inf], np.float32)[: 2 + rank()])
    with pytest.raises(
        AssertionError, match="'loss' is not finite on replica 1: 1 NaN and 1 infinite"
    ) as caught:
        assert_finite(loss)
    assert f"step {number}" in str(caught.value)
    assert "on replica 0" not in str(caught.value)


def test_every_variable_of_a_strategy_is_looked_at(strategy: wb.MirroredStrategy, w: wb.Variable) -> None:
    assert_finite(strategy)
    w.assign(np.array([0, np.inf, 0], np.float32))

    with pytest.raises(AssertionError, match="'w:0' is not finite on replica 0: 0 NaN and 1 infinite"):
        assert_finite(strategy)
