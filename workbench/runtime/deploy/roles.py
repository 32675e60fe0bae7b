"""Roles in a Dask cluster: servers that live in the processes of its workers, also in those that are started again."""

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
    """Something that runs until it is stopped."""

    def stop(self) -> None:
        """Ends it."""


class Roles:
    """Roles that are dealt to the workers of a cluster in turn, in the order of their names."""

    def __init__(self, client: Client, count: int, start: Callable[[], Role]) -> None:
        """Starts them.

        Args:
          client: Dask's client.
          count: How many roles.
          start: Starts one, in a worker's process.
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
        """Stops them, and starts no more."""
        with contextlib.suppress(Exception):  # if the cluster is gone, nothing is left to stop
            self._client.unregister_worker_plugin(self._plugin)


class _RolePlugin(WorkerPlugin):
    def __init__(self, counts: dict[str, int], start: bytes) -> None:
        self._counts = counts
        self._start = start  # pickled here: Dask would pickle the plugin without what a notebook has defined
        self._roles: list[Role] = []

    async def setup(self, worker: Worker) -> None:
        """Starts a worker's roles; a worker with another name never starts them."""
        start: Any = pickle.loads(self._start)
        for _ in range(self._counts.get(str(worker.name), 0)):
            self._roles.append(await asyncio.to_thread(start))

    async def teardown(self, worker: Worker) -> None:
        """Stops them."""
        roles, self._roles = self._roles, []
        for role in roles:
            await asyncio.to_thread(role.stop)


def _workers(client: Client) -> dict[str, Any]:
    workers: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return workers
