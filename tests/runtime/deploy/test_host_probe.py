"""Workers that seem to be on one machine and may not share memory: what is found by trying, and what becomes of it."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.own_cluster import OTHER_FILES, OwnCluster, refusal, wait_for_workers
from tests.runtime.conftest import runner
from workbench import runtime
from workbench.communicators import Reduction
from workbench.runtime.comm.dask_link import DaskLink
from workbench.runtime.comm.links import UnixLink
from workbench.runtime.comm.unix_endpoint import UnixEndpoint
from workbench.runtime.deploy.host_probe import PURPOSE, hosts_of, look, obstacle
from workbench.ui.cluster.diagnosis import diagnose


def _sums(cluster: runtime.Cluster) -> list[float]:
    run = runner(cluster.group(cluster.devices, label="Test"))
    return list(
        run(lambda env: float(env.communicator.all_reduce([env.rank + 1.0], Reduction("sum"))[0])).values()
    )


needs_other_files = pytest.mark.skipif(
    refusal(OTHER_FILES) != "",
    reason=f"this user may not give a process files of its own: {refusal(OTHER_FILES)}",
)


@needs_other_files
def test_containers_with_the_machines_name_and_files_of_their_own_train_over_tcp(own: OwnCluster) -> None:
    own.add("0")
    own.add("1", inside=OTHER_FILES)
    own.add("2", inside=OTHER_FILES)
    wait_for_workers(own.address, 3)

    with runtime.connect(own.address) as cluster:
        here = socket.gethostname()
        assert cluster.hosts == (here, f"{here}.2", f"{here}.3")
        links = {name: worker.steps for name, worker in cluster.gang.workers.items()}
        assert [type(links[name]) for name in "012"] == [UnixLink, DaskLink, DaskLink]
        assert _sums(cluster) == [6.0, 6.0, 6.0]
        # Their processes are still visible, so their ends can be described.
        assert [worker.local for worker in cluster.gang.workers.values()] == [True] * 3

        told = [event.message for event in cluster.feed.snapshot().events if event.kind == "lifecycle"]
        assert "worker 1 calls its host as others do, and cannot share memory with them" in told[1]
        assert "No such file or directory" in told[0]
        assert "Dask's tcp connection" in told[0]
        ways = {worker.name: worker.reached for worker in diagnose(cluster).workers}
        assert ways["0"] == "Unix socket"
        assert "No such file or directory" in ways["1"]


@needs_other_files
def test_workers_of_one_container_share_its_memory_though_the_driver_is_outside(
    own: OwnCluster, tmp_path: Path
) -> None:
    both = 'mount -t tmpfs tmpfs /tmp && { "$@" --name 1 & exec "$@" --name 0; }'
    own.add("ignored", inside=("unshare", "--mount", "sh", "-c", both, "sh"))
    wait_for_workers(own.address, 2)

    with runtime.connect(own.address) as cluster:
        assert cluster.hosts == (socket.gethostname(),)
        assert {type(worker.steps) for worker in cluster.gang.workers.values()} == {DaskLink}
        assert _sums(cluster) == [3.0, 3.0]


def test_memory_is_shown_through_the_socket() -> None:
    visited: list[str] = []

    def visit(sock: socket.socket, token: str, purpose: str) -> bool:
        visited.append(token)
        look(sock)
        return purpose == PURPOSE

    endpoint = UnixEndpoint(lambda link, token, purpose: link.close(), visit)
    try:
        assert obstacle(endpoint.path, "secret") == ""
        assert visited == ["secret"]
    finally:
        endpoint.close()
    assert "No such file" in obstacle(endpoint.path, "secret")
    assert obstacle("", "secret") == "it offers no Unix socket"


def test_a_socket_that_passes_no_descriptors_is_told_from_one_that_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without(sock: socket.socket, data: Sequence[bytes], descriptors: Sequence[int]) -> int:
        return sock.send(b"".join(data))

    def visit(sock: socket.socket, token: str, purpose: str) -> bool:
        look(sock)
        return True

    endpoint = UnixEndpoint(lambda link, token, purpose: link.close(), visit)
    monkeypatch.setattr(socket, "send_fds", without)
    try:
        assert "descriptors cannot be passed" in obstacle(endpoint.path, "secret")
    finally:
        endpoint.close()


@pytest.mark.parametrize(
    ("names", "parts", "expected"),
    [
        ({"w0": "x", "w1": "x", "w2": "y"}, [{"w0", "w1"}, {"w2"}], {"w0": "x", "w1": "x", "w2": "y"}),
        (
            {"w0": "x", "w1": "x", "w2": "x", "w3": "x"},
            [{"w0", "w2"}, {"w1", "w3"}],
            {"w0": "x", "w1": "x.2", "w2": "x", "w3": "x.2"},
        ),
        (
            {"w0": "x", "w1": "x", "w2": "x.2"},
            [{"w0"}, {"w1"}, {"w2"}],
            {"w0": "x", "w1": "x.2'", "w2": "x.2"},
        ),
    ],
)
def test_hosts_are_the_parts_that_share_memory(
    names: dict[str, str], parts: list[set[str]], expected: dict[str, str]
) -> None:
    def tried(first: str, others: Sequence[str]) -> Mapping[str, str]:
        part = next(part for part in parts if first in part)
        return {other: "" if other in part else "apart" for other in others}

    hosts, reasons = hosts_of(names, tried)

    assert hosts == expected
    assert set(reasons.values()) <= {"apart"}
