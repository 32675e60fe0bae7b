"""Workers that one process holds for others to drive: how it offers them, and how a driver finds them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from distributed import Client
from distributed.security import Security

from workbench.errors import NotFoundError, UnavailableError
from workbench.runtime.deploy.registry import Registry

SCHEME: Final = "workbench://"
_EXPECTED: Final = ["workbench", "workers"]
"""The place on Dask's scheduler of the number of workers that drivers wait for."""
_GROW_SECONDS: Final = 60.0
_CLIENT: Final = "Client-"
"""The prefix of Dask's names for clients of programs; its internal clients have other names."""


class Pool(NamedTuple):
    """Workers of another process.

    Attributes:
      client: A client connected to them.
      devices: Number of devices of each worker.
      kind: "CPU", "GPU" or "TPU".
    """

    client: Client
    devices: int
    kind: str


def connection(cluster: Any, devices: int = 1, kind: str = "CPU") -> dict[str, str]:
    """The data with which a driver connects to an embedded Dask cluster.

    Args:
      cluster: The Dask cluster.
      devices: Number of devices of each worker.
      kind: Kind of the devices; see `Pool`.

    Returns:
      Its address, its TLS keys, and the devices of its workers.
    """
    security = cluster.security
    return {
        "address": cluster.scheduler_address,
        "ca": security.tls_ca_file,
        "certificate": security.tls_client_cert,
        "key": security.tls_client_key,
        "devices": str(devices),
        "kind": kind,
    }


def expect(cluster: Any, workers: int) -> None:
    """Makes drivers of an embedded Dask cluster wait until it has this many workers."""
    cluster.scheduler.set_metadata(keys=_EXPECTED, value=workers)


def is_used(cluster: Any) -> bool:
    """Whether any program is connected to an embedded Dask cluster."""
    return any(name.startswith(_CLIENT) for name in list(cluster.scheduler.clients))


def connected(id: str) -> Pool:
    """Connects to the workers announced under `id`, and waits for those that start because they are used.

    Raises:
      NotFoundError: if no such workers are announced.
      UnavailableError: if they do not answer or do not start.
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
        client = Client(where["address"], security=security, set_as_default=False, timeout=10)
    except OSError as error:
        raise UnavailableError(f"the workers {id} do not answer at {where['address']}: {error}") from error
    try:
        expected = client.get_metadata(_EXPECTED, default=0)
        if expected:
            client.wait_for_workers(expected, timeout=_GROW_SECONDS)
    except TimeoutError as error:
        client.close()
        raise UnavailableError(
            f"the workers {id} are {expected} while a program uses them, but did not come within "
            f"{_GROW_SECONDS:.0f} s: set a lower maximum in JupyterLab's panel, and connect again"
        ) from error
    except BaseException:
        client.close()
        raise
    return Pool(client, int(where.get("devices", 1)), where.get("kind", ""))
