"""Nothing of a dashboard is served without its token, whatever is asked for and however."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest
import websocket

import workbench as wb
from tests.dashboards.conftest import Client, client_of
from workbench.dashboards.address import Address
from workbench.dashboards.serving import DashboardServer

EXAMPLES = {r"(.*)": "js/bokeh.min.js", r"(.+)": "widget.js", r"(?P<path>.*)": "x", r"[^/]+": "x"}


def routes() -> list[str]:
    """A path for each route that the application behind the gate has."""
    import asyncio

    from workbench.dashboards.target import Jobs

    async def look() -> list[str]:
        server = DashboardServer(Jobs(), Address())
        try:
            rules = server.gate.application.wildcard_router.rules
            return [_example(rule.matcher.regex.pattern) for rule in rules]
        finally:
            await server.stop()

    return asyncio.run(look())


def _example(pattern: str) -> str:
    path = pattern.removesuffix("$").removeprefix("^")
    for part, example in EXAMPLES.items():
        path = path.replace(part, example)
    return re.sub(r"\\(.)", r"\1", path).replace("/?", "/") or "/"


@pytest.fixture(scope="module")
def paths(built: Any) -> list[str]:
    return routes()


def test_no_route_answers_without_the_token(client: Client, paths: list[str]) -> None:
    assert {"/", "/ws", "/metadata", "/autoload.js", "/views/js/bokeh.min.js"} <= set(paths)
    for path in [*paths, "/views/widget.js", "/nothing", "//", "/%00", "/static/../ws"]:
        for wrong in ("", "?token=", "?token=wrong", f"?token={client.token[:-1]}", f"?Token={client.token}"):
            answer = client.request(path + wrong)
            assert (answer.status, path) == (403, path)
            assert "Set-Cookie" not in answer.headers
        assert client.request(path, Cookie=f"token={client.token}").status == 403


def test_the_token_opens_the_first_page_only_and_once_it_has_become_a_cookie(client: Client) -> None:
    assert client.request(f"/views/widget.js?token={client.token}").status == 403
    assert client.request(f"/?token={client.token}&token=x").status == 403
    answer = client.enter()

    assert (answer.status, answer.headers["Location"]) == (302, "./")
    flags = answer.headers["Set-Cookie"]
    assert "HttpOnly" in flags
    assert "SameSite=Lax" in flags
    assert client.token not in flags
    for path in ("/", "/views/widget.js", "/static/js/bokeh.min.js"):
        assert client.request(path).status == 200


def test_a_cookie_that_is_not_the_right_one_opens_nothing(client: Client) -> None:
    client.enter()
    name, _, value = client.cookie.partition("=")
    for wrong in (
        f"{name}=",
        f"{name}={value[:-1]}",
        f"{name}={client.token}",
        f"x{name}={value}",
        f"{name}=\xff",
    ):
        assert client.request("/", Cookie=wrong).status == 403


def test_pages_say_what_they_may_load(client: Client) -> None:
    client.enter()
    answer = client.request("/")

    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert client.token.encode() not in answer.body
    for path in ("/", "/autoload.js", "/views/widget.js", "/nothing"):
        assert client.request(path).headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_the_token_is_in_no_line_of_the_log_whatever_is_logged(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="tornado.access"):
        client.request("/first")  # the log line of the previous request may be written only now
        client.enter()
        client.request(f"/?token={client.token}", Host="evil.com")
        client.request(f"/views/widget.js?token={client.token}")
        Client(client.port, client.token).request(f"/nothing?token={client.token}")
        client.request("/")  # a request's line is written after its answer, but before the next line
    lines = [record.getMessage() for record in caplog.records if record.name == "tornado.access"]
    first = lines.index("403 GET /first (127.0.0.1)")
    assert lines[first + 1 : first + 5] == [
        f"{status} GET {path} (127.0.0.1)"
        for status, path in ((302, "/"), (403, "/"), (200, "/views/widget.js"), (403, "/nothing"))
    ]


def test_behind_a_proxy_that_speaks_tls_the_cookie_goes_nowhere_else(built: Any, run_file: Path) -> None:
    with wb.dashboard(run_file, origins=("https://lab.example.org",)) as dashboard:
        client = client_of(dashboard)
        for host, secure in (("lab.example.org", True), (f"127.0.0.1:{client.port}", False)):
            flags = client.request(f"/?token={client.token}", Host=host).headers["Set-Cookie"]
            assert ("Secure" in flags.split("; ")) is secure


@pytest.mark.parametrize("host", ["evil.com", "127.0.0.1", "localhost.evil.com:{port}", "127.0.0.1:1", ""])
def test_another_host_name_is_refused_even_with_the_cookie(client: Client, host: str) -> None:
    client.enter()
    answer = client.request("/", Host=host.format(port=client.port))
    assert answer.status in (400, 403)


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://evil.com",
        "http://localhost.evil.com:{port}",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1:1",
        "http://127.0.0.1",
        "http://[",
        "*",
    ],
)
def test_pages_of_another_origin_are_refused_even_with_the_cookie(client: Client, origin: str) -> None:
    client.enter()
    origin = origin.format(port=client.port)
    assert client.request("/", Origin=origin).status == 403
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        _connect(client, origin)


def test_a_websocket_needs_the_cookie(client: Client) -> None:
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        _connect(client, f"http://127.0.0.1:{client.port}")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_a_dashboard_is_only_looked_at(client: Client, method: str) -> None:
    client.enter()
    for path in ("/", "/views/widget.js", "/ws"):
        assert client.request(path, method).status == 405


@pytest.mark.parametrize(
    "path", ["../pyproject.toml", "%2e%2e/errors.py", "../../etc/passwd", "/etc/passwd", "%00"]
)
def test_files_beside_the_views_are_not_served(client: Client, path: str) -> None:
    client.enter()
    assert client.request(f"/views/{path}").status in (400, 403, 404)


def _connect(client: Client, origin: str) -> None:
    """Tries to open the page's WebSocket."""
    import socket

    with socket.create_connection(("127.0.0.1", client.port), timeout=60) as sock:
        header = {"Cookie": client.cookie} if client.cookie else {}
        websocket.create_connection(
            f"ws://127.0.0.1:{client.port}/ws", header=header, origin=origin, timeout=60, socket=sock
        )
