"""Where a dashboard listens: on loopback, or with TLS."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import InvalidArgumentError, UnsafeBind


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on.

    Attributes:
      host: An IP address, or "localhost".
      port: 0 takes one that is free.
      certificate: File of the TLS certificate; "" for none.
      key: File of its key; "" if it is in the same file.
      origins: How browsers reach it, if not by `host` and port: "name:port" of each, or behind a proxy that speaks TLS
        "https://name".
    """

    host: str = "127.0.0.1"
    port: int = 0
    certificate: str = ""
    key: str = ""
    origins: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuses what is not safe.

        Raises:
          UnsafeBind: if it is not loopback and there is no TLS.
          InvalidArgumentError: if it is no address.
        """
        if not 0 <= self.port <= 65535:
            raise InvalidArgumentError(f"a port lies between 0 and 65535, got {self.port}")
        if not self.is_loopback and not self.certificate:
            raise UnsafeBind(
                f"refused to listen on {self.host} without TLS: give a certificate and its key, or stay on 127.0.0.1 "
                f"and let `ssh -L` bring the port to your machine"
            )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it.

        Raises:
          InvalidArgumentError: if it is no address.
        """
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError as error:
            raise InvalidArgumentError(f"not an IP address to listen on: {self.host!r}") from error

    def tls(self) -> ssl.SSLContext | None:
        """The server's side of TLS, if there is a certificate.

        Raises:
          InvalidArgumentError: if the files cannot be used.
        """
        if not self.certificate:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(Path(self.certificate), Path(self.key) if self.key else None)
        except (OSError, ssl.SSLError) as error:
            raise InvalidArgumentError(
                f"the certificate {self.certificate} and its key cannot be used: {error}"
            ) from error
        return context

    def url(self, port: int) -> str:
        """Where the page is, once the port is known."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self._scheme}://{host}:{port}/"

    def allowed_origins(self, port: int) -> frozenset[str]:
        """Where its pages may come from, and nowhere else."""
        names = [name for name in self.origins if "://" not in name]
        if self.is_loopback:
            names += [f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"]
        own = self.url(port).rstrip("/")
        whole = [name for name in self.origins if "://" in name]
        return frozenset({own, *whole, *(f"{self._scheme}://{name}" for name in names)})

    @property
    def _scheme(self) -> str:
        return "https" if self.certificate else "http"
