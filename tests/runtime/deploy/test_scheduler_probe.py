"""Addresses of schedulers that are not there, and the errors that users get."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from distributed import LocalCluster

import workbench as wb
from workbench.errors import InvalidArgumentError, UnavailableError
from workbench.runtime.deploy import scheduler_probe


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("", "it names no host"),
        ("tcp://", "it names no host"),
        ("tcp://127.0.0.1:0", "a port is a number from 1 to 65535, got 0"),
        ("tcp://127.0.0.1:99999", "got 99999"),
        ("tcp://127.0.0.1:http", "'tcp://127.0.0.1:8786'"),
        ("http://127.0.0.1:8786", "its protocol is 'http', and Dask has"),
        (42, "is not an address"),
    ],
)
def test_what_is_no_address_is_told(address: Any, text: str) -> None:
    with pytest.raises(
        InvalidArgumentError, match=rf"^{address!r} is not an address of a Dask scheduler"
    ) as caught:
        wb.connect(address)
    assert caught.match(text)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "127.0.0.1:1", "tls://127.0.0.1:1"])
def test_a_refused_connection_is_told_at_once(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setattr(scheduler_probe.time, "sleep", lambda seconds: pytest.fail("it was tried again"))
    with pytest.raises(UnavailableError, match=r"was refused, so nothing listens on port 1 of 127\.0\.0\.1"):
        wb.connect(address)


def test_certificates_that_are_missing_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WORKBENCH_SECRET", raising=False)
    monkeypatch.setenv("WORKBENCH_SECRET_FILE", str(tmp_path / "none"))  # and not that of this user's jobs
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tls://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(
            InvalidArgumentError, match=r"needs certificates.*distributed\.Client\('tls://127"
        ):
            wb.connect(address)


def test_a_scheduler_that_comes_up_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found: list[BaseException | str] = []

    def reach() -> None:
        try:
            found.append(scheduler_probe.reachable_scheduler(f"127.0.0.1:{port}", 60.0))
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=reach)
    thread.start()
    with LocalCluster(
        n_workers=0, processes=False, protocol="tcp", scheduler_port=port, dashboard_address=":0"
    ):
        thread.join(60)
    assert found == [f"tcp://127.0.0.1:{port}"]


def test_waiting_for_a_scheduler_ends() -> None:
    with pytest.raises(UnavailableError, match=r"port 1 of 127\.0\.0\.1"):
        wb.connect("127.0.0.1:1", timeout_seconds=0.3)


def test_somebody_who_says_nothing_is_not_waited_for_for_ever() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(UnavailableError, match=r"does not answer as a Dask scheduler \(it accepts"):
            wb.connect(address, timeout_seconds=1.0)


def test_somebody_who_speaks_otherwise_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"

        def serve() -> None:
            for _ in range(2):  # the check for a listener, and the request
                connection, _ = server.accept()
                with connection:
                    connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n" * 8)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(UnavailableError, match="does not answer as a Dask scheduler"):
            wb.connect(address)
        thread.join(30)


def test_the_address_of_a_worker_is_told() -> None:
    with LocalCluster(n_workers=1, processes=False, protocol="tcp", dashboard_address=":0") as cluster:
        (worker,) = cluster.workers.values()
        with pytest.raises(UnavailableError, match=r"but a Worker; give the address that `dask scheduler`"):
            wb.connect(worker.address)


def test_a_name_that_is_nobodys_is_told() -> None:
    with pytest.raises(UnavailableError, match=r"there is no host 'nobody\.invalid'"):
        wb.connect("nobody.invalid:8786")
