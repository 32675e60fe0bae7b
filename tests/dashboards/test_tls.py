"""A dashboard with TLS: nothing of it goes over the wire as plain text, and its cookie never does."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import websocket

import workbench as wb
from tests.dashboards.conftest import PATIENCE_SECONDS, Client, client_of
from tests.identity import Identity, identity
from workbench import cli
from workbench.dashboards.address import Address
from workbench.dashboards.dashboard import Dashboard
from workbench.errors import InvalidArgumentError

__all__ = ["identity"]


@pytest.fixture(scope="module")
def secure(built: ModuleType, run_file: Path, identity: Identity) -> Iterator[Dashboard]:
    with wb.dashboard(run_file, certificate=str(identity.certificate), key=str(identity.key)) as dashboard:
        yield dashboard


def ask(client: Client, identity: Identity, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPSConnection(
        "127.0.0.1", client.port, timeout=PATIENCE_SECONDS, context=identity.trusting()
    )
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        response.read()
        return response
    finally:
        connection.close()


def test_it_is_reached_by_who_trusts_its_certificate(secure: Dashboard, identity: Identity) -> None:
    assert secure.url.startswith("https://127.0.0.1:")
    client = client_of(secure)
    entered = ask(client, identity, f"/?token={client.token}")
    flags = str(entered.getheader("Set-Cookie"))

    assert entered.status == 302
    assert "Secure" in flags.split("; ")
    assert "HttpOnly" in flags.split("; ")
    cookie = flags.partition(";")[0]
    assert ask(client, identity, "/", Cookie=cookie).status == 200
    assert ask(client, identity, "/").status == 403
    plain_origin = f"http://127.0.0.1:{client.port}"
    assert ask(client, identity, "/", Cookie=cookie, Origin=plain_origin).status == 403
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        _connect(client, identity, cookie, plain_origin)
    _connect(client, identity, cookie, f"https://127.0.0.1:{client.port}").shutdown()


def _connect(client: Client, identity: Identity, cookie: str, origin: str) -> websocket.WebSocket:
    raw = socket.create_connection(("127.0.0.1", client.port), timeout=PATIENCE_SECONDS)
    with identity.trusting().wrap_socket(raw, server_hostname="127.0.0.1") as sock:
        return websocket.create_connection(
            f"wss://127.0.0.1:{client.port}/ws", header={"Cookie": cookie}, origin=origin, socket=sock
        )


def test_plain_text_gets_no_answer(secure: Dashboard) -> None:
    client = client_of(secure)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        client.request(f"/?token={client.token}")


def test_old_versions_of_tls_are_refused(secure: Dashboard, identity: Identity) -> None:
    old = identity.trusting()
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with (
        socket.create_connection(("127.0.0.1", client_of(secure).port), timeout=PATIENCE_SECONDS) as sock,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        old.wrap_socket(sock, server_hostname="127.0.0.1")


def test_certificate_and_key_may_be_in_one_file(identity: Identity) -> None:
    assert Address(certificate=str(identity.both)).tls() is not None


def test_a_locked_key_is_an_error_and_asks_nobody(
    built: ModuleType, run_file: Path, identity: Identity, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InvalidArgumentError, match="passphrase"):
        wb.dashboard(run_file, certificate=str(identity.certificate), key=str(identity.locked))
    with pytest.raises(InvalidArgumentError, match=r"key\.pem and its key cannot be used"):
        Address(certificate=str(identity.key), key=str(identity.key)).tls()
    files = ["--certificate", str(identity.certificate), "--key", str(identity.locked)]
    assert cli.main(["dashboard", "--no-browser", *files, str(run_file)]) == 1
    assert "passphrase" in capsys.readouterr().err


def test_off_loopback_it_listens_with_tls(built: ModuleType, run_file: Path, identity: Identity) -> None:
    files = {"certificate": str(identity.certificate), "key": str(identity.key)}
    with wb.dashboard(run_file, host="0.0.0.0", origins=("localhost:8443",), **files) as dashboard:
        assert dashboard.url.startswith("https://localhost:8443/?token=")
