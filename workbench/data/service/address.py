"""The address of a data service's server, the token that it requires, and the certificates of both sides."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

from workbench.arguments import count
from workbench.communicators.core.tcp import is_loopback
from workbench.errors import InvalidArgumentError, UnsafeBind

PROTOCOL = "grpc"
"""The start of addresses, as in the reference. The frames are this project's own."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Files for encrypted connections, in PEM format. The same files can serve dispatcher, workers and consumers.

    Attributes:
      authority: Certificate of the authority that signed the servers' certificates; a self-signed certificate is
        its own.
      certificate: Certificate of this server, with the host that clients connect to among its names.
      key: Its private key, without a passphrase.
    """

    authority: str
    certificate: str = ""
    key: str = ""

    def server(self) -> ssl.SSLContext:
        """The server's side of TLS.

        Raises:
          InvalidArgumentError: if there is no certificate, or it cannot be read.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key or None)
        except (OSError, ValueError) as error:
            raise InvalidArgumentError(
                f"TLS: cannot load certificate {self.certificate!r} with key {self.key!r}: {error}; a server needs "
                "both, as PEM files"
            ) from error
        return context

    def client(self) -> ssl.SSLContext:
        """The client's side of TLS, which verifies servers.

        Raises:
          InvalidArgumentError: if the authority cannot be read.
        """
        try:
            return ssl.create_default_context(cafile=self.authority)
        except (OSError, ValueError) as error:
            raise InvalidArgumentError(f"TLS: cannot load authority {self.authority!r}: {error}") from error


@dataclass(frozen=True, slots=True)
class Address:
    """A server.

    Attributes:
      host: Name or IP address.
      port: Its port.
      token: The secret that clients must show, so `str` leaves it out.
    """

    host: str
    port: int
    token: str = field(default="", repr=False)

    @classmethod
    def of_target(cls, target: str) -> Address:
        """Reads `protocol://[token@]host:port`, as `DispatchServer.target`.

        Raises:
          InvalidArgumentError: if it has another form.
        """
        protocol, separator, rest = str(target).partition("://")
        if not separator or not protocol or not rest:
            raise InvalidArgumentError(
                f"service is {_without_token(str(target))!r}; it must be protocol://address, such as dispatcher.target "
                f"or {PROTOCOL}://TOKEN@localhost:5000"
            )
        return cls.parse(rest)

    @classmethod
    def parse(cls, text: str) -> Address:
        """Reads `[token@]host:port`; a leading protocol is allowed.

        Raises:
          InvalidArgumentError: if it has another form.
        """
        rest = str(text).rpartition("://")[2]
        token, _, place = rest.rpartition("@")
        host, _, port = place.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise InvalidArgumentError(
                f"{_without_token(str(text))!r} is not an address; it must be [token@]host:port, such as localhost:5000"
            )
        return cls(host.removeprefix("[").removesuffix("]"), int(port), token)

    @property
    def place(self) -> str:
        """Host and port as text."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def target(self) -> str:
        """The address with protocol and token, as clients need it."""
        return f"{PROTOCOL}://{self.token}@{self.place}" if self.token else f"{PROTOCOL}://{self.place}"

    def __str__(self) -> str:
        return f"{PROTOCOL}://{self.place}"


def check_bind(host: str, tls: Tls | None) -> None:
    """Refuses to listen where others could eavesdrop.

    Raises:
      UnsafeBind: if other machines can reach `host` and there is no TLS.
    """
    if tls is None and not is_loopback(host):
        raise UnsafeBind(
            f"refused to listen on {host} without TLS: datasets are code, and the token would travel in the clear; "
            f"pass tls=wb.data.service.Tls(authority, certificate, key), or listen on 127.0.0.1"
        )


def check_protocol(protocol: str) -> str:
    """The protocol, if it is the supported one.

    Raises:
      InvalidArgumentError: for another one.
    """
    if protocol != PROTOCOL:
        raise InvalidArgumentError(f"protocol is {protocol!r}; the data service has {PROTOCOL!r} only")
    return protocol


def positive_ms(value: int | None, default: int, what: str) -> int:
    """A time in milliseconds, `default` for None.

    Args:
      value: The argument's value.
      default: The time for None.
      what: Name of the argument, for the error.

    Raises:
      InvalidArgumentError: if it is not at least 1.
    """
    if value is None:
        return default
    return count(value, what, otherwise=" millisecond, or None")


def _without_token(text: str) -> str:
    protocol, separator, rest = text.rpartition("://")
    return protocol + separator + rest.rpartition("@")[2]
