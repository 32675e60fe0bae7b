"""Tasks as the names of Dask workers record them, and what strategies make of them."""

from __future__ import annotations

import pytest
from distributed import Scheduler, SpecCluster, Worker

import workbench as wb
from workbench.errors import InvalidArgumentError
from workbench.runtime.deploy.tasks import Task, chief_of, job_of, task_of


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("ps-0", Task("ps", 0)),
        ("worker-12.3", Task("worker", 12)),
        ("chief-0", Task("chief", 0)),
        ("3", None),
        ("default-worker-7", None),
        ("SLURMCluster-0", None),
        ("ps-", None),
    ],
)
def test_the_name_of_a_worker_tells_its_task(name: str, task: Task | None) -> None:
    assert task_of(name) == task
    assert job_of(name) == ("worker" if task is None else task.job)


def test_each_worker_of_a_task_has_a_name_of_its_own() -> None:
    names = Task("worker", 1).worker_names(3)
    assert names == ("worker-1", "worker-1.1", "worker-1.2")
    assert {task_of(name) for name in names} == {Task("worker", 1)}


def test_the_first_worker_leads_where_there_is_no_chief() -> None:
    assert chief_of(["worker", "ps"]) == "worker"
    assert chief_of(["worker", "ps", "chief"]) == "chief"
    assert chief_of(["master", "worker"]) == "master"


def _cluster_of(*names: str) -> SpecCluster:
    quiet = {"dashboard": False}
    return SpecCluster(
        scheduler={
            "cls": Scheduler,
            "options": {"protocol": "inproc", "dashboard_address": "127.0.0.1:0", **quiet},
        },
        workers={
            name: {"cls": Worker, "options": {"protocol": "inproc", "nthreads": 1, **quiet}} for name in names
        },
    )


def test_strategies_leave_out_parameter_servers() -> None:
    with _cluster_of("ps-0", "worker-0", "worker-1") as dask_cluster, wb.connect(dask_cluster) as cluster:
        assert sorted(device.job for device in cluster.devices) == ["ps", "worker", "worker"]
        assert [device.job for device in wb.MirroredStrategy().devices] == ["worker", "worker"]
        assert wb.MirroredStrategy(["/job:ps/device:CPU:2"]).devices[0].job == "ps"
        assert wb.MirroredStrategy(["CPU:0"]).devices[0].job == "worker"


def test_a_cluster_of_parameter_servers_alone_runs_no_replicas() -> None:
    with (
        _cluster_of("ps-0") as dask_cluster,
        wb.connect(dask_cluster),
        pytest.raises(InvalidArgumentError, match=r"all devices of this cluster belong to ps tasks"),
    ):
        wb.MirroredStrategy()
