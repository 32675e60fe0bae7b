"""A TPUStrategy from a resolver: the hosts of a TPU have become one cluster by `workbench join`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.joined import JoinedTask, free_address
from workbench.distribute.cluster_resolver import TFConfigClusterResolver, TPUClusterResolver
from workbench.errors import FailedPreconditionError
from workbench.runtime.joining.secret import FILE_VARIABLE

pytestmark = pytest.mark.timeout(240)

EMULATED = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"}


class RecordedCloud:
    """The part of the Cloud TPU API that is asked, with its answer for a TPU at these addresses."""

    def __init__(self, addresses: list[str]) -> None:
        endpoints = [
            {"ipAddress": host, "port": port}
            for host, _, port in (each.rpartition(":") for each in addresses)
        ]
        self._answer = {"state": "READY", "health": "HEALTHY", "networkEndpoints": endpoints}

    def __getattr__(self, name: str) -> Any:
        return lambda **kwargs: self

    def execute(self) -> Any:
        return self._answer


@pytest.fixture
def addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Two tasks with two emulated cores each, that join."""
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "secret"))
    workers = [free_address(), free_address()]
    with contextlib.ExitStack() as stack:
        for index in range(2):
            task = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
            joined = JoinedTask(
                secret_file=tmp_path / "secret", environment={"TF_CONFIG": json.dumps(task)} | EMULATED
            )
            stack.callback(joined.close)
        yield workers
        if (cluster := wb.runtime.current_cluster()) is not None:
            cluster.close()


def _ranks(strategy: Any) -> list[float]:
    def step(x: Any) -> Any:
        ctx = wb.distribute.get_replica_context()
        assert ctx is not None
        return ctx.all_reduce("SUM", x * (ctx.replica_id_in_sync_group + 1))

    return [float(x) for x in strategy.local_results(strategy.run(step, args=(np.float32(1),)))]


def test_the_hosts_that_the_cloud_names_become_one_strategy(addresses: list[str]) -> None:
    cloud = RecordedCloud(addresses)
    resolver = TPUClusterResolver("my-tpu", zone="z", project="p", service=cloud)
    assert resolver.cluster_spec().as_dict() == {"worker": addresses}

    strategy = wb.TPUStrategy(resolver)

    assert strategy.cluster_resolver is resolver
    assert [device.short for device in strategy.devices] == ["TPU:0", "TPU:1", "TPU:2", "TPU:3"]
    assert len({device.worker for device in strategy.devices}) == 2
    assert _ranks(strategy) == [10.0] * 4
    metadata = resolver.get_tpu_system_metadata()
    assert (metadata.num_cores, metadata.num_hosts, metadata.num_of_cores_per_host) == (4, 1, 4)
    assert resolver.num_accelerators() == {"TPU": 4}  # both tasks are on this machine


def test_any_resolver_of_tasks_will_do_and_an_open_cluster_comes_first(
    addresses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"worker": addresses}}))
    with wb.connect(TFConfigClusterResolver(), tpu="auto"):
        strategy = wb.TPUStrategy(TFConfigClusterResolver())
        assert strategy.num_replicas_in_sync == 4
        assert _ranks(strategy) == [10.0] * 4


def test_the_tpu_of_this_machine_is_connected_to_and_not_through_its_resolver() -> None:
    with pytest.raises(FailedPreconditionError, match=r"no cluster is connected; wb\.connect\(tpu=8\)"):
        wb.TPUStrategy(TPUClusterResolver("local"))
    with wb.connect(tpu=2):
        strategy = wb.TPUStrategy(TPUClusterResolver("local"))
        assert strategy.num_replicas_in_sync == 2
        assert TPUClusterResolver("local").num_accelerators() == {"TPU": 2}
