"""What bandwidths between hosts are compared with."""

from __future__ import annotations

import numpy as np

import workbench as wb


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
