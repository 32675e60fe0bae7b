"""Where a dashboard listens: on loopback, or with TLS."""

from __future__ import annotations

import ipaddress
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from workbench.arguments import several, text, whole_number
from workbench.errors import InvalidArgumentError, UnsafeBind

_ORIGIN: Final = re.compile(r"(https?://)?([a-z0-9._-]+|\[[0-9a-f:.]+\])(:\d{1,5})?")
"""An origin in the form that browsers send: lower case, without path and user."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on.

    Attributes:
      host: An IP address, or "localhost".
      port: The port; 0 takes a free one.
      certificate: File of the TLS certificate and its chain; "" for none.
      key: File of its key; "" if it is in the same file.
      origins: The names by which browsers reach it, as "name:port", if not by `host` and port; behind a proxy that
        terminates TLS, "https://name".
      without_tls: Whether to listen on other addresses than loopback without TLS, because only a proxy that terminates
        TLS reaches the port.
    """

    host: str = "127.0.0.1"
    port: int = 0
    certificate: str = ""
    key: str = ""
    origins: tuple[str, ...] = ()
    without_tls: bool = False

    def check(self) -> None:
        """Rejects an address that is not safe, or cannot be reached.

        Raises:
          UnsafeBind: if it is not loopback, there is no TLS, and `without_tls` is False.
          InvalidArgumentError: if it is not an address, or it is unknown how browsers reach it.
        """
        for name in ("host", "certificate", "key"):
            text(getattr(self, name), name)
        for origin in several(self.origins, "origins", "('name:8443',)"):
            text(origin, "an origin")
        if not 0 <= whole_number(self.port, "port") <= 65535:
            raise InvalidArgumentError(f"a port lies between 0 and 65535, got {self.port}")
        if self.certificate and self.without_tls:
            raise InvalidArgumentError("a certificate and without_tls exclude each other: leave one out")
        if not self.is_loopback and not self.certificate and not self.without_tls:
            raise UnsafeBind(
                f"refused to listen on {self.host} without TLS: give a certificate and its key, or stay on 127.0.0.1 "
                f"and let `ssh -L` bring the port to your machine; behind a proxy that speaks TLS allow it: without_tls"
            )
        if self.key and not self.certificate:
            raise InvalidArgumentError(f"the key {self.key} was given without its certificate")
        for origin in self.origins:
            if not _ORIGIN.fullmatch(origin):
                raise InvalidArgumentError(
                    f"not an origin of a page: {origin[:200]!r}; give name:port, or https://name behind a proxy"
                )
        if self._is_every_address and not self.origins:
            raise InvalidArgumentError(
                f"{self.host} is every address of this machine: say under which name:port browsers reach it (origins)"
            )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it.

        Raises:
          InvalidArgumentError: if it is not an address.
        """
        return self.host == "localhost" or self._ip.is_loopback

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
            context.load_cert_chain(
                Path(self.certificate), Path(self.key) if self.key else None, password=_no_passphrase
            )
        except (OSError, ssl.SSLError) as error:
            raise InvalidArgumentError(
                f"the certificate {self.certificate} and its key cannot be used: {error}"
            ) from error
        return context

    def url(self, port: int) -> str:
        """The address of the page, once the port is known."""
        if self._is_every_address:
            return f"{self._whole(self.origins[0])}/"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self._scheme}://{host}:{port}/"

    def allowed_origins(self, port: int) -> frozenset[str]:
        """The only origins that its pages may come from."""
        names = [*self.origins]
        if self.is_loopback:
            names += [f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"]
        own = self.url(port).rstrip("/")
        return frozenset(map(_as_sent, (own, *map(self._whole, names))))

    @property
    def _ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        try:
            return ipaddress.ip_address(self.host)
        except ValueError as error:
            raise InvalidArgumentError(f"not an IP address to listen on: {self.host!r}") from error

    @property
    def _is_every_address(self) -> bool:
        return self.host != "localhost" and self._ip.is_unspecified

    @property
    def _scheme(self) -> str:
        return "https" if self.certificate else "http"

    def _whole(self, origin: str) -> str:
        return origin if "://" in origin else f"{self._scheme}://{origin}"


def _as_sent(origin: str) -> str:
    """An address in the form that browsers send, which leaves out the scheme's default port."""
    return origin.removesuffix(":443" if origin.startswith("https:") else ":80")


def _no_passphrase() -> str:
    """Replaces OpenSSL's own prompt, which would wait at the terminal forever.

    Raises:
      OSError: always.
    """
    raise OSError("the key is protected by a passphrase: give a key without one")
