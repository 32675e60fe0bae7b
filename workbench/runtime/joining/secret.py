"""The secret that the tasks of a cluster and its notebooks share, and the TLS settings derived from it.

Key and certificate depend only on the secret: every task derives the same ones, to the byte, so only the secret must
reach the tasks. The certificate is its own authority, as in `distributed.Security.temporary`: only a task that has the
secret can show it and is admitted.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from distributed.security import Security

from workbench.errors import FailedPreconditionError
from workbench.runtime.deploy.registry import data_folder

VARIABLE: Final = "WORKBENCH_SECRET"
"""The variable with the secret itself; batch systems and Kubernetes pass secrets this way."""
FILE_VARIABLE: Final = "WORKBENCH_SECRET_FILE"
"""The variable with the secret's file; by default a file in the user's data folder, which hosts usually share."""
_LEAST_CHARACTERS: Final = 32
_REMEDY: Final = 'make one with `python -c "import secrets; print(secrets.token_hex(32))"`'
_VALID: Final = (datetime.datetime(2020, 1, 1), datetime.datetime(2120, 1, 1))


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret. All that is derived from it depends on nothing else.

    Attributes:
      text: At least 32 unguessable characters.
      source: Its origin, for messages.
    """

    text: str = field(repr=False)
    source: str

    def __post_init__(self) -> None:
        if len(self.text) < _LEAST_CHARACTERS:
            raise FailedPreconditionError(
                f"the secret in {self.source} has {len(self.text)} characters, and could be guessed by trying; it "
                f"needs at least {_LEAST_CHARACTERS}: {_REMEDY}"
            )

    @classmethod
    def existing(cls) -> Secret | None:
        """The secret of this user or of this process's environment; None if there is none yet.

        Raises:
          FailedPreconditionError: if others can read its file, or it is too short.
        """
        if text := os.environ.get(VARIABLE, "").strip():
            return cls(text, VARIABLE)
        path = secret_file()
        try:
            with path.open(encoding="utf-8") as file:
                about = os.fstat(file.fileno())
                if about.st_uid not in (os.getuid(), 0) or stat.S_IMODE(about.st_mode) & 0o077:
                    raise FailedPreconditionError(
                        f"others than you can read {path}, and anyone who has it can run code on your clusters: `chmod "
                        f"600` it (in Kubernetes: defaultMode: 0400 of the volume), or set {VARIABLE}"
                    )
                return cls(file.read(4096).strip(), str(path))
        except FileNotFoundError:
            return None

    @classmethod
    def found_or_made(cls) -> Secret:
        """As `existing`, but if there is no secret, creates one in the file, which only this user can read.

        Raises:
          FailedPreconditionError: if others can read the file, or it cannot be created.
        """
        if (found := cls.existing()) is not None:
            return found
        path = secret_file()
        try:
            _make(path)
        except OSError as error:
            raise FailedPreconditionError(
                f"the secret cannot be kept in {path} ({error}): set {FILE_VARIABLE} to a file that all tasks see, or "
                f"{VARIABLE} to the same secret for all of them; {_REMEDY}"
            ) from error
        made = cls.existing()
        assert made is not None
        return made

    @property
    def fingerprint(self) -> str:
        """Eight hexadecimal digits for comparing the secrets of two hosts; they reveal nothing about the secret."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        digest = x509.load_pem_x509_certificate(self._pair()[0].encode()).fingerprint(hashes.SHA256()).hex()
        return f"{digest[:4]}-{digest[4:8]}"

    def security(self) -> Security:
        """Dask's TLS settings for scheduler, workers and clients with this secret."""
        certificate, key = self._pair()
        parts = {
            f"tls_{role}_{part}": text
            for role in ("client", "scheduler", "worker")
            for part, text in (("cert", certificate), ("key", key))
        }
        return Security(require_encryption=True, tls_ca_file=certificate, **parts)

    def _pair(self) -> tuple[str, str]:
        """Certificate and key, as PEM."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
        from cryptography.x509.oid import NameOID

        seed = HKDF(hashes.SHA256(), 32, salt=None, info=b"workbench join, 1").derive(self.text.encode())
        key = Ed25519PrivateKey.from_private_bytes(seed)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "workbench-join")])
        # Ed25519 signatures are deterministic, so all tasks get the same certificate.
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("workbench-join")]), critical=False)
            .public_key(key.public_key())
            .serial_number(1)
            .not_valid_before(_VALID[0])
            .not_valid_after(_VALID[1])
            .sign(key, None)
        )
        pem = serialization.Encoding.PEM
        private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return certificate.public_bytes(pem).decode(), private.decode()


def secret_file() -> Path:
    """The file with this user's secret: `$WORKBENCH_SECRET_FILE`, else one in the user's data folder."""
    if chosen := os.environ.get(FILE_VARIABLE):
        return Path(chosen)
    return data_folder() / "join-secret"


def _make(path: Path) -> None:
    """Creates the file. Several tasks may try at once in a shared folder; only one of them creates the link."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{secrets.token_hex(32)}\n")
        with contextlib.suppress(FileExistsError):
            os.link(hidden, path)
    finally:
        hidden.unlink()
