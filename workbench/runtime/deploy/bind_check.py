"""Checks whether others than its users can reach a Dask cluster that someone else has started."""

from __future__ import annotations

from collections.abc import Iterable

from distributed.comm.addressing import get_address_host

from workbench.backends.users_line import warn
from workbench.communicators.core.tcp import is_loopback

_ENCRYPTED = ("tls", "wss")
_WITHIN = ("inproc", "unix")  # within the process, or protected by the file system


def warn_of_exposure(addresses: Iterable[str]) -> None:
    """Warns if one of these addresses can be reached from other machines without TLS.

    This is not an error, because these servers listen independently of workbench. Workbench's own listeners refuse such
    addresses with `UnsafeBind`; see `communicators.core.tcp`.

    Args:
      addresses: Addresses of a Dask scheduler and its workers, as others reach them.
    """
    exposed = next(filter(is_exposed, addresses), None)
    if exposed is not None:
        warn(
            f"this Dask cluster listens beyond loopback without TLS ({exposed}): anyone who can reach it can run code "
            f"on its workers, read what they exchange with this notebook, and send it something else. Start it with "
            f"TLS (distributed.Security; `dask scheduler --tls-ca-file=…`), which a strategy over several of its hosts "
            f"needs, or with `--host 127.0.0.1`, unless you trust everyone in its network",
            UserWarning,
        )


def is_exposed(address: str) -> bool:
    """Whether other machines can reach a Dask address, such as "tcp://10.0.0.5:8786", without a certificate."""
    protocol = address.partition("://")[0]
    return protocol not in (*_ENCRYPTED, *_WITHIN) and not is_loopback(str(get_address_host(address)))
