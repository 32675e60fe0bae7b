"""Starting, attaching and closing clusters, on every kind of Dask cluster; what bad arguments get."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from distributed import Client, LocalCluster

from tests.leaks import Resources, leaked_since
from tests.runtime.conftest import runner
from workbench import runtime
from workbench.communicators import Reduction
from workbench.errors import (
    BackendUnavailable,
    ClusterBusy,
    ClusterClosed,
    FailedPreconditionError,
    InvalidArgumentError,
    UnavailableError,
    WorkbenchError,
)
from workbench.runtime.comm import unix_endpoint
from workbench.runtime.deploy import embedded
from workbench.runtime.deploy.claiming import Connector
from workbench.runtime.worker.host import ReplicaHost


def _works(cluster: runtime.Cluster) -> int:
    """Has all replicas sum up; returns their number."""
    group = cluster.group(cluster.devices, label="Test")
    total = runner(group)(lambda env: float(env.communicator.all_reduce([env.rank], Reduction("sum"))[0]))
    size = len(cluster.devices)
    assert total.values() == [size * (size - 1) / 2] * size
    return size


def test_fewer_workers_than_were_asked_for_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    start = embedded.start

    def start_fewer(*, workers: int, **options: Any) -> LocalCluster:
        return start(workers=workers - 1, **options)  # as if one had lost its scheduler in its first moment

    monkeypatch.setattr(embedded, "start", start_fewer)
    with pytest.raises(UnavailableError, match="1 of 2 workers was gone as soon as the cluster had started"):
        runtime.connect(replicas=2)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"replicas": 0}, "replicas must be an integer of at least 1, got 0"),
        ({"replicas": "2"}, "replicas must be an integer of at least 1, got '2'"),
        ({"replicas": True}, "got True"),
        ({"hosts": -1}, "hosts must be an integer"),
        ({"replicas": 3, "hosts": 2}, "3 replicas cannot be laid out evenly on 2 hosts; use a multiple of 2"),
        ({"replicas": 3, "hosts": 2, "replicas_per_host": 2}, "leave one of them out"),
        ({"replicas": 3, "replicas_per_worker": 2}, "use a divisor of 3"),
        ({"address": "tcp://127.0.0.1:1", "replicas": 2}, "describe an embedded cluster"),
        ({"stall_seconds": -1}, "stall_seconds must be a number of seconds above 0, got -1"),
        ({"stall_seconds": None}, "stall_seconds must be a number of seconds above 0, got None"),
        ({"timeout_seconds": "10"}, "timeout_seconds must be a number of seconds above 0, got '10'"),
        ({"memory_limit": "much"}, "memory_limit must be bytes, or a text such as '4 GiB', got 'much'"),
    ],
)
def test_numbers_that_do_not_fit_are_refused_with_the_way_out(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^[^\n]*$") as caught:
        runtime.connect(**arguments)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "arguments", [{"replicas": 0}, {"replicas": 3, "hosts": 2}, {"gpus": 1000}, {"memory_limit": "much"}]
)
def test_a_refused_connect_leaves_the_current_cluster_alone(arguments: dict[str, Any]) -> None:
    with runtime.connect(replicas=2, processes=False) as cluster:
        with pytest.raises(WorkbenchError):
            runtime.connect(**arguments)

        assert runtime.current_cluster() is cluster
        assert _works(cluster) == 2


def test_what_was_not_sent_yet_is_in_the_feed_after_closing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.runtime.cluster._LAST_FLUSH_SECONDS", 60.0)  # however busy the machine is
    with runtime.connect(replicas=2) as cluster:
        assert _works(cluster) == 2

    assert cluster.feed.snapshot().counters.collectives == 1


def test_sixty_four_replicas_in_one_process() -> None:
    with runtime.connect(replicas=64, processes=False) as cluster:
        assert _works(cluster) == 64


def test_hosts_of_several_replicas_and_workers() -> None:
    with runtime.connect(hosts=2, replicas_per_host=2) as cluster:
        assert cluster.hosts == ("a", "b")
        assert [(d.host, d.index, d.task) for d in cluster.devices] == [
            ("a", 0, 0),
            ("a", 1, 0),
            ("b", 0, 1),
            ("b", 1, 1),
        ]
        assert _works(cluster) == 4


def test_hosts_in_threads() -> None:
    with runtime.connect(hosts=2, replicas_per_host=2, processes=False) as cluster:
        assert _works(cluster) == 4


def test_connecting_again_with_the_same_arguments_gives_the_cluster_that_runs() -> None:
    with runtime.connect(replicas=1, processes=False) as first:
        assert runtime.connect(replicas=1, processes=False) is first
        assert runtime.connect(replicas=1, processes=False, replicas_per_worker=1) is first
    with runtime.connect(replicas=1, processes=False) as second:
        assert second is not first
        assert first.closed


def test_a_cluster_whose_scheduler_has_gone_is_not_given_again() -> None:
    first = runtime.connect(replicas=1, processes=False)
    first.client.close()
    with runtime.connect(replicas=1, processes=False) as second:
        assert _works(second) == 1
    assert first.closed


def test_a_second_connect_closes_no_cluster_that_a_strategy_uses() -> None:
    with runtime.connect(replicas=1, processes=False) as first:
        group = first.group(first.devices, label="Test")
        group.kept_names = lambda: ("w", "b")
        with pytest.raises(FailedPreconditionError, match="Test") as caught:
            runtime.connect(replicas=2, processes=False)
        text = str(caught.value)
        assert "a cluster of 1 device on 1 host (1×cpu) is running" in text
        assert "Test (variables w, b)" in text
        assert "wb.connect(replicas=2, processes=False, replace=True)" in text
        assert not first.closed
        assert runner(group)(lambda env: 3).values() == [3]
        with pytest.raises(InvalidArgumentError):  # an error that would come anyway comes first
            runtime.connect(replicas=0, replace=True)
        assert not first.closed

        first.gang.abandoned.append(group)  # as when the strategy is garbage-collected
        with runtime.connect(replicas=2, processes=False):
            assert first.closed


def test_a_cluster_that_is_replaced_is_closed_first() -> None:
    first = runtime.connect(replicas=1, processes=False)
    group = first.group(first.devices, label="Test")
    with runtime.connect(replicas=1, processes=False, replace=True) as second:
        assert runtime.current_cluster() is second
        assert first.closed
        with pytest.raises(ClusterClosed, match=r"connect again with wb.connect"):
            runner(group)(lambda env: None)
        assert _works(second) == 1
    assert runtime.current_cluster() is None


def test_values_of_a_closed_cluster_say_so() -> None:
    with runtime.connect(replicas=1) as cluster:
        run = runner(cluster.group(cluster.devices, label="Test"))
        large, small = run(lambda env: bytes(100_000)), run(lambda env: 5)
    assert small.values() == [5]
    with pytest.raises(ClusterClosed):
        large.values()
    cluster.close()


def test_auto_connect_gives_the_current_cluster() -> None:
    with runtime.connect(replicas=2, processes=False) as cluster:
        assert runtime.auto_connect(2) is cluster


@pytest.mark.parametrize("processes", [True, False])
def test_attaching_to_a_cluster_object_a_client_and_an_address(processes: bool) -> None:
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": processes,
        "dashboard_address": "127.0.0.1:0",
    }
    with (
        LocalCluster(**options) as dask,
        Client(dask, set_as_default=False) as client,
    ):
        for target in (dask, client, dask.scheduler_address):
            with runtime.connect(target) as cluster:
                assert _works(cluster) == 2
            assert client.submit(sum, [1, 2]).result(timeout=10) == 3


def test_two_drivers_at_once_are_refused_and_one_after_the_other_are_not() -> None:
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    ) as dask:
        with runtime.connect(dask) as first:
            assert runtime.connect(dask) is first
            with pytest.raises(ClusterBusy, match="is held by") as caught:
                runtime.connect(dask, replicas_per_worker=2)
            assert caught.value.pid == os.getpid()
            assert _works(first) == 1
        with runtime.connect(dask, replicas_per_worker=2) as second:
            assert _works(second) == 2


KILLED_DRIVER = """
import os, signal, sys
import workbench as wb
cluster = wb.connect(sys.argv[1])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_of_a_driver_that_was_killed_are_free_at_once() -> None:
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options, processes=False, protocol="tcp://", host="127.0.0.1") as dask:
        address = dask.scheduler_address
        done = subprocess.run([sys.executable, "-c", KILLED_DRIVER, address], capture_output=True, timeout=60)
        assert done.returncode == -signal.SIGKILL, done.stderr
        ends = time.monotonic() + 5.0  # a claim lasts longer if its driver has not opened links yet
        while True:
            try:
                cluster = runtime.connect(address)
            except ClusterBusy:  # the worker has not read the end of the links yet
                assert time.monotonic() < ends
            else:
                break
        with cluster:
            assert _works(cluster) == 1


def test_what_a_worker_lacks_is_told_as_that_and_its_group_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lacks(host: ReplicaHost, join: Any) -> Any:
        raise BackendUnavailable("CuPy is not installed")

    with runtime.connect(replicas=2, processes=False) as cluster:
        with monkeypatch.context() as patched:
            patched.setattr(ReplicaHost, "_open", lacks)
            with pytest.raises(BackendUnavailable, match="CuPy is not installed"):
                cluster.group(cluster.devices, label="Test")
        assert not cluster.gang.groups
        assert not cluster.gang.requests
        assert _works(cluster) == 2


@pytest.mark.parametrize(
    "failing", [1, *(pytest.param(number, marks=pytest.mark.thorough) for number in (2, 3, 4))]
)
def test_workers_are_given_back_where_one_link_cannot_be_opened_at_all(
    monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as dask,
        Client(dask, set_as_default=False) as client,
    ):
        opened = unix_endpoint.connect
        asked: list[str] = []

        def fails_once(path: str, token: str, purpose: str) -> Any:
            asked.append(purpose)
            if len(asked) == failing:
                raise UnavailableError("no such link")
            return opened(path, token, purpose)

        def unreachable(connector: Connector, address: str, purpose: str) -> Any:
            raise UnavailableError("no such link")

        monkeypatch.setattr(unix_endpoint, "connect", fails_once)
        monkeypatch.setattr(Connector, "_over_comm", unreachable)
        with pytest.raises(UnavailableError, match="no such link"):
            runtime.connect(client)
        with runtime.connect(client) as cluster:
            assert _works(cluster) == 2


@pytest.mark.parametrize("processes", [True, False])
def test_the_script_may_have_a_name_that_is_no_text(monkeypatch: pytest.MonkeyPatch, processes: bool) -> None:
    monkeypatch.setattr(sys, "argv", ["/home/tr\udcffain.py"])
    with runtime.connect(replicas=1, processes=processes) as cluster:
        assert _works(cluster) == 1


def test_a_cluster_without_workers_is_told() -> None:
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0") as dask,
        pytest.raises(UnavailableError, match="has no workers"),
    ):
        runtime.connect(dask)


def test_environment_reaches_the_workers() -> None:
    with runtime.connect(replicas=1, environment={"WB_TEST": "yes"}) as cluster:
        run = runner(cluster.group(cluster.devices, label="Test"))
        assert run(lambda env: os.environ.get("WB_TEST")).values() == ["yes"]
        assert run(lambda env: os.getpid()).values() == [cluster.gang.workers["0"].pid]


@pytest.mark.parametrize(
    "arguments",
    [{"replicas": 2}, {"replicas": 2, "processes": False}, {"hosts": 2, "replicas_per_host": 1}],
)
def test_closing_leaves_nothing_behind(arguments: dict[str, Any]) -> None:
    before = Resources.now()
    with runtime.connect(**arguments) as cluster:
        _works(cluster)
        pids = {worker.pid for worker in cluster.gang.workers.values()} - {os.getpid()}
        # Embedded workers admit no second driver: their endpoints close as soon as the first is there.
        assert not any(
            description["path"] and Path(description["path"]).exists() for description in _described(cluster)
        )
    assert not leaked_since(before)
    assert not any(psutil.pid_exists(pid) for pid in pids)


def _described(cluster: runtime.Cluster) -> list[dict[str, Any]]:
    found = cluster._connector.describe().values()
    return [worker for worker in found if worker["pid"] != os.getpid()]


def test_closing_while_a_step_runs_ends_in_time() -> None:
    cluster = runtime.connect(replicas=2)
    group = cluster.group(cluster.devices, label="Test")
    first = group.prepare(lambda env: 0, user_function=len)
    group.run(first)

    def slow(env: Any) -> int:
        threading.Event().wait(60)
        return 0

    prepared = group.prepare(slow, user_function=slow)
    prepared.structure = first.structure
    handle = group.run(prepared, pipelined=True)
    start = time.monotonic()
    cluster.close()
    assert time.monotonic() - start < 20
    with pytest.raises(ClusterClosed):
        handle.values()


@pytest.mark.parametrize("arguments", [{"replicas": 2}, {"replicas": 2, "processes": False}])
def test_closing_ends_the_wait_of_another_thread_for_a_step(
    arguments: dict[str, Any], tmp_path: Path
) -> None:
    gate = str(tmp_path / "gate")

    def half(env: Any) -> None:
        if env.rank == 0:
            env.communicator.barrier()
        while env.rank and not os.path.exists(gate):
            threading.Event().wait(0.01)

    def step() -> None:
        with pytest.raises(ClusterClosed, match="connect again"):
            runner(group)(half)
        told.set()

    told = threading.Event()
    cluster = runtime.connect(**arguments)
    group = cluster.group(cluster.devices, label="Test")
    waiting = threading.Thread(target=step)
    waiting.start()
    worker, _ = group.place(0)
    closing = threading.Thread(target=cluster.close)
    try:
        for _ in range(1000):
            if any(row[5] == "barrier" for row in worker.statuses):
                break
            threading.Event().wait(0.03)
        closing.start()
        assert told.wait(20)
    finally:
        Path(gate).touch()
        waiting.join(20)
        closing.join(20)
    assert not waiting.is_alive()
    assert not closing.is_alive()


def test_other_threads_may_ask_while_a_step_hangs() -> None:
    from workbench.runtime.comm.messages import DUMP

    with runtime.connect(replicas=2) as cluster:
        group = cluster.group(cluster.devices, label="Test")

        def half(env: Any) -> None:
            if env.rank == 0:
                env.communicator.barrier(site="here.py:7")
            else:
                while env.communicator.status().step >= 0 and not os.path.exists(gate):
                    threading.Event().wait(0.01)
                env.communicator.barrier(site="here.py:7")

        gate = f"/tmp/gate-{os.getpid()}"
        thread = threading.Thread(target=lambda: runner(group)(half))
        thread.start()
        try:
            worker, _ = group.place(0)
            deadline = time.monotonic() + 30
            while True:
                dump = cluster.gang.urgent.ask(worker, DUMP).answer(10)
                phases = [row[6] for row in dump["statuses"] if row[0] == group.id]
                if phases == ["waiting"]:
                    break
                assert time.monotonic() < deadline
            assert "here.py:7" in [row[7] for row in dump["statuses"]]
            assert "barrier" in dump["stacks"]
        finally:
            Path(gate).touch()
            thread.join(30)
            Path(gate).unlink()
        assert not thread.is_alive()


def test_a_version_that_differs_is_told_before_anything_is_opened() -> None:
    with runtime.connect(replicas=1, processes=False) as cluster:
        described = {a: {**w, "protocol": 0} for a, w in cluster._connector.describe().items()}
        with pytest.raises(WorkbenchError, match="protocol 0, this notebook Python"):
            cluster._connector.claim(described)


def test_clusters_in_this_process_give_their_descriptors_back() -> None:
    def pipes() -> int:
        gc.collect()
        targets = (Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd"))
        return sum(os.readlink(target).startswith("pipe:") for target in targets if target.is_symlink())

    def use_one() -> None:
        with runtime.connect(replicas=4, processes=False) as cluster:
            assert _works(cluster) == 4

    use_one()
    before = pipes()
    for _ in range(3):
        use_one()

    deadline = time.monotonic() + 30  # threads that are ending still hold some
    while pipes() > before:
        assert time.monotonic() < deadline, f"{before} pipes before, {pipes()} after"
