"""Announces a cluster, and answers the Jupyter servers of its user."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from workbench import forks
from workbench.runtime import Cluster, current_cluster
from workbench.runtime.comm.unix_listener import UnixListener
from workbench.runtime.deploy.registry import SUPPORTED, Entry, Registry, new_id
from workbench.server.channels import CHANNEL_OF
from workbench.server.publisher import Publisher
from workbench.ui.widgets import shown
from workbench.ui.widgets.sources import Source

_log = logging.getLogger("workbench")
_announcements: dict[Cluster, Announcement] = {}


class Announcement:
    """A cluster's entry in the registry, and the socket that it names.

    Attributes:
      entry: The entry in the registry.
    """

    def __init__(self, cluster: Cluster, registry: Registry) -> None:
        """Announces the cluster.

        Raises:
          OSError: if the registry's folder cannot be used.
        """
        self._cluster = cluster
        self._lock = forks.lock(threading.Lock())  # guards the next two; never held while waiting
        self._publishers: list[Publisher] = []
        self._closed = False
        self._published: dict[str, Callable[[], Source]] = {}
        scheduler = cluster.client.scheduler
        self._listener = UnixListener(self._accept, thread_name="workbench-announcement")
        self.entry = Entry(
            id=new_id(),
            kind="driver",
            name=driver_name() or cluster.name,
            pid=os.getpid(),
            machine=socket.gethostname(),
            started=time.time(),
            socket=self._listener.path,
            kernel=kernel_id(),
            workers_of=cluster.workers_of,
            scheduler="" if scheduler is None else str(scheduler.address),
        )
        try:
            self._announced = registry.announce(self.entry)
        except BaseException:
            self._listener.close()
            raise
        forks.tell(self)
        shown.listeners.append(self._on_shown)
        cluster.closing.append(self.close)

    def disown(self) -> None:
        """See `forks.tell`: entry and socket are the parent's."""
        self._closed = True
        _announcements.pop(self._cluster, None)

    def _on_shown(self, view: str, make: Callable[[], Source]) -> None:
        """Adds what the user inspects, such as the result of `wb.inspect`, to the panes."""
        if current_cluster() is not self._cluster:
            return
        self._published[CHANNEL_OF[view]] = make
        for publisher in tuple(self._publishers):
            publisher.wake()

    def close(self) -> None:
        """Withdraws the announcement after listening servers have received the last state. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            publishers = list(self._publishers)
        shown.listeners.remove(self._on_shown)
        self._announced.withdraw()
        self._listener.close()
        for publisher in publishers:
            publisher.finish()
        _announcements.pop(self._cluster, None)

    def _accept(self, sock: socket.socket) -> None:
        with self._lock:
            if self._closed:
                raise ConnectionError("the cluster is closing")
            self._publishers = [publisher for publisher in self._publishers if not publisher.ended]
            self._publishers.append(Publisher(self._cluster, sock, self._published))


def announce(cluster: Cluster) -> Announcement | None:
    """Announces a cluster until it closes; None, and a line in the log, if that is not possible."""
    if not SUPPORTED:
        return None
    try:
        announcement = Announcement(cluster, Registry())
    except OSError as error:
        _log.warning("JupyterLab will not show this cluster: %s", error)
        return None
    _announcements[cluster] = announcement
    return announcement


def announced_id(cluster: Cluster) -> str:
    """The id under which others find a cluster; "" if it is closed, or could not be announced."""
    announcement = _announcements.get(cluster)
    return "" if announcement is None else announcement.entry.id


def driver_name() -> str:
    """The notebook's or the script's name, or "" if there is none, as in a console."""
    return Path(os.environ.get("JPY_SESSION_NAME") or _script()).name


def kernel_id() -> str:
    """Jupyter's id of this process's kernel, or "" if the process is not a kernel.

    It is in the name of the kernel's connection file. The environment does not work, because children of a kernel
    inherit it.
    """
    application = sys.modules.get("ipykernel.kernelapp")
    if application is None or not application.IPKernelApp.initialized():
        return ""
    return Path(application.IPKernelApp.instance().connection_file).stem.removeprefix("kernel-")


def _script() -> str:
    first = sys.argv[0] if sys.argv else ""
    return "" if first in ("", "-c", "-m") or "ipykernel" in first else first
