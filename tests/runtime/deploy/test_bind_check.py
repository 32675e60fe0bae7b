"""Dask clusters of others that can be reached from elsewhere are told of; listeners of ours are refused there."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from distributed import Client, LocalCluster, Security
from distributed.utils import get_ip

from workbench import runtime
from workbench.communicators.core.tcp import is_loopback
from workbench.errors import UnsafeBind
from workbench.runtime.cluster import Cluster
from workbench.runtime.deploy.bind_check import is_exposed, warn_of_exposure
from workbench.runtime.deploy.plugin import WorkbenchPlugin

elsewhere = pytest.mark.skipif(is_loopback(get_ip()), reason="this machine has no address but loopback")


@pytest.fixture
def exposed() -> Iterator[LocalCluster]:
    """Two workers in this process, which listen where others reach them."""
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        host=get_ip(),
        dashboard_address="127.0.0.1:0",
    ) as cluster:
        yield cluster


@contextmanager
def on_two_hosts(dask: LocalCluster) -> Iterator[Cluster]:
    """Its two workers, as if they were on two machines."""
    first, second = (str(name) for name in dask.workers)
    with (
        Client(dask, set_as_default=False) as client,
        Cluster(
            client,
            owned=[],
            plugin=WorkbenchPlugin({first: ("a", 1), second: ("b", 1)}),
            remote=set(),
            stall_seconds=10.0,
        ) as cluster,
    ):
        yield cluster


@pytest.mark.parametrize(
    ("address", "so"),
    [
        ("tcp://127.0.0.1:8786", False),
        ("tcp://127.0.1.1:8786", False),
        ("tcp://localhost:8786", False),
        ("tcp://[::1]:8786", False),
        ("tls://10.0.0.5:8786", False),
        ("wss://10.0.0.5:8786", False),
        ("inproc://10.0.0.5/123/4", False),
        ("tcp://10.0.0.5:8786", True),
        ("tcp://[2001:db8::1]:8786", True),
        ("tcp://localhost.example.com:8786", True),
        ("tcp://127.example.com:8786", True),
        ("ws://10.0.0.5:8786", True),
    ],
)
def test_an_address_is_exposed_that_others_reach_without_a_certificate(address: str, so: bool) -> None:
    assert is_exposed(address) is so


def test_the_warning_names_the_first_address_that_is_exposed_and_points_at_the_caller() -> None:
    with pytest.warns(UserWarning, match=r"without TLS \(tcp://10.0.0.6:1\)") as told:
        warn_of_exposure(["tcp://127.0.0.1:1", "tcp://10.0.0.6:1", "tcp://10.0.0.7:1"])
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_exposure(["tcp://127.0.0.1:1", "tls://10.0.0.6:1"])


@elsewhere
def test_attaching_to_an_exposed_cluster_warns_at_the_line_of_connect_and_works(
    exposed: LocalCluster,
) -> None:
    with pytest.warns(UserWarning, match=f"without TLS.*{exposed.scheduler_address}") as told:
        cluster = runtime.connect(exposed.scheduler_address)
    with cluster:
        assert len(cluster.devices) == 2
        # Its replicas are on one host, so no socket of workbench listens elsewhere.
        cluster.group(cluster.devices, label="Test").close()
    assert [warning.filename for warning in told if "without TLS" in str(warning.message)] == [__file__]


@elsewhere
def test_where_warnings_are_errors_the_workers_of_an_exposed_cluster_are_given_back(
    exposed: LocalCluster,
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="without TLS"):
            runtime.connect(exposed.scheduler_address)
    with pytest.warns(UserWarning, match="without TLS"):
        runtime.connect(exposed.scheduler_address).close()


@elsewhere
def test_replicas_on_several_hosts_of_an_exposed_cluster_are_refused(exposed: LocalCluster) -> None:
    with on_two_hosts(exposed) as cluster:
        with pytest.raises(
            UnsafeBind, match=f"refused to listen on {get_ip()} without TLS.*on several hosts"
        ):
            cluster.group(cluster.devices, label="Test")
        assert not cluster.gang.groups
        cluster.group(cluster.devices[:1], label="Test").close()


@elsewhere
def test_with_tls_nothing_is_said_and_replicas_may_be_on_several_hosts() -> None:
    with (
        warnings.catch_warnings(),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            protocol="tls",
            host=get_ip(),
            security=Security.temporary(),
            dashboard_address="127.0.0.1:0",
        ) as dask,
    ):
        warnings.simplefilter("error")
        with runtime.connect(dask) as cluster:
            assert len(cluster.devices) == 2
        with on_two_hosts(dask) as cluster:
            cluster.group(cluster.devices, label="Test").close()
