"""Hosting: the processes of a parameter-server strategy, in the notebook."""

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
    """The running servers, their client, and the workers' devices.

    Attributes:
      cluster: The cluster that has the devices.
      servers: The parameter servers.
      workers: Devices on which functions run.
      client: The notebook's client.
      watched: Their state, for views.
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
          workers: Devices on which functions run.
          servers: Devices of the servers, one for each.
          strategy: Id of the strategy.
          journal_folder: The folder of the servers' journals; None is the folder for temporary files.
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
        """The new address of a server that did not answer at `seen`; see `HostedService.restored`."""
        return self.servers[server].restored(seen)

    def before_close(self, callback: Callable[[], object]) -> None:
        """Registers `callback()`, called before the servers end."""
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
