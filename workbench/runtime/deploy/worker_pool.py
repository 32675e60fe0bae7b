"""Workers that one process holds for others to drive: how they are offered, and how a driver finds them."""

from __future__ import annotations

from typing import Any, Final

from distributed import Client
from distributed.security import Security

from workbench.errors import NotFoundError, UnavailableError
from workbench.runtime.deploy.registry import Registry

SCHEME: Final = "workbench://"


def connection(cluster: Any) -> dict[str, str]:
    """What a driver needs to connect to an embedded Dask cluster: its address, and the keys of its TLS."""
    security = cluster.security
    return {
        "address": cluster.scheduler_address,
        "ca": security.tls_ca_file,
        "certificate": security.tls_client_cert,
        "key": security.tls_client_key,
    }


def client(id: str) -> Client:
    """Connects to the workers that are announced under `id`.

    Raises:
      NotFoundError: if no such workers are announced.
      UnavailableError: if they do not answer.
    """
    entry = Registry().entry(id)
    where = entry.connection
    if not where:
        raise NotFoundError(
            f"{entry.name!r} ({id}) is driven by process {entry.pid} and has no workers for others; use "
            f"wb.connect() for workers of your own"
        )
    security = Security(
        tls_ca_file=where["ca"],
        tls_client_cert=where["certificate"],
        tls_client_key=where["key"],
        require_encryption=True,
    )
    try:
        return Client(where["address"], security=security, set_as_default=False, timeout=10)
    except OSError as error:
        raise UnavailableError(f"the workers {id} do not answer at {where['address']}: {error}") from error
