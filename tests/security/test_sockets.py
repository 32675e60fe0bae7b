"""Rows 44 to 47: with everything running, who can reach which socket of ours; tokens are told to nobody."""

from __future__ import annotations

import ipaddress
import logging
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import psutil
import pytest

import workbench as wb
from tests.dashboards.conftest import client_of, run_file
from tests.extension.conftest import built, hatch_build
from tests.server.conftest import API, TOKEN, Server, server
from workbench.dashboards.dashboard import Dashboard
from workbench.runtime.deploy.registry import Registry

__all__ = ["built", "hatch_build", "run_file", "server"]

_LISTENS = 0x10000
"""The flag of /proc/net/unix for a socket that accepts connections."""


@dataclass(frozen=True, slots=True)
class Everything:
    """All that listens, in this process and its children."""

    cluster: wb.Cluster
    dashboard: Dashboard
    server: Server


@pytest.fixture(scope="module")
def everything(built: ModuleType, run_file: Path, server: Server) -> Iterator[Everything]:
    """Two hosts with a replica each, a dashboard of them, and a Jupyter server with a kernel."""
    kernel = server.request("POST", "/api/kernels", {}).json()["id"]
    with wb.connect(hosts=2, replicas_per_host=1) as cluster:
        strategy = wb.MultiWorkerMirroredStrategy()
        strategy.run(lambda: wb.distribute.get_replica_context().all_reduce("sum", np.ones(3)))
        with wb.dashboard() as dashboard:
            client_of(dashboard).enter()
            yield Everything(cluster, dashboard, server)
    server.request("DELETE", f"/api/kernels/{kernel}")


def _tree() -> list[psutil.Process]:
    return [psutil.Process(), *psutil.Process().children(recursive=True)]


def _internet() -> dict[tuple[str, int], str]:
    """Reachable addresses of the tree's processes -> command line."""
    return {
        tuple(connection.laddr): " ".join(process.cmdline())
        for process in _tree()
        for connection in process.net_connections("inet")
        if connection.laddr and (connection.status == psutil.CONN_LISTEN or not connection.raddr)
    }


def _unix() -> set[str]:
    """Paths of the Unix sockets on which the tree's processes listen; "@…" for those without a file."""
    inodes = set()
    for process in _tree():
        for entry in Path(f"/proc/{process.pid}/fd").iterdir():
            try:
                target = os.readlink(entry)
            except FileNotFoundError:
                continue
            if target.startswith("socket:["):
                inodes.add(target.removeprefix("socket:[").removesuffix("]"))
    lines = Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()[1:]
    fields = [line.split(maxsplit=7) for line in lines]
    return {
        field[7].removesuffix(".n") if len(field) > 7 else "@"  # the name that it was bound to
        for field in fields
        if field[6] in inodes and int(field[3], 16) & _LISTENS
    }


def test_every_socket_is_on_loopback_or_a_file_of_its_owner(everything: Everything) -> None:
    reachable = _internet()
    commands = set(reachable.values())
    for part in ("jupyter_server", "ipykernel"):
        assert any(part in command for command in commands)
    assert {port for _, port in reachable} >= {everything.server.port, client_of(everything.dashboard).port}
    assert {host for host, _ in reachable if not ipaddress.ip_address(host).is_loopback} == set()

    files = _unix()
    assert {entry.socket for entry in Registry().entries()} <= files
    for path in files:
        socket, folder = os.lstat(path), os.lstat(os.path.dirname(path))
        assert stat.S_ISSOCK(socket.st_mode)
        assert (oct(stat.S_IMODE(socket.st_mode)), oct(stat.S_IMODE(folder.st_mode))) == ("0o600", "0o700"), (
            path
        )
        assert socket.st_uid == folder.st_uid == os.getuid()


def test_tokens_and_keys_are_in_no_log_and_no_text(
    everything: Everything, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster, client = everything.cluster, client_of(everything.dashboard)
    secrets = [cluster._connector.token, client.token, TOKEN]
    with caplog.at_level(logging.DEBUG):
        client.enter()
        secrets.append(client.cookie.partition("=")[2])
        client.request("/?token=wrong")
        client.request("/nothing", Origin="http://evil.com")
        assert everything.server.request("GET", f"{API}/clusters?token={TOKEN}").status == 200
        cluster.flush_telemetry()
    texts = [
        repr(cluster),
        repr(cluster.feed.snapshot()),
        repr(wb.diagnose(cluster).details),
        repr(wb.topology()),
    ]
    texts += [repr(Registry().entries()), caplog.text, *capfd.readouterr()]
    texts.append(everything.server.log.read_text(encoding="utf-8"))

    assert all(len(secret) > 10 for secret in secrets)
    assert [secret for secret in secrets if any(secret in text for text in texts)] == []
    assert not any("PRIVATE KEY" in text for text in texts)


def test_command_lines_and_environments_of_workers_hold_no_token(everything: Everything) -> None:
    secrets = [everything.cluster._connector.token, client_of(everything.dashboard).token]
    for process in psutil.Process().children(recursive=True):
        told = " ".join([*process.cmdline(), *process.environ().values()])
        assert not any(secret in told for secret in secrets)
