"""Certificates that vouch for themselves, for servers of tests with TLS."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate that vouches for itself, and its key.

    Attributes:
      certificate, key: Files.
      locked: The same key behind the passphrase "secret".
      both: Certificate and key in one file.
    """

    certificate: Path
    key: Path
    locked: Path
    both: Path

    @classmethod
    def in_folder(cls, folder: Path) -> Identity:
        """A new one for 127.0.0.1 and localhost, in files of `folder`."""
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
        locks = {
            "key": serialization.NoEncryption(),
            "locked": serialization.BestAvailableEncryption(b"secret"),
        }
        keys = {
            name: key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)
            for name, lock in locks.items()
        }
        files = {"certificate": certificate, **keys, "both": certificate + keys["key"]}
        for file, content in files.items():
            (folder / f"{file}.pem").write_bytes(content)
        return cls(**{file: folder / f"{file}.pem" for file in files})

    def trusting(self) -> ssl.SSLContext:
        """The side of a browser that trusts it."""
        return ssl.create_default_context(cafile=str(self.certificate))


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    """One for all tests."""
    return Identity.in_folder(tmp_path_factory.mktemp("tls"))
