"""Row 43, from the network: crowds of connections, messages without end, large frames; what they cost the server."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest
import websocket

from tests.dashboards.conftest import PATIENCE_SECONDS, Client
from tests.dashboards.test_dashboard import ROOT, session_token
from tests.server.conftest import spaces
from tests.until import until
from workbench.dashboards.connections import MAX_CONNECTIONS

MIB = 1 << 20
CROWD = 500
MEMORY_BYTES = 64 * MIB
"""By how much any of this may make the server grow."""
ENDED = (websocket.WebSocketException, OSError)


class Served:
    """A dashboard in a process of its own.

    Attributes:
      process: The process.
      client: Somebody who has its address.
    """

    def __init__(self, process: psutil.Process, client: Client) -> None:
        self.process = process
        self.client = client

    def connections(self) -> int:
        """How many it holds."""
        states = (psutil.CONN_LISTEN, psutil.CONN_TIME_WAIT)
        return sum(one.status not in states for one in self.process.net_connections("inet"))

    def memory_bytes(self) -> int:
        return int(self.process.memory_info().rss)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.client.port), timeout=PATIENCE_SECONDS)

    def page(self, token: str) -> websocket.WebSocket:
        """A page's WebSocket."""
        sock = self.connect()
        try:
            page = websocket.create_connection(
                f"ws://127.0.0.1:{self.client.port}/ws",
                header={"Cookie": self.client.cookie},
                origin=f"http://127.0.0.1:{self.client.port}",
                subprotocols=["bokeh", token],
                timeout=PATIENCE_SECONDS,
                socket=sock,
            )
        except BaseException:
            sock.close()
            raise
        assert '"ACK"' in str(page.recv())
        return page


@pytest.fixture(scope="module")
def served(built: ModuleType, run_file: Path) -> Iterator[Served]:
    command = [sys.executable, "-m", "workbench", "dashboard", "--no-browser", str(run_file)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            parts = urlsplit(process.stdout.readline().strip())
            assert parts.port is not None
            client = Client(parts.port, parse_qs(parts.query)["token"][0])
            client.enter()
            assert client.request("/").status == 200  # it has imported and cached everything by now
            yield Served(psutil.Process(process.pid), client)
        finally:
            process.terminate()


def test_a_crowd_of_strangers_uses_up_no_descriptors_and_keeps_nobody_out(served: Served) -> None:
    before = served.memory_bytes()
    with ExitStack() as opened:
        crowd = [opened.enter_context(served.connect()) for _ in range(CROWD)]
        for stranger in crowd[::3]:
            try:
                stranger.sendall(b"GET / HTTP/1.1\r\nHost:")  # and no more
            except OSError:
                pass  # it had to be dropped already
        newcomer = Client(served.client.port, served.client.token)
        assert newcomer.enter().status == 302
        assert newcomer.request("/").status == 200
        assert served.connections() <= MAX_CONNECTIONS
        assert served.memory_bytes() - before < MEMORY_BYTES
    until(lambda: served.connections() == 0)


def test_so_many_pages_and_no_more(served: Served) -> None:
    before = served.memory_bytes()
    token = session_token(served.client)
    with ExitStack() as opened:
        pages, refused = [], 0
        for _ in range(CROWD):
            try:
                pages.append(served.page(token))
            except ENDED:
                refused += 1
            else:
                opened.callback(pages[-1].shutdown)
        assert len(pages) + refused == CROWD
        assert len(pages) == MAX_CONNECTIONS
        assert served.connections() <= MAX_CONNECTIONS
        assert served.memory_bytes() - before < 2 * MEMORY_BYTES  # each compresses with a window of its own
        pages[0].ping()
        assert pages[0].sock is not None
    until(lambda: served.connections() == 0)
    assert served.client.request("/").status == 200


def test_messages_without_end_end_their_own_page_only(served: Served) -> None:
    other = served.page(session_token(served.client))
    flood = served.page(session_token(served.client))
    try:
        with pytest.raises(ENDED):
            _send(flood, ['{"msgid":"1","msgtype":"SERVER-INFO-REQ"}', "{}", "{}"] * 4000)
        ask(other)
    finally:
        flood.shutdown()
        other.shutdown()


def ask(page: websocket.WebSocket) -> None:
    """Asks something of Bokeh, and waits for its answer."""
    for part in ('{"msgid":"7","msgtype":"SERVER-INFO-REQ"}', "{}", "{}"):
        page.send(part)
    while "SERVER-INFO-REPLY" not in str(page.recv()):
        pass


def _send(page: websocket.WebSocket, messages: list[str]) -> None:
    """Sends the messages, and reads until the server closes the connection."""
    for message in messages:
        page.send(message)
    while page.recv():
        pass
    raise ConnectionError("the server said good-bye")


@pytest.mark.parametrize("compressed", [False, True])
def test_a_frame_of_50_mb_is_not_kept_however_small_it_arrives(served: Served, compressed: bool) -> None:
    before = served.memory_bytes()
    with served.connect() as sock:
        _upgrade(sock, served.client)
        try:
            sock.sendall(spaces(50 * MIB, compressed=compressed))
            while sock.recv(65536):
                pass
        except OSError:
            pass  # it was closed while data was still being sent
    until(lambda: served.connections() == 0)
    assert served.memory_bytes() - before < MEMORY_BYTES
    assert served.client.request("/").status == 200


def _upgrade(sock: socket.socket, client: Client) -> None:
    head = [
        "GET /ws HTTP/1.1",
        f"Host: 127.0.0.1:{client.port}",
        f"Origin: http://127.0.0.1:{client.port}",
        f"Cookie: {client.cookie}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==",
        "Sec-WebSocket-Extensions: permessage-deflate",
        f"Sec-WebSocket-Protocol: bokeh, {session_token(client)}",
    ]
    sock.sendall("\r\n".join([*head, "", ""]).encode())
    answer = sock.recv(4096).decode("latin-1")  # the first frames may have arrived with it
    assert answer.startswith("HTTP/1.1 101 ")
    assert "permessage-deflate" in answer
