"""A dashboard with TLS: nothing of it goes over the wire as plain text, and its cookie never does."""

from __future__ import annotations

import datetime
import http.client
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
import websocket
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import workbench as wb
from tests.dashboards.conftest import PATIENCE_SECONDS, Client, client_of
from workbench import cli
from workbench.dashboards.address import Address
from workbench.dashboards.dashboard import Dashboard
from workbench.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate that vouches for itself, and its key.

    Attributes:
      certificate, key: Files.
      locked: The same key behind a passphrase.
      both: Certificate and key in one file.
    """

    certificate: Path
    key: Path
    locked: Path
    both: Path

    def trusting(self) -> ssl.SSLContext:
        """The side of a browser that trusts it."""
        return ssl.create_default_context(cafile=str(self.certificate))


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    """For 127.0.0.1 and localhost."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "workbench")])
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    locks = {"key": serialization.NoEncryption(), "locked": serialization.BestAvailableEncryption(b"secret")}
    keys = {
        name: key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)
        for name, lock in locks.items()
    }
    folder = tmp_path_factory.mktemp("tls")
    files = {"certificate": certificate, **keys, "both": certificate + keys["key"]}
    for file, content in files.items():
        (folder / f"{file}.pem").write_bytes(content)
    return Identity(**{file: folder / f"{file}.pem" for file in files})


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
