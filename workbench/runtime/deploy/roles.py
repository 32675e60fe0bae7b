"""Roles in a Dask cluster: servers that run in its workers' processes, including restarted ones."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import secrets
from collections.abc import Callable
from typing import Any, Protocol

from distributed import Client, Worker
from distributed.comm.addressing import get_address_host
from distributed.diagnostics.plugin import WorkerPlugin

from workbench import by_value


class Role(Protocol):
    """A server that runs until it is stopped."""

    def stop(self) -> None:
        """Ends the server."""


class Roles:
    """Roles that are distributed round-robin over the workers of a cluster, in the order of their names."""

    def __init__(self, client: Client, count: int, start: Callable[[], Role]) -> None:
        """Starts the roles.

        Args:
          client: Dask's client.
          count: Number of roles.
          start: Starts one role in a worker's process.
        """
        names = sorted(
            (str(worker["name"]) for worker in _workers(client).values()), key=lambda name: (len(name), name)
        )
        counts = {
            name: count // len(names) + (position < count % len(names)) for position, name in enumerate(names)
        }
        self._client = client
        self._plugin = f"workbench-role-{secrets.token_hex(4)}"
        client.register_plugin(_RolePlugin(counts, by_value.dumps(start)), name=self._plugin)

    @staticmethod
    def hosts(client: Client) -> list[str]:
        """The host of each worker; "" for those in this process."""
        addresses = list(_workers(client))
        return [
            "" if address.startswith("inproc") else str(get_address_host(address)) for address in addresses
        ]

    def stop(self) -> None:
        """Stops the roles, and starts no more."""
        with contextlib.suppress(Exception):  # if the cluster is gone, nothing is left to stop
            self._client.unregister_worker_plugin(self._plugin)


class _RolePlugin(WorkerPlugin):
    def __init__(self, counts: dict[str, int], start: bytes) -> None:
        self._counts = counts
        self._start = start  # pickled here: Dask would pickle the plugin without the notebook's definitions
        self._roles: list[Role] = []

    async def setup(self, worker: Worker) -> None:
        """Starts the roles of this worker; later workers with other names start none."""
        start: Any = pickle.loads(self._start)
        for _ in range(self._counts.get(str(worker.name), 0)):
            self._roles.append(await asyncio.to_thread(start))

    async def teardown(self, worker: Worker) -> None:
        """Stops the roles."""
        roles, self._roles = self._roles, []
        for role in roles:
            await asyncio.to_thread(role.stop)


def _workers(client: Client) -> dict[str, Any]:
    workers: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return workers
