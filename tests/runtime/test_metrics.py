"""What the scheduler knows of workers."""

from __future__ import annotations

from workbench import runtime
from workbench.runtime.metrics import worker_metrics
from workbench.ui.cluster.cluster_model import DeviceHistory


def test_the_use_of_workers_is_known_until_the_cluster_is_closed() -> None:
    with runtime.connect(replicas=2, processes=False, replace=True) as cluster:
        (worker,) = cluster.gang.workers.values()
        metrics = worker_metrics(cluster)[worker.address]

        assert metrics.memory_bytes > 1 << 20
        assert metrics.cpu_percent >= 0
        assert metrics.gpus == ()
    assert worker_metrics(cluster) == {}
    assert DeviceHistory(cluster).model().status == "stopped"
