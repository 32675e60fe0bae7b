"""A data service in a Dask cluster, and strategies that read from one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.until import until
from workbench.errors import ClusterClosed, InvalidArgumentError, UnsafeBind
from workbench.runtime.deploy.roles import Roles

distribute = wb.data.service.distribute


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with wb.connect(replicas=2) as connected:
        yield connected


def test_workers_are_dealt_to_the_processes_of_dask(cluster: Any) -> None:
    with wb.data.service.start(cluster, workers=3) as service:
        dataset = wb.data.Dataset.range(500).map(lambda x: (x, np.int64(os.getpid())))
        found = list(dataset.apply(distribute("distributed_epoch", service.address)))

        assert sorted(int(x) for x, _ in found) == list(range(500))
        assert os.getpid() not in {int(pid) for _, pid in found}
        assert len(service.status().workers) == 3
        assert "3 workers" in repr(service)
        assert "<table>" in service._repr_html_()
    assert repr(service) == "<data service, stopped>"
    with pytest.raises(ClusterClosed, match="stopped"):
        service.address


def test_a_cluster_on_other_machines_is_sent_to_the_commands(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Roles, "hosts", staticmethod(lambda client: ["127.0.0.1", "10.0.0.7"]))

    with pytest.raises(UnsafeBind, match=r"other machines \(10\.0\.0\.7\)") as caught:
        wb.data.service.start(cluster)

    for command in ("data-dispatcher", "data-worker"):
        known = subprocess.run(
            [sys.executable, "-m", "workbench", command, "--help"], capture_output=True, text=True, check=True
        ).stdout
        (line,) = re.findall(rf"`workbench {command} ([^`]*)`", str(caught.value))
        assert all(option in known for option in re.findall(r"--[a-z-]+", line))
    assert "tls=wb.data.service.Tls(authority=FILE)" in str(caught.value)


def test_a_replica_process_that_is_killed_has_its_data_worker_again(cluster: Any) -> None:
    with wb.data.service.start(cluster) as service:
        iterator = iter(
            wb.data.Dataset.range(300).apply(
                distribute("distributed_epoch", service.address, max_outstanding_requests=2)
            )
        )
        found = [int(next(iterator)) for _ in range(20)]
        before = {worker.address for worker in service.status().workers}
        os.kill(next(iter(cluster.client.run(os.getpid).values())), signal.SIGKILL)
        until(lambda: {worker.address for worker in service.status().workers} - before, "a worker's return")

        found += [int(x) for x in iterator]
        assert sorted(found) == list(range(300))


def test_replicas_of_a_strategy_share_a_job_without_a_loss(cluster: Any) -> None:
    strategy = wb.MirroredStrategy()
    with wb.data.service.start(cluster) as service:
        dataset = (
            wb.data.Dataset.range(96)
            .batch(8)
            .apply(distribute("distributed_epoch", service.address, job_name="training"))
        )
        seen: list[int] = []
        for batch in strategy.distribute_dataset(dataset):
            for part in strategy.local_results(batch):
                seen += np.asarray(part).tolist()

        assert sorted(seen) == list(range(96))


@pytest.mark.parametrize("workers", [0, 1.5, True, "2"])
def test_what_is_no_number_of_workers_is_refused(cluster: Any, workers: Any) -> None:
    says = f"workers must be an integer of at least 1, or None for one per Dask worker, got {workers!r}"
    with pytest.raises(InvalidArgumentError, match=says):
        wb.data.service.start(cluster, workers=workers)


def test_a_service_ends_with_its_cluster() -> None:
    with wb.connect(replicas=1, processes=False) as cluster:
        service = wb.data.service.start(cluster)
        assert sorted(
            int(x) for x in wb.data.Dataset.range(5).apply(distribute("parallel_epochs", service.address))
        ) == list(range(5))
    assert repr(service) == "<data service, stopped>"
    with pytest.raises(ClusterClosed, match="connect again"):
        wb.data.service.start(cluster)
