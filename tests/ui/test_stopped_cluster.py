"""The views of a cluster once it is closed."""

from __future__ import annotations

import workbench as wb
from workbench.ui.cluster.cluster_views import topology_source


def rank() -> int:
    return wb.distribute.get_replica_context().replica_id_in_sync_group


def test_the_topology_of_a_cluster_that_was_closed_stays_as_it_was_last() -> None:
    with wb.connect(replicas=2, processes=False) as cluster:
        strategy = wb.MirroredStrategy()
        strategy.run(rank)
        source, late = topology_source(cluster), topology_source(cluster)
        before = source.model()

    message = source.change()

    assert message is not None
    after = message["model"]
    (worker,), (same,) = after["hosts"][0]["workers"], before["hosts"][0]["workers"]
    assert (after["status"], worker["status"]) == ("stopped", "stopped")
    assert worker["memory_bytes"] == same["memory_bytes"] is not None
    assert [device["replicas"] for device in worker["devices"]] == [
        [replica | {"busy": False} for replica in device["replicas"]] for device in same["devices"]
    ]
    assert source.ended
    assert source.change() is None
    assert late.model()["status"] == "stopped"  # a source that never saw it alive


def test_an_empty_log_says_whether_something_may_come() -> None:
    with wb.connect(replicas=1, processes=False):
        log = wb.log()
        assert repr(log) == "Log: nothing happened yet, live"
    assert repr(log) == "Log: nothing happened, stopped"
