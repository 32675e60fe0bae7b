"""Rows 43, 44, 47 and 48: who may ask the Jupyter server, for what, and how much."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import websocket
from websocket import WebSocketBadStatusException

import workbench as wb
from tests.server.conftest import API, MAX_PAGES, PATIENCE_SECONDS, ROOT, TOKEN, Client, Server, spaces
from workbench.runtime.deploy.registry import Registry
from workbench.server.clusters import Clusters
from workbench.server.extension import handlers
from workbench.server.recorded import RunsBelow
from workbench.server.watched_runs import WatchedRuns
from workbench.ui.runs.recorded_runs import RecordedRuns

EXAMPLES = {
    "clusters": "clusters",
    "clusters/([0-9a-f]{8})": "clusters/0badcafe",
    "views": "views",
    "layouts": "layouts",
    "runs": "runs",
    "runs/(.+)": "runs/a/runs/b.parquet",
    "guide/(.*)": "guide/guide/index.html",
    "socket": "socket",
}
"""One address of each handler."""
DISCONNECTED = (websocket.WebSocketException, OSError)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def all_reduce(value: float) -> float:
    return float(wb.distribute.get_replica_context().all_reduce("sum", value))


@pytest.fixture(scope="module")
def cluster() -> Iterator[wb.Cluster]:
    with wb.connect(replicas=2, processes=False) as cluster:
        yield cluster


# -- authentication and authorization


def all_handlers() -> list[tuple[str, type, dict[str, Any]]]:
    return handlers(Clusters(Registry()), Registry(), WatchedRuns(RecordedRuns(RunsBelow(Path()))))


def test_every_handler_is_known_to_these_tests() -> None:
    assert {path for path, _, _ in all_handlers()} == EXAMPLES.keys()


@pytest.mark.parametrize("path", EXAMPLES.values())
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("token", [None, "wrong"])
def test_nothing_is_answered_without_the_token(
    server: Server, path: str, method: str, token: str | None
) -> None:
    body = {} if method in ("POST", "PUT", "PATCH") else None
    answer = server.request(method, f"{API}/{path}", body, token=token)

    assert answer.status in (403, 405)


@pytest.mark.parametrize("path", EXAMPLES.values())
def test_no_handler_allows_unauthenticated_access(path: str) -> None:
    found = {name: handler for name, handler, _ in all_handlers()}
    handler = found[next(name for name, example in EXAMPLES.items() if example == path)]

    assert handler.auth_resource == "workbench"
    for method in METHODS:
        assert not getattr(getattr(handler, method.lower()), "__allow_unauthenticated", False)


def test_whom_the_authorizer_refuses_gets_nothing(tmp_path: Path) -> None:
    script = """
import asyncio, sys
from pathlib import Path
from types import SimpleNamespace
from jupyter_server.auth import Authorizer, User
from workbench.server.handlers import ClustersHandler
from tornado.web import HTTPError
asked = []
class Nobody(Authorizer):
    def is_authorized(self, handler, user, action, resource):
        asked.append((action, resource))
        return False
handler = ClustersHandler.__new__(ClustersHandler)
handler._jupyter_current_user = User(username="somebody")
handler.request = SimpleNamespace(method="DELETE")
type(handler).authorizer = Nobody()
for method, name in ((handler.get, "GET"), (handler.post, "POST")):
    handler.request.method = name
    try:
        asyncio.run(method())
    except HTTPError as error:
        assert error.status_code == 403
    else:
        raise AssertionError(name)
print(asked)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == "[('read', 'workbench'), ('write', 'workbench')]"


@pytest.mark.parametrize("path", EXAMPLES.values())
def test_reading_changes_nothing_and_unknown_methods_are_refused(server: Server, path: str) -> None:
    assert server.request("PUT", f"{API}/{path}", {}).status == (400 if path == "layouts" else 405)
    assert server.request("TRACE", f"{API}/{path}").status in (405, 501)


# -- other origins


def raw_upgrade(server: Server, *lines: str) -> str:
    """The status line that the server answers to a WebSocket's handshake with these headers."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as sock:
        return upgrade(sock, *lines).partition("\r\n")[0]


def upgrade(sock: socket.socket, *lines: str) -> str:
    """What the server answers to a WebSocket's handshake with these headers."""
    head = [f"GET {API}/socket HTTP/1.1", "Upgrade: websocket", "Connection: Upgrade"]
    head += ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==", *lines, "", ""]
    sock.sendall("\r\n".join(head).encode())
    return sock.recv(4096).decode(errors="replace")


@pytest.mark.parametrize(
    "origin",
    ["http://evil.com", "http://localhost.evil.com", "null", "", "http://127.0.0.1:1", "file://", "http://["],
)
def test_pages_of_other_origins_get_no_socket_even_with_the_token(server: Server, origin: str) -> None:
    status = raw_upgrade(
        server,
        f"Host: 127.0.0.1:{server.port}",
        f"Origin: {origin}",
        f"Authorization: token {TOKEN}",
    )

    assert status.split()[1] in ("400", "403")


@pytest.mark.parametrize("host", ["evil.com", "localhost.evil.com:8888", "169.254.169.254"])
def test_a_name_that_was_rebound_gets_no_socket(server: Server, host: str) -> None:
    status = raw_upgrade(server, f"Host: {host}", f"Origin: http://{host}", f"Authorization: token {TOKEN}")

    assert status.split()[1] == "403"


def test_the_servers_own_pages_get_a_socket(server: Server) -> None:
    host = f"127.0.0.1:{server.port}"
    status = raw_upgrade(server, f"Host: {host}", f"Origin: http://{host}", f"Authorization: token {TOKEN}")

    assert status.split()[1] == "101"


def test_a_form_of_another_page_changes_nothing(server: Server) -> None:
    """A browser adds the cookie by itself; the XSRF token is what it cannot add."""
    with_cookie = server.request("GET", f"/lab?token={TOKEN}", token=None)
    cookie = with_cookie.headers.get("Set-Cookie", "").partition(";")[0]
    assert cookie
    headers = {"Cookie": cookie, "Origin": "http://evil.com"}

    for method, path in (("POST", "clusters"), ("DELETE", "clusters/0badcafe")):
        answer = server.request(method, f"{API}/{path}", {"replicas": 1}, token=None, headers=headers)
        assert answer.status in (403, 404)


# -- ids, not hosts


@pytest.mark.parametrize(
    "id", ["127.0.0.1:22", "evil.com", "0badcafe:80", "..%2f..%2fetc", "%00", "0BADCAFE", "0badcafe0", "a/b"]
)
def test_what_is_no_id_leads_nowhere(server: Server, id: str) -> None:
    for method in ("GET", "DELETE"):
        assert server.request(method, f"{API}/clusters/{id}").status == 404


def test_an_id_that_nobody_announced_is_not_found(server: Server) -> None:
    answer = server.request("GET", f"{API}/clusters/0badcafe")

    assert answer.status == 404
    assert "0badcafe" in answer.json()["message"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", {"replicas": "2"}, {"replicas": True}, {"replicas": 2, "host": "x"}, b"[" * 5000],
)
def test_a_body_that_is_not_understood_starts_nothing(server: Server, body: object) -> None:
    assert server.request("POST", f"{API}/clusters", body).status in (400, 413)


@pytest.mark.parametrize("replicas", [0, -1, 10**9])
def test_a_number_that_cannot_be_is_refused_with_the_bounds(server: Server, replicas: int) -> None:
    answer = server.request("POST", f"{API}/clusters", {"replicas": replicas})

    assert answer.status == 400
    assert "between 1 and" in answer.json()["message"]


# -- recorded runs


@pytest.fixture(scope="module")
def recorded(server: Server, cluster: wb.Cluster) -> str:
    """A run below the server's root, and things around it that are nobody's business."""
    strategy = wb.MirroredStrategy()
    (server.root / "course" / "runs").mkdir(parents=True)
    with wb.record(server.root / "course" / "runs" / "first.parquet"):
        strategy.run(all_reduce, (1.0,))
    outside = server.home / "runs"
    outside.mkdir()
    run = (server.root / "course" / "runs" / "first.parquet").read_bytes()
    (outside / "secret.parquet").write_bytes(run)
    (server.root / "course" / "runs" / "link.parquet").symlink_to(outside / "secret.parquet")
    (server.root / "linked").symlink_to(server.home)
    (server.home / "root-sibling" / "runs").mkdir(parents=True)
    (server.home / "root-sibling" / "runs" / "x.parquet").write_bytes(run)
    (server.root / "runs").mkdir()
    (server.root / "runs" / "damaged.parquet").write_bytes(run[:100])
    (server.root / "other.parquet").write_bytes(run)
    return "course/runs/first.parquet"


def test_recorded_runs_are_listed_and_open_with_no_cluster(server: Server, recorded: str) -> None:
    listed = {run["path"]: run for run in server.request("GET", f"{API}/runs").json()["runs"]}
    assert listed.keys() == {recorded, "runs/damaged.parquet"}
    assert listed[recorded]["replicas"] == 2
    assert "runs/damaged.parquet" in listed["runs/damaged.parquet"]["problem"]
    assert str(server.home) not in json.dumps(listed)

    run = server.request("GET", f"{API}/runs/{recorded}").json()
    assert run["run"]["path"] == recorded
    assert {run[part]["status"] for part in ("collectives", "topology", "devices")} == {"replay"}
    assert [row["op"] for row in run["collectives"]["snapshot"]["table"]] == ["all_reduce"]
    assert str(server.home) not in json.dumps(run)


def test_some_steps_of_a_recorded_run_are_shown(server: Server, recorded: str) -> None:
    whole = server.request("GET", f"{API}/runs/{recorded}").json()
    last = whole["last_step"]

    run = server.request("GET", f"{API}/runs/{recorded}?step={last}&step={last + 5}").json()
    after = server.request("GET", f"{API}/runs/{recorded}?step={last + 1}&step={last + 5}").json()

    assert (run["shown_from"], run["shown_to"]) == (last, last + 5)
    assert run["collectives"]["snapshot"]["table"]
    assert after["collectives"]["snapshot"]["table"] == []


@pytest.mark.parametrize(
    "query", ["step=1", "step=a&step=b", "step=-1&step=2", "step=1&step=2&step=3", f"step=0&step={'9' * 400}"]
)
def test_what_is_no_range_of_steps_is_refused(server: Server, recorded: str, query: str) -> None:
    assert server.request("GET", f"{API}/runs/{recorded}?{query}").status == 400


def test_two_runs_are_compared(server: Server, recorded: str) -> None:
    both = f"compare={recorded}&compare={recorded}"
    rows = server.request("GET", f"{API}/runs?{both}").json()["rows"]

    assert [row["ratio"] for row in rows] == [1.0]
    assert server.request("GET", f"{API}/runs?compare={recorded}").status == 400
    assert server.request("GET", f"{API}/runs?{both}/../../x.parquet").status == 404


def test_a_damaged_run_cannot_be_compared(server: Server, recorded: str) -> None:
    answer = server.request("GET", f"{API}/runs?compare={recorded}&compare=runs/damaged.parquet")

    assert answer.status == 422
    assert "runs/damaged.parquet" in answer.json()["message"]
    assert str(server.home) not in answer.json()["message"]


@pytest.mark.parametrize(
    "path",
    [
        "../runs/secret.parquet",
        "course/../../runs/secret.parquet",
        "..%2fruns%2fsecret.parquet",
        "%2e%2e/runs/secret.parquet",
        "/etc/runs/passwd.parquet",
        "%2fetc%2fruns%2fpasswd.parquet",
        "course/runs/first.parquet%00",
        "course%00/runs/first.parquet",
        "course/runs/link.parquet",
        "linked/runs/secret.parquet",
        "../root-sibling/runs/x.parquet",
        "course%5c..%5cruns%5cx.parquet",
        "other.parquet",
        "course/runs/missing.parquet",
        "course/runs",
        "course//runs/first.parquet",
        "./course/runs/first.parquet",
        "runs/" + "a" * 5000 + ".parquet",
    ],
)
def test_a_path_that_is_no_listed_run_is_refused_and_named(server: Server, recorded: str, path: str) -> None:
    answer = server.request("GET", f"{API}/runs/{path}")

    assert answer.status == 404
    assert b"secret" not in answer.body or "secret" in path
    assert str(server.home).encode() not in answer.body


def test_a_damaged_run_is_named(server: Server, recorded: str) -> None:
    answer = server.request("GET", f"{API}/runs/runs/damaged.parquet")

    assert answer.status == 422
    assert "runs/damaged.parquet" in answer.json()["message"]
    assert str(server.home) not in answer.json()["message"]


# -- the socket


def test_a_page_sees_a_job_that_was_started_elsewhere(server: Server, client: Client) -> None:
    script = (
        "import sys, workbench as wb\n"
        "def step(x): return wb.distribute.get_replica_context().all_reduce('sum', x)\n"
        "if __name__ == '__main__':\n"
        "    with wb.connect(replicas=2, processes=False) as cluster:\n"
        "        strategy = wb.MirroredStrategy()\n"
        "        for line in sys.stdin:\n"
        "            strategy.run(step, (1.0,))\n"
    )
    path = server.home / "somewhere_else.py"
    path.write_text(script, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, path], stdin=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(ROOT)}
    ) as job:
        assert job.stdin is not None
        there = client.cluster(lambda cluster: cluster["name"] == path.name)
        client.watch((there["id"], "collectives"))
        first = client.until(lambda message: message["type"] == "feed")
        assert first["change"]["since"] == 0

        version = first["change"]["version"]
        for _ in range(2):
            job.stdin.write(b"\n")
            job.stdin.flush()
            changed: list[str] = []
            while "all_reduce" not in changed:
                change = client.until(lambda message: message["type"] == "feed")["change"]
                assert change["since"] == version  # nothing is missing in between, and nothing comes twice
                version = change["version"]
                changed = [row["op"] for row in change["table"]["changed"]]

        job.stdin.close()
        ended = client.until(
            lambda message: (
                message["type"] == "clusters"
                and any(
                    c["id"] == there["id"] and c["summary"]["status"] == "stopped"
                    for c in message["clusters"]
                )
            )
        )
        assert ended
    assert server.request("DELETE", f"{API}/clusters/{there['id']}").status == 204
    assert server.request("GET", f"{API}/clusters/{there['id']}").status == 404


def test_nothing_that_opens_a_door_is_told(server: Server, client: Client, cluster: wb.Cluster) -> None:
    client.cluster(lambda seen: seen["summary"]["status"] == "live")
    told = json.dumps(client.clusters) + server.request("GET", f"{API}/clusters").body.decode()

    for entry in Registry().entries():
        assert entry.socket not in told
    assert "PRIVATE KEY" not in told


@pytest.mark.parametrize("message", ["not json", '{"watch": [["evil.com:80", "topology"]]}', "[" * 10_000])
def test_a_page_that_talks_nonsense_is_disconnected(client: Client, message: str) -> None:
    with pytest.raises(DISCONNECTED):
        _send(client, message)


def _send(client: Client, *messages: str) -> None:
    """Sends, and then reads forever."""
    for message in messages:
        client.socket.send(message)
    client.until(lambda _: False)


def test_a_frame_that_is_too_long_is_not_read(client: Client) -> None:
    with pytest.raises(DISCONNECTED):
        _send(client, "x" * 50_000_000)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_frame_is_measured_by_what_is_in_it(server: Server, compressed: bool) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as sock:
        host = f"Host: 127.0.0.1:{server.port}"
        extension = "Sec-WebSocket-Extensions: permessage-deflate"
        answer = upgrade(sock, host, f"Authorization: token {TOKEN}", extension)
        assert answer.startswith("HTTP/1.1 101 ")
        assert "permessage-deflate" in answer
        before = psutil.Process(server.pid).memory_info().rss
        try:
            sock.sendall(spaces(50_000_000, compressed=compressed))
            while sock.recv(65536):
                pass
        except OSError:
            pass  # it was closed while data was still being sent
        assert psutil.Process(server.pid).memory_info().rss - before < 32_000_000
    assert server.request("GET", f"{API}/views").status == 200


def test_a_flood_of_messages_ends_the_page_that_sends_it_and_no_other(server: Server, client: Client) -> None:
    flood = server.connect()
    with pytest.raises(DISCONNECTED):
        _send(Client(flood), *['{"watch": []}'] * 10_000)
    flood.shutdown()

    client.watch()
    assert server.request("GET", f"{API}/views").status == 200
    assert client.next()["type"] == "clusters"


def test_as_many_pages_as_are_configured_and_no_more(server: Server) -> None:
    pages, refused = [], []
    try:
        for _ in range(MAX_PAGES + 20):
            try:
                pages.append(server.connect())
            except WebSocketBadStatusException as error:
                refused.append(error.status_code)
        assert len(pages) <= MAX_PAGES
        assert len(refused) >= 20
        assert set(refused) == {503}
        assert server.request("GET", f"{API}/views").status == 200
    finally:
        for page in pages:
            page.shutdown()


def test_a_page_that_does_not_read_costs_neither_the_job_nor_the_others(
    server: Server, client: Client, cluster: wb.Cluster
) -> None:
    strategy = wb.MirroredStrategy()
    here = client.cluster(lambda seen: seen["summary"]["status"] == "live")
    deaf = server.connect()
    try:
        for page in (Client(deaf), client):
            page.watch((here["id"], "collectives"))
        for _ in range(5):
            strategy.run(all_reduce, (1.0,))
            cluster.flush_telemetry(60)
            want = cluster.feed.snapshot().counters.collectives
            client.until(
                lambda message, want=want: (
                    message["type"] == "feed" and message["change"]["counters"]["collectives"] >= want
                )
            )
    finally:
        deaf.shutdown()


# -- workers that the panel starts


@pytest.mark.slow
def test_workers_of_the_panel_can_be_used_scaled_and_stopped(server: Server, client: Client) -> None:
    started = server.request("POST", f"{API}/clusters", {"replicas": 1})
    assert started.status == 201, started.body
    id = started.json()["id"]
    try:
        client.cluster(lambda seen: seen["id"] == id and seen["summary"]["replicas"] == 1)
        assert server.request("PATCH", f"{API}/clusters/{id}", {"replicas": 2}).status == 200
        client.cluster(lambda seen: seen["id"] == id and seen["summary"]["replicas"] == 2)

        with wb.connect(f"workbench://{id}") as cluster:
            assert [float(value) for value in wb.MirroredStrategy().run(all_reduce, (1.0,)).values] == [
                2.0,
                2.0,
            ]
            driver = client.cluster(lambda seen: seen["workers_of"] == id)
            assert driver["connect_code"] == f'cluster = wb.connect("workbench://{id}")'
            refused = server.request("PATCH", f"{API}/clusters/{id}", {"replicas": 1})
            assert refused.status == 409
            assert "a notebook uses these workers" in refused.json()["message"]
            assert cluster.status == "live"
            confirmed = {"replicas": 1, "confirmed": True}
            assert server.request("PATCH", f"{API}/clusters/{id}", confirmed).status == 200
            client.cluster(lambda seen: seen["id"] == id and seen["summary"]["replicas_live"] == 1)
            kind = {"replicas": 1, "kind": "tpu"}
            assert server.request("PATCH", f"{API}/clusters/{id}", kind).status == 400
    finally:
        stopped = server.request("DELETE", f"{API}/clusters/{id}")
    assert stopped.status == 204
    client.cluster(lambda seen: seen["id"] == id and seen["summary"]["status"] == "stopped")


def test_a_notebooks_own_workers_are_not_for_others(cluster: wb.Cluster) -> None:
    mine = next(entry for entry in Registry().entries() if entry.pid == os.getpid())

    with pytest.raises(wb.errors.NotFoundError, match="no workers for others"):
        wb.connect(f"workbench://{mine.id}")


def test_the_port_speaks_http_only(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as sock:
        sock.sendall(os.urandom(1024) + b"\r\n\r\n")
        assert sock.recv(4096)[:12] in (b"", b"HTTP/1.1 400")
    assert server.request("GET", f"{API}/views").status == 200
