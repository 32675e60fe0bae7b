"""`wb.dashboard` and `workbench dashboard`: what they say, and what they refuse before anything starts."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import websocket

import workbench as wb
from tests.dashboards.conftest import PATIENCE_SECONDS, Client, client_of
from tests.runtime.test_forked_children import forked, sockets
from workbench import cli
from workbench.dashboards.dashboard import Dashboard
from workbench.errors import (
    BackendUnavailable,
    DataCorruption,
    FailedPreconditionError,
    NotFoundError,
    UnavailableError,
)

ROOT = Path(__file__).parents[2]


def test_its_address_is_text_and_a_link(replaying: Dashboard) -> None:
    assert re.fullmatch(r"<Dashboard: http://127\.0\.0\.1:\d+/\?token=[\w-]{43}, live>", repr(replaying))
    assert f'<a href="{replaying.url}" target="_blank" rel="noopener noreferrer">' in replaying._repr_html_()


def test_each_has_a_token_of_its_own(replaying: Dashboard, run_file: Path) -> None:
    with wb.dashboard(run_file) as other:
        client, token = client_of(other), client_of(replaying).token
        assert client.token != token
        assert client.request(f"/?token={token}").status == 403


def test_after_closing_nothing_listens(built: ModuleType, run_file: Path) -> None:
    dashboard = wb.dashboard(run_file)
    client = client_of(dashboard)
    client.enter()
    dashboard.close()
    dashboard.close()
    assert repr(dashboard).endswith(", stopped>")
    with pytest.raises(ConnectionRefusedError):
        client.request("/")


def test_closing_ends_the_websockets_of_its_pages(built: ModuleType, run_file: Path) -> None:
    with wb.dashboard(run_file) as dashboard:
        client = client_of(dashboard)
        client.enter()
        with socket.create_connection(("127.0.0.1", client.port), timeout=PATIENCE_SECONDS) as sock:
            page = websocket.create_connection(
                f"ws://127.0.0.1:{client.port}/ws",
                header={"Cookie": client.cookie},
                origin=f"http://127.0.0.1:{client.port}",
                subprotocols=["bokeh", session_token(client)],
                timeout=PATIENCE_SECONDS,
                socket=sock,
            )
            assert '"ACK"' in str(page.recv())
            dashboard.close()
            with pytest.raises((websocket.WebSocketConnectionClosedException, ConnectionError)):
                _read_to_the_end(page)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-?threaded")
def test_a_forked_child_lets_go_of_a_connection_of_which_the_loop_waits_for_nothing_just_now(
    built: ModuleType, run_file: Path
) -> None:
    before = sockets()
    with wb.dashboard(run_file) as dashboard:
        client = client_of(dashboard)
        with socket.create_connection(("127.0.0.1", client.port), timeout=PATIENCE_SECONDS) as browser:
            browser.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert browser.recv(4096)  # so that the connection is accepted and stays open
            loop = dashboard._connections

            async def wait_for(events: int) -> None:
                """Runs what Tornado does with a connection at that moment, and afterwards."""
                for each in loop.handlers:
                    loop.update_handler(each, events)

            def on_the_loop(events: int) -> None:
                asyncio.run_coroutine_threadsafe(wait_for(events), loop.asyncio_loop).result(PATIENCE_SECONDS)

            ours = {f"socket:[{os.fstat(browser.fileno()).st_ino}]"} | before

            def body() -> None:
                left = sockets() - ours
                assert not left, left

            on_the_loop(loop.ERROR)
            try:
                assert sockets() - ours
                assert forked(body) == 0
            finally:
                on_the_loop(loop.READ)
        client.enter()  # it continues for the parent


def _read_to_the_end(page: websocket.WebSocket) -> None:
    while page.recv():
        pass
    raise ConnectionError("the server said good-bye")


def session_token(client: Client) -> str:
    """What a page finds in itself."""
    found = re.search(rb'"token":"([^"]+)"', client.request("/").body)
    assert found is not None
    return found[1].decode()


def test_a_port_that_is_taken_is_named(built: ModuleType, run_file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UnavailableError, match=f"port {port} of 127.0.0.1 is in use"):
            wb.dashboard(run_file, port=port)


def test_without_panel_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, run_file: Path) -> None:
    find = importlib.util.find_spec

    def hidden(name: str, package: str | None = None) -> Any:
        return None if name == "panel" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", hidden)
    with pytest.raises(BackendUnavailable, match=r"pip install -e \S+\[dashboard\]"):
        wb.dashboard(run_file)


def test_what_cannot_be_shown_is_an_error_before_anything_starts(built: ModuleType, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(b"no run")
    with pytest.raises(DataCorruption, match=r"damaged\.parquet"):
        wb.dashboard(damaged)
    with pytest.raises(NotFoundError, match=r"nowhere\.parquet"):
        wb.dashboard("nowhere.parquet")
    with pytest.raises(NotFoundError, match=r"tcp://127\.0\.0\.1:1"):
        wb.dashboard("tcp://127.0.0.1:1")


def test_a_cluster_that_is_closed_has_no_dashboard(built: ModuleType) -> None:
    with wb.connect(replicas=1, processes=False) as cluster:
        pass
    with pytest.raises(FailedPreconditionError, match="closed"):
        wb.dashboard(cluster)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.parquet"], "nowhere.parquet"),
        (["no-such-job"], "no job of yours runs on this machine"),
        (["--address", "0.0.0.0"], "without TLS"),
        (["--address", "evil.com"], "not an IP address"),
    ],
)
def test_the_command_fails_with_one_line(
    built: ModuleType, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["dashboard", "--no-browser", *arguments]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("workbench dashboard: ")
    assert said in told.err
    assert "Traceback" not in told.err


def test_the_command_prints_the_address_and_ends_with_ctrl_c(built: ModuleType, run_file: Path) -> None:
    import signal

    command = [sys.executable, "-m", "workbench", "dashboard", "--no-browser", str(run_file)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", url)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 130
        assert process.stderr.read() == ""
