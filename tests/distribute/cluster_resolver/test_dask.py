"""DaskClusterResolver: the tasks of a Dask cluster that is there already."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Client, Scheduler, SpecCluster, Worker

import workbench as wb
from tests.own_cluster import wait_for_workers
from workbench.distribute import ClusterSpec
from workbench.distribute.cluster_resolver import DaskClusterResolver, UnionResolver
from workbench.errors import InvalidArgumentError, UnavailableError

NAMES = ("worker-1", "worker-0", "worker-0.1", "ps-0", "10", "9")


@pytest.fixture
def dask_cluster() -> Iterator[SpecCluster]:
    quiet = {"dashboard": False, "host": "127.0.0.1"}
    with SpecCluster(
        scheduler={"cls": Scheduler, "options": {**quiet, "port": 0, "dashboard_address": "127.0.0.1:0"}},
        workers={name: {"cls": Worker, "options": {"nthreads": 1, **quiet}} for name in NAMES},
    ) as cluster:
        wait_for_workers(cluster, len(NAMES))
        yield cluster


def _addresses(cluster: SpecCluster) -> dict[str, str]:
    return {name: worker.address.partition("://")[2] for name, worker in cluster.workers.items()}


def test_the_names_of_workers_tell_their_tasks_however_the_cluster_is_given(
    dask_cluster: SpecCluster, tmp_path: Path
) -> None:
    at = _addresses(dask_cluster)
    spec = ClusterSpec({"ps": [at["ps-0"]], "worker": [at["worker-0"], at["worker-1"], at["9"], at["10"]]})
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": dask_cluster.scheduler_address}))
    with Client(dask_cluster, set_as_default=False) as client:
        for given in (client, dask_cluster, dask_cluster.scheduler_address, file, str(file)):
            resolver = DaskClusterResolver(given, rpc_layer="grpc")
            assert resolver.cluster_spec() == spec
            assert resolver.master("ps", 0) == f"grpc://{at['ps-0']}"
            scheduler = dask_cluster.scheduler_address.partition("://")[2]
            assert resolver.master() == f"grpc://{scheduler}"
            assert UnionResolver(resolver).cluster_spec() == spec


def test_connecting_to_a_resolver_attaches_to_its_cluster(dask_cluster: SpecCluster) -> None:
    with wb.connect(DaskClusterResolver(dask_cluster)) as cluster:
        assert len(cluster.devices) == len(NAMES)
        assert wb.connect(DaskClusterResolver(dask_cluster)) is cluster
        assert wb.MirroredStrategy().num_replicas_in_sync == len(NAMES) - 1


def test_a_strategy_attaches_to_the_cluster_of_its_resolver(dask_cluster: SpecCluster) -> None:
    resolver = DaskClusterResolver(dask_cluster.scheduler_address)
    strategy = wb.MultiWorkerMirroredStrategy(resolver)
    cluster = wb.runtime.current_cluster()
    assert cluster is not None
    with cluster:
        assert strategy.cluster_resolver is resolver
        assert strategy.num_replicas_in_sync == len(NAMES) - 1


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="no Dask scheduler answers"):
        DaskClusterResolver("tcp://127.0.0.1:1").cluster_spec()
    (tmp_path / "other.json").write_text("[]")
    for name in ("missing.json", "other.json"):
        with pytest.raises(InvalidArgumentError, match="is not a scheduler file"):
            DaskClusterResolver(tmp_path / name)
