"""Rows 17, 45, 46, 50: processes that come back, strangers at our doors, and machines that are short of things."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.faults.conftest import STALL_SECONDS, Training, kill, until
from tests.own_cluster import OwnCluster, wait_for_workers
from workbench import runtime
from workbench.communicators.core.tcp import TcpListener
from workbench.errors import (
    BackendUnavailable,
    ReplicaStalled,
    StaleGeneration,
    UnavailableError,
    UnsafeBind,
)
from workbench.runtime.comm.links import LinkClosed
from workbench.runtime.comm.unix_endpoint import UnixEndpoint, connect
from workbench.runtime.deploy import embedded

ROOT = Path(__file__).parents[2]
LOOPBACK = ("--host", "127.0.0.1", "--no-dashboard")


def test_row_17_a_replaced_worker_that_comes_back_is_refused_and_ends(own: OwnCluster) -> None:
    first, second = own.add("0"), own.add("1")
    wait_for_workers(own.address, 2)
    with runtime.connect(own.address, stall_seconds=STALL_SECONDS) as cluster:
        undisturbed = Training(cluster)
        fault_free = [undisturbed.step(number) for number in range(4)]
        training = Training(cluster)
        assert [training.step(number) for number in (0, 1)] == fault_free[:2]
        # As if it ran on another machine, where this one cannot kill it.
        zombie, _ = training.group.place(1)
        zombie.local = False
        own.add("spare")
        wait_for_workers(own.address, 3)
        kill(second.pid, signal.SIGSTOP)
        with pytest.raises(ReplicaStalled, match="no heartbeat"):
            training.step(2)
        assert training.step(2) == fault_free[2]
        assert training.recovered == [([1], [0])]
        kill(second.pid, signal.SIGCONT)
        until(lambda: second.poll() is not None, "the end of the zombie")
        with pytest.raises(LinkClosed):
            zombie.steps.send((0, 1, b""))
        assert training.step(3) == fault_free[3]
        assert first.poll() is None


def test_row_17_values_of_a_replaced_replica_are_refused(own: OwnCluster) -> None:
    own.add("0")
    second = own.add("1")
    wait_for_workers(own.address, 2)
    with runtime.connect(own.address, stall_seconds=STALL_SECONDS) as cluster:
        training = Training(cluster)
        handle = training.run(lambda env: bytes(100_000))
        own.add("spare")
        wait_for_workers(own.address, 3)
        kill(second.pid)
        until(lambda: second.poll() is not None and training.group.place(1)[0].lost, "the notice of the loss")
        training.step(0)
        with pytest.raises(StaleGeneration):
            training.run(lambda env, data: len(data), handle)
        with pytest.raises(StaleGeneration):
            handle.value(1)
        assert len(handle.value(0)) == 100_000


def test_row_20_a_dead_scheduler_is_an_error_in_time(own: OwnCluster) -> None:
    own.add("0")
    wait_for_workers(own.address, 1)
    with runtime.connect(own.address, stall_seconds=STALL_SECONDS) as cluster:
        training = Training(cluster)
        training.step(0)
        kill(own.processes[0].pid)
        own.processes[0].wait(10)
        kill(own.processes[1].pid)
        until(lambda: training.group.place(0)[0].lost, "the notice of the loss")
        with pytest.raises(UnavailableError, match=r"scheduler .* does not answer any more"):
            training.step(1)


def test_row_45_only_who_knows_the_token_is_let_in(tmp_path: Path) -> None:
    """Random bytes, a pickle that would run code, wrong and odd tokens; the endpoint goes on serving."""
    proof = tmp_path / "executed"

    class Bomb:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(proof),)

    accepted: list[tuple[str, str]] = []
    endpoint = UnixEndpoint(lambda link, token, purpose: accepted.append((token, purpose)) or link.close())
    try:
        nested = b"[" * 60_000
        for data in (
            os.urandom(300),
            pickle.dumps(Bomb()),
            struct.pack("<H", 60_000) + nested,
            b"\x02\x00[]",
            b"",
        ):
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(endpoint.path)
                stranger.sendall(data)
                stranger.shutdown(socket.SHUT_WR)
                stranger.settimeout(10)
                assert stranger.recv(1) == b""
        connect(endpoint.path, "tökén", "steps").close()
        until(lambda: accepted, "the endpoint's service")
    finally:
        endpoint.close()
    assert accepted == [("tökén", "steps")]
    assert not proof.exists()


def test_row_45_a_worker_refuses_links_without_the_claims_token() -> None:
    with runtime.connect(replicas=1, processes=False) as cluster:
        address = cluster.devices[0].worker
        from workbench.runtime.deploy.plugin import IN_PROCESS

        side = IN_PROCESS[address]
        for token, purpose in (("", "steps"), ("ö", "steps"), (cluster._connector.token, "elsewhere")):
            closed: list[bool] = []

            class Stranger:
                def close(self, closed: list[bool] = closed) -> None:
                    closed.append(True)

            side._accept(Stranger(), token, purpose)  # type: ignore[arg-type]
            assert closed == [True]
        training = Training(cluster)
        assert len(training.step(0)) == 1


def test_row_46_nothing_listens_off_loopback_without_tls() -> None:
    with pytest.raises(UnsafeBind, match="loopback"):
        embedded.start(workers=1, processes=True, listen="0.0.0.0", memory_limit=None, environment={})
    with pytest.raises(UnsafeBind, match="TLS"):
        TcpListener("0.0.0.0", None)


def test_row_46_every_open_port_is_on_loopback() -> None:
    before = _listening()
    with runtime.connect(hosts=2, replicas_per_host=1) as cluster:
        Training(cluster).step(0)
        opened = _listening() - before
    assert opened
    assert {host for host, _ in opened} == {"127.0.0.1"}


def _listening() -> set[tuple[str, int]]:
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return {
        tuple(connection.laddr)
        for process in processes
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }


def test_row_50_two_clusters_on_one_machine_do_not_meet() -> None:
    script = (
        "from workbench import runtime\n"
        "if __name__ == '__main__':\n"
        "    with runtime.connect(replicas=1) as c:\n        print(len(c.devices))"
    )
    with runtime.connect(replicas=1) as cluster:
        done = _python(script)
        assert done.stdout.strip() == "1", done.stderr
        assert len(Training(cluster).step(0)) == 1


def test_row_50_a_second_driver_is_told_who_holds_the_workers(own: OwnCluster) -> None:
    own.add("0")
    wait_for_workers(own.address, 1)
    script = (
        "from workbench import runtime, errors\n"
        f"try:\n    runtime.connect({own.address!r})\n"
        "except errors.ClusterBusy as error:\n    print(error.pid, error)"
    )
    with runtime.connect(own.address) as cluster:
        done = _python(script)
        assert done.stdout.split()[0] == str(os.getpid()), done.stderr
        assert "is held by" in done.stdout
        assert len(Training(cluster).step(0)) == 1
    with runtime.connect(own.address) as again:
        assert len(Training(again).step(0)) == 1


def test_row_50_too_few_descriptors_are_told_before_anything_starts() -> None:
    script = (
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "from workbench import runtime, errors\n"
        "try:\n    runtime.connect(replicas=2)\n"
        "except errors.UnavailableError as error:\n    print(error)"
    )
    done = _python(script)
    assert "may open 64 files only" in done.stdout, done.stderr
    assert "ulimit -n" in done.stdout


def test_row_50_a_low_soft_limit_is_raised() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    script = (
        f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, {hard}))\n"
        "from workbench import runtime\n"
        "if __name__ == '__main__':\n"
        "    with runtime.connect(replicas=1) as c:\n        print(len(c.devices))"
    )
    assert _python(script).stdout.strip() == "1"
    assert soft <= hard or hard == resource.RLIM_INFINITY


def test_row_50_different_versions_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with runtime.connect(replicas=1, processes=False) as cluster:
        described = cluster._connector.describe()
        for field, value in (("protocol", 99), ("python", (3, 8))):
            skewed = {address: {**worker, field: value} for address, worker in described.items()}
            with pytest.raises(BackendUnavailable, match="install the same versions on both"):
                cluster._connector.claim(skewed)


def test_row_50_a_jump_of_the_wall_clock_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with runtime.connect(replicas=1, stall_seconds=STALL_SECONDS) as cluster:
        training = Training(cluster)
        first = training.step(0)
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + 86_400)
        for worker in cluster.gang.workers.values():
            beat = worker.last_beat
            until(lambda worker=worker, beat=beat: worker.last_beat > beat, "a heartbeat")
            assert not worker.lost
        assert len(training.step(1)) == len(first)


def _python(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
