"""A recorded run, a dashboard that shows it, and requests as they are."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from urllib.parse import parse_qs, urlsplit

import pytest

import workbench as wb
from tests.extension.conftest import built, hatch_build
from tests.telemetry.runs.test_recorder import record
from workbench.dashboards.dashboard import Dashboard

__all__ = ["built", "hatch_build"]

PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Client:
    """Asks a dashboard, as a browser or as somebody else.

    Attributes:
      port: The port of the dashboard.
      token: That of its address.
      cookie: What it has set.
    """

    port: int
    token: str
    cookie: str = field(default="")

    def request(self, path: str, method: str = "GET", **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie:
            given.setdefault("Cookie", self.cookie)
        try:
            connection.putrequest(method, path, skip_host="Host" in given)
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def enter(self) -> Answer:
        """Opens the address that was printed, and keeps the cookie."""
        answer = self.request(f"/?token={self.token}")
        self.cookie = answer.headers.get("Set-Cookie", "").partition(";")[0]
        return answer


def client_of(dashboard: Dashboard) -> Client:
    parts = urlsplit(dashboard.url)
    assert parts.port is not None
    return Client(parts.port, parse_qs(parts.query)["token"][0])


@pytest.fixture(scope="session")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded run with a straggler and a stuck collective."""
    path = tmp_path_factory.mktemp("runs") / "first.parquet"
    record(path)
    return path


@pytest.fixture(scope="module")
def replaying(built: ModuleType, run_file: Path) -> Iterator[Dashboard]:
    with wb.dashboard(run_file) as dashboard:
        yield dashboard


@pytest.fixture
def client(replaying: Dashboard) -> Client:
    """Somebody who has the address, but has not opened it yet."""
    return client_of(replaying)
