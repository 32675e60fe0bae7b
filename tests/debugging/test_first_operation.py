"""The first operation that makes a NaN or an infinity is named: in the notebook, in datasets, on replicas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import NotFinite


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    wb.debugging.enable_check_numerics()
    yield
    wb.debugging.disable_check_numerics()


@pytest.fixture(scope="module", params=["threads", "processes"])
def cluster(request: pytest.FixtureRequest) -> Iterator[wb.Cluster]:
    with wb.connect(replicas=2, processes=request.param == "processes", replace=True) as cluster:
        yield cluster


def _loss(x: np.ndarray) -> float:
    scaled = x * 2
    return float(np.log(scaled - 2).sum())


def test_the_operation_and_its_line_are_named_in_the_notebook() -> None:
    x = np.array([1.0, -1.0])
    with pytest.raises(
        NotFinite,
        match=r"`np.sqrt\(x\)` makes a NaN \(invalid value\), at test_first_operation\.py:\d+ in test_the_op",
    ):
        np.sqrt(x)
    with pytest.raises(NotFinite, match=r"`1 / \(x - 1\)` makes an infinity \(divide by zero\)"):
        1 / (x - 1)
    with pytest.raises(NotFinite, match=r"`np.exp\(x \* 1e6\)` makes an infinity \(overflow\)"):
        np.exp(x * 1e6)


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_numpys_own_functions_are_not_the_place() -> None:
    with pytest.raises(NotFinite, match=re.escape("`np.mean(np.array([]))` makes a NaN")):
        np.mean(np.array([]))


def test_what_the_user_allows_passes() -> None:
    with np.errstate(divide="ignore"):
        assert np.isinf(np.log(np.zeros(1))).all()


def test_disabling_puts_back_what_numpy_did_before() -> None:
    wb.debugging.enable_check_numerics()
    wb.debugging.disable_check_numerics()
    before = np.geterr()
    assert before["invalid"] == "warn"
    with np.errstate(divide="raise"):
        wb.debugging.enable_check_numerics()
        wb.debugging.disable_check_numerics()
        assert np.geterr()["divide"] == "raise"
    assert np.geterr() == before


def test_the_operation_is_named_with_replica_and_step(cluster: wb.Cluster) -> None:
    strategy = wb.MirroredStrategy()
    x = wb.distribute.PerReplica([np.full(2, 3.0), np.full(2, 1.0)])

    expected = r"makes an infinity \(divide by zero\) on replica 1 at step 0, at test_first_operation\.py:\d+ in _loss"
    with pytest.raises(NotFinite, match=expected) as caught:
        strategy.run(_loss, args=(x,))
    assert "np.log(scaled - 2)" in str(caught.value)


def test_a_sum_over_replicas_that_overflows_ends_the_step_and_not_the_collective(
    cluster: wb.Cluster,
) -> None:
    strategy = wb.MirroredStrategy()

    def step(x: Any) -> Any:
        return wb.distribute.get_replica_context().all_reduce("SUM", x)

    with pytest.raises(NotFinite, match="what the replica function returned is not finite on replica"):
        strategy.run(step, args=(np.full(2, 3e38, np.float32),))
    assert float(strategy.local_results(strategy.run(step, args=(np.ones(2),)))[0][0]) == 2.0


def test_a_dataset_raises_at_the_element_and_goes_on() -> None:
    dataset = wb.data.Dataset.range(3).map(lambda i: np.log(np.float32(i) - 1))
    elements = iter(dataset)

    with pytest.raises(NotFinite, match=r"`np.log\(np.float32\(i\) - 1\)` makes a NaN .* in a dataset"):
        next(elements)
    with pytest.raises(NotFinite, match="divide by zero"):
        next(elements)
    assert float(next(elements)) == 0.0
    assert list(elements) == []


def test_a_note_names_stage_and_element() -> None:
    dataset = wb.data.Dataset.range(3).map(lambda i: np.sqrt(np.float32(1 - i)), num_parallel_calls=2)

    elements = iter(dataset)
    next(elements), next(elements)
    with pytest.raises(NotFinite) as caught:
        next(elements)
    assert "element 2" in " ".join(caught.value.__notes__)


def test_elements_of_a_source_are_looked_at_where_they_come_out() -> None:
    rows = wb.data.Dataset.from_tensor_slices(np.array([1.0, np.nan]))

    cleaned = rows.map(np.nan_to_num)
    assert [float(x) for x in cleaned] == [1.0, 0.0]
    elements = iter(rows)
    next(elements)
    with pytest.raises(NotFinite, match="element 1 is not finite in a dataset: 1 NaN"):
        next(elements)


def test_jax_operations_on_replicas_are_named() -> None:
    jnp = pytest.importorskip("jax.numpy", reason="JAX is not installed: pip install -e '.[jax]'")
    with wb.connect(replicas=2, processes=False, replace=True):
        strategy = wb.MirroredStrategy(backend="jax")

        def step() -> Any:
            return jnp.log(jnp.zeros(2)) + 1

        with pytest.raises(
            NotFinite, match=r"JAX: .*encountered in log.* on replica \d at step 0, at test_first"
        ):
            strategy.run(step)
