"""A plain variable is where the device scopes around it say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import workbench as wb
from workbench.errors import InvalidArgumentError

LOCAL = "/job:localhost/replica:0/task:0/device:CPU:"


@pytest.fixture
def cluster() -> Iterator[wb.Cluster]:
    with wb.connect(hosts=2, replicas_per_host=2, processes=False) as cluster:
        yield cluster


def test_without_a_cluster_there_is_one_cpu() -> None:
    with wb.device("CPU:3"):
        assert wb.Variable(0.0).device == LOCAL + "0"


@pytest.mark.usefixtures("cluster")
def test_the_innermost_scope_chooses_among_the_clusters_devices() -> None:
    assert wb.Variable(0.0).device == LOCAL + "0"
    with wb.device("CPU:0"), wb.device("CPU:1"):
        assert wb.Variable(0.0).device == LOCAL + "1"


def test_devices_of_other_hosts_keep_their_names(cluster: wb.Cluster) -> None:
    with wb.device(cluster.devices[3]):
        assert wb.Variable(0.0).device == "/job:worker/replica:0/task:1/device:CPU:1"


@pytest.mark.usefixtures("cluster")
def test_a_host_that_does_not_exist_is_an_error() -> None:
    with wb.device("/job:ps"), pytest.raises(InvalidArgumentError, match="no device at '/job:ps'"):
        wb.Variable(0.0)
