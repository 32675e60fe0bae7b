"""A real Jupyter server with our extension, in folders of its own, and clients that talk to it."""

from __future__ import annotations

import http.client
import json
import os
import socket
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import websocket

from tests.jupyter_server import announced

ROOT = Path(__file__).parents[2]
TOKEN = "only-for-tests"
PATIENCE_SECONDS = 60.0
API = "/workbench/api"
MAX_PAGES = 24
"""As the configuration of these servers has it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """One WebSocket, as a browser's page has it."""

    def __init__(self, socket: websocket.WebSocket) -> None:
        self.socket = socket
        self.clusters: list[dict[str, Any]] = []

    def watch(self, *pairs: tuple[str, str]) -> None:
        """Says all that is open."""
        self.socket.send(json.dumps({"watch": pairs}))

    def next(self) -> dict[str, Any]:
        """The next message, which must come in time."""
        text = self.socket.recv()
        if not text:
            raise ConnectionError("the server closed the WebSocket")
        message: dict[str, Any] = json.loads(text)
        if message["type"] == "clusters":
            self.clusters = message["clusters"]
        return message

    def until(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first message that fits."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            message = self.next()
            if fits(message):
                return message
        raise TimeoutError("no message fitted")

    def cluster(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first cluster that fits, once it is told of."""
        while not (found := [cluster for cluster in self.clusters if fits(cluster)]):
            self.until(lambda message: message["type"] == "clusters")
        return found[0]


@dataclass(frozen=True, slots=True)
class Server:
    """A Jupyter server.

    Attributes:
      port: On loopback.
      home: The folder that holds all of its folders.
      log: What it has said.
      pid: Its process.
    """

    port: int
    home: Path
    log: Path
    pid: int

    @property
    def root(self) -> Path:
        """The folder that it serves."""
        return self.home / "root"

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = TOKEN,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Asks, with the path exactly as it is given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        authorization = {} if token is None else {"Authorization": f"token {token}"}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, body=data, headers=authorization | (headers or {}))
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def connect(self, **headers: str) -> websocket.WebSocket:
        """A WebSocket. End it with `shutdown`: its `close` waits, and leaves it open where the server closed first."""
        given = {"Authorization": f"token {TOKEN}"} | headers
        address = f"ws://127.0.0.1:{self.port}{API}/socket"
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_SECONDS)
        try:
            return websocket.create_connection(
                address, header=given, suppress_origin=True, timeout=PATIENCE_SECONDS, socket=sock
            )
        except BaseException:
            sock.close()
            raise


def spaces(size: int, *, compressed: bool) -> bytes:
    """A frame of a WebSocket with a text of so many spaces, masked by zeros; compressed it is a thousandth of that."""
    first, data = 0x81, b" " * size
    if compressed:
        packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        first |= 0x40
        data = (packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)).removesuffix(b"\x00\x00\xff\xff")
    return struct.pack("!BBQ4x", first, 0x80 | 127, len(data)) + data


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for each module; it shows what this process announces."""
    home = tmp_path_factory.mktemp("server")
    for folder in ("root", "config"):
        (home / folder).mkdir()
    configuration = f"c.WorkbenchApp.max_pages = {MAX_PAGES}\n"
    (home / "config" / "jupyter_server_config.py").write_text(configuration, encoding="ascii")
    log = home / "log"
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_CONFIG_PATH": str(ROOT / "extension" / "jupyter"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--ServerApp.port=0", "--allow-root"]
    command += [f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={home / 'root'}"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, cwd=home, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        told = announced(process, home / "runtime", log, seconds=PATIENCE_SECONDS)
        yield Server(told["port"], home, log, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(PATIENCE_SECONDS)
            raise


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """A page that is open."""
    socket = server.connect()
    try:
        yield Client(socket)
    finally:
        socket.shutdown()
