"""Hosting: the processes of a parameter-server strategy, as the notebook holds them."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from workbench.distribute.servers.client import ServerClient
from workbench.distribute.servers.journal import folder_for
from workbench.distribute.servers.server import start_server
from workbench.distribute.servers.watching import Watched, tell
from workbench.runtime.services.hosted import HostedService
from workbench.runtime.services.service import ServiceAddress

if TYPE_CHECKING:
    from workbench.device_names import Device
    from workbench.runtime.cluster import Cluster


class Hosting:
    """Servers that run, the client of them, and the devices of workers.

    Attributes:
      cluster: The cluster that has the devices.
      servers: The parameter servers.
      workers: Devices on which functions run.
      client: The notebook's client.
      watched: What shows them in views.
    """

    def __init__(
        self,
        cluster: Cluster,
        workers: Sequence[Device],
        servers: Sequence[Device],
        *,
        strategy: str,
        journal_folder: str | None,
    ) -> None:
        """Starts the servers.

        Args:
          cluster: The cluster that has the devices.
          workers: Where functions run.
          servers: Where variables live, a device of each server.
          strategy: Id of the strategy.
          journal_folder: Where servers keep their journals; None is the folder for temporary files.
        """
        self.cluster = cluster
        self.workers = tuple(workers)
        self.servers: list[HostedService] = []
        self._closing: list[Callable[[], object]] = []
        self.watched = Watched(cluster, self.servers)
        parent = journal_folder or tempfile.gettempdir()
        try:
            for number, device in enumerate(servers):
                journal = str(folder_for(parent, secrets.token_hex(8)))
                self.servers.append(
                    HostedService(cluster, device, f"ps:{number}", start_server, partial(tuple, [journal]))
                )
        except BaseException:
            self.close()
            raise
        addresses = [server.address for server in self.servers]
        self.client = ServerClient(strategy, addresses, self.servers[0].tls(), self.restored)
        cluster.closing.append(self.close)
        tell(self.watched)

    def restored(self, server: int, seen: ServiceAddress) -> ServiceAddress:
        """Where a server is, after it did not answer at `seen`; see `HostedService.restored`."""
        return self.servers[server].restored(seen)

    def before_close(self, callback: Callable[[], object]) -> None:
        """Has `callback()` called when all this ends."""
        self._closing.append(callback)

    def close(self) -> None:
        """Ends the servers, and the variables with them. Idempotent."""
        while self._closing:
            self._closing.pop()()
        self.watched.close()
        if hasattr(self, "client"):
            self.client.close()
        for server in self.servers:
            server.close()
        if self.close in self.cluster.closing:
            self.cluster.closing.remove(self.close)
