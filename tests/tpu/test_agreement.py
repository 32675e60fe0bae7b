"""Several hosts and what each of them has read: padded to the longest of all, or refused alike by all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.tpu.conftest import by_replica
from workbench.distribute import get_replica_context


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two hosts with two emulated devices each."""
    with wb.connect(hosts=2, tpu=2) as connected:
        yield connected


@pytest.mark.parametrize("lengths", [(3, 3, 2, 1), (1, 1, 3, 3), (0, 2, 2, 2)])
def test_batches_are_padded_to_the_longest_on_any_host(strategy: Any, lengths: tuple[int, ...]) -> None:
    rows = by_replica(strategy, *[np.full((n, 2), n, np.float32) for n in lengths])
    options = wb.distribute.RunOptions(partial_batch="pad")

    def mean(x: Any) -> Any:
        ctx = get_replica_context()
        mask = ctx.row_mask(x)
        total = ctx.all_reduce("SUM", ctx.xp.where(mask[:, None], x, 0).sum())
        return total / ctx.all_reduce("SUM", mask.sum()), x

    for function in (mean, lambda x: mean(x)):  # the lengths were compared before the second program
        result, padded = strategy.run(function, (rows,), options=options)

        assert float(strategy.local_results(result)[3]) == pytest.approx(
            2 * sum(n * n for n in lengths) / sum(lengths)
        )
        assert [part.shape for part in strategy.local_results(padded)] == [(max(lengths), 2)] * 4


def test_a_dataset_whose_last_batch_differs_by_host_is_padded_when_asked(strategy: Any) -> None:
    data = wb.data.Dataset.range(21).map(lambda n: np.float32(n)).batch(8)
    options = wb.distribute.RunOptions(partial_batch="pad")

    def total(x: Any) -> Any:
        ctx = get_replica_context()
        return ctx.xp.where(ctx.row_mask(x), x, 0).sum()

    sums = [strategy.run(total, (batch,), options=options) for batch in strategy.distribute_dataset(data)]

    assert sum(float(strategy.reduce("SUM", part, axis=None)) for part in sums) == sum(range(21))


def test_lengths_that_differ_by_host_are_refused_alike_where_padding_is_not_asked(strategy: Any) -> None:
    rows = by_replica(strategy, *[np.ones(n, np.float32) for n in (3, 3, 2, 2)])

    with pytest.raises(wb.errors.InvalidArgumentError, match=r"2 to 3 rows.*partial_batch='pad'"):
        strategy.run(lambda x: x, (rows,))
    with pytest.raises(wb.errors.InvalidArgumentError, match=r"another dtype.*replicas 2 and 3"):
        strategy.run(lambda x: x, (by_replica(strategy, *[np.ones(2, t) for t in ("f4", "f4", "i4", "i4")]),))
    assert float(strategy.local_results(strategy.run(lambda x: x + 1, (np.float32(1),)))[3]) == 2


def test_a_shape_that_only_one_host_has_compiled_before_does_not_hang_the_other(strategy: Any) -> None:

    def step(x: Any) -> Any:
        return get_replica_context().all_reduce("SUM", x.sum())

    for lengths in ((2, 2, 2, 2), (3, 3, 3, 3)):
        strategy.run(step, (by_replica(strategy, *[np.ones(n, np.float32) for n in lengths]),))

    with pytest.raises(wb.errors.InvalidArgumentError, match="2 to 4 rows"):
        strategy.run(step, (by_replica(strategy, *[np.ones(n, np.float32) for n in (2, 2, 4, 4)]),))
