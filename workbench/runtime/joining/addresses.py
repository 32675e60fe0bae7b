"""Addresses at which the tasks of a cluster reach each other."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from workbench.communicators.core.tcp import is_loopback
from workbench.errors import InvalidArgumentError, UnavailableError


def host_and_port(address: str) -> tuple[str, int]:
    """Reads "host:port", or "[::1]:port".

    Raises:
      InvalidArgumentError: if it is anything else.
    """
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise InvalidArgumentError(f"{address!r} is not an address of a task; it reads like '10.0.0.5:8786'")
    return host, int(port)


def text_of(host: str, port: int) -> str:
    """The address "host:port"."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def ip_of(host: str) -> str:
    """The IP address of a host.

    Raises:
      UnavailableError: if the name cannot be resolved here.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise UnavailableError(
            f"there is no host {host!r} ({error.strerror or error}); correct the name, or give its IP address"
        ) from error
    return str(found[0][4][0])


def is_here(ip: str) -> bool:
    """Whether an IP address belongs to this machine."""
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.bind((ip, 0))
    except OSError:
        return False
    return True


def ip_among(host: str, peers: Sequence[str]) -> str:
    """The IP address at which a host's peers reach it.

    Many systems resolve their own name to loopback, which no peer can reach. Then it is the address from which this
    machine reaches the first peer on another machine.

    Raises:
      UnavailableError: if the name cannot be resolved here, or there is no route to the peer.
    """
    ip = ip_of(host)
    if not is_loopback(ip) or is_loopback(host):
        return ip
    outside = next((found for found in map(ip_of, peers) if not is_loopback(found)), None)
    return ip if outside is None else ip_towards(outside)


def own_ip(host: str, peers: Sequence[str]) -> str:
    """The IP address at which this machine listens for its peers; `host` is its name in the cluster. See `ip_among`.

    Raises:
      UnavailableError: if the address does not belong to this machine.
    """
    ip = ip_among(host, peers)
    if not is_here(ip):
        raise UnavailableError(
            f"the cluster has this task on {host} ({ip}), which is not an address of this machine "
            f"({socket.gethostname()}): start the task there, or correct the address"
        )
    return ip


def ip_towards(host: str) -> str:
    """The IP address from which this machine reaches a host; sends nothing.

    Raises:
      UnavailableError: if there is no such host, or no route to it.
    """
    ip = ip_of(host)
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    try:
        # Without a route, Dask's get_ip would guess.
        with socket.socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect((ip, 1))
            return str(asking.getsockname()[0])
    except OSError as error:
        raise UnavailableError(f"there is no way to {host}: {error.strerror or error}") from error
