"""What bandwidths between hosts are compared with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import workbench as wb
from workbench.ui.collectives.limits import COPIED_BYTES, copy_seconds, measured


def test_between_hosts_the_limit_is_a_large_all_reduce() -> None:
    with wb.connect(hosts=2, replicas_per_host=1) as cluster:
        strategy = wb.MultiWorkerMirroredStrategy()
        strategy.run(lambda: wb.distribute.get_replica_context().all_reduce("sum", np.ones(1000)))
        (row,) = wb.collectives(strategy).rows
        limit = cluster.feed.limit(row.group)

    assert limit is not None
    assert limit.between_hosts is not None
    assert row.limit_percent is not None
    assert (row.algorithm, row.packs) == ("gathered", 1)


class _Group:
    """Two replicas of one host. The second takes twice as long, and has one slower round."""

    size = 2
    devices = (SimpleNamespace(host="a"), SimpleNamespace(host="a"))

    def prepare(self, program: Any) -> Any:
        return program

    def run(self, program: Any) -> Any:
        assert program is copy_seconds
        one = np.array([[1e-3, 1.5e-3]] * len(COPIED_BYTES))
        return SimpleNamespace(values=lambda: [one, one * [2.0, 4.0]])


def test_the_slowest_replica_and_its_best_round_are_the_limit() -> None:
    limit = measured(cast(Any, _Group()))

    assert limit.copy == {size: pytest.approx(size / 2e-3 / 1e9) for size in COPIED_BYTES}
