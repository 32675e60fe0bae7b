"""A second `connect` in a notebook: cells run again go on, and no variable is lost unasked."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import workbench as wb
from workbench.errors import FailedPreconditionError


def test_variables_are_named_and_kept_until_the_user_replaces_their_cluster() -> None:
    with wb.connect(replicas=2, processes=False) as first:
        strategy = wb.MirroredStrategy()
        with strategy.scope():
            weights = wb.Variable(np.arange(3.0), name="weights")
        with pytest.raises(FailedPreconditionError, match=r"MirroredStrategy \(variable weights:0\)"):
            wb.connect(replicas=3, processes=False)
        np.testing.assert_array_equal(weights.numpy(), [0.0, 1.0, 2.0])

        with wb.connect(replicas=3, processes=False, replace=True) as second:
            assert first.closed
            assert wb.current_cluster() is second


def test_cells_that_run_again_use_the_same_cluster() -> None:
    """As "Run All" does: the names are bound anew, and what they were bound to is let go."""
    clusters = []
    for _ in range(2):
        cluster = wb.connect(replicas=2, processes=False)
        strategy = wb.MirroredStrategy()
        clusters.append(cluster)
    assert clusters[0] is clusters[1]
    assert strategy.reduce("sum", strategy.run(lambda: 1.0), axis=None) == 2.0
    cluster.close()


def test_a_cluster_that_no_strategy_uses_is_replaced_without_asking() -> None:
    with wb.connect(replicas=2, processes=False) as first:
        strategy = wb.MirroredStrategy()
        del strategy
        gc.collect()
        with wb.connect(replicas=3, processes=False) as second:
            assert first.closed
            assert len(second.devices) == 3
