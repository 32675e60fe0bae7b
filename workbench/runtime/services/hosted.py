"""HostedService: the driver's side of a service in a device's process: starts, leases and restores it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from workbench import forks
from workbench.communicators.core.tcp import Tls, is_loopback
from workbench.device_names import Device
from workbench.errors import ClusterClosed, ReplicaLost, ReplicaStalled, UnavailableError
from workbench.runtime.services.service import Connection, ServiceAddress

if TYPE_CHECKING:
    from workbench.runtime.cluster import Cluster

_RESTORE_SECONDS: Final = 120.0
_PAUSE_SECONDS: Final = 0.1
_PROBE_SECONDS: Final = 2.0
_CLOSE_SECONDS: Final = 5.0
Start = Callable[[], tuple[Any, ...]]


class HostedService:
    """Keeps a service running: if its process ends, it is restarted in the process that replaces it.

    Attributes:
      name: Its name, such as "ps:0".
      device: The device for which it was requested.
      address: Its current address.
      restarts: How often it was restarted.
    """

    def __init__(
        self,
        cluster: Cluster,
        device: Device,
        name: str,
        program: Callable[..., ServiceAddress],
        start: Start,
    ) -> None:
        """Starts the service.

        Args:
          cluster: The cluster that has the device.
          device: The device; its process runs the service.
          name: The name of the service.
          program: Starts the service there; called as `program(env, name, *start())`. It may be called again after an
            earlier call has started the service, or begun to.
          start: Returns further arguments.
        """
        self.name = name
        self.device = device
        self.restarts = 0
        self._group = cluster.group([device], label=name)
        self._security = cluster.client.security
        self._prepared = self._group.prepare(program)
        self._start = start
        self._lock = forks.lock(threading.Lock())
        self._closed = threading.Event()
        self._ended = False
        self._client = cluster.client
        self._lease: Connection | None = None
        try:
            self.address = self._started()
        except BaseException:
            self.close()
            raise

    @property
    def gone(self) -> str:
        """How its process ended, in words; "" while it runs."""
        gang = self._group.gang
        return next((str(gang.workers[n].lost) for n in self._group.worker_names if gang.workers[n].lost), "")

    def keeps(self, names: Callable[[], tuple[str, ...]]) -> None:
        """Registers `names()`, the names of values that the service holds."""
        self._group.kept_names = names

    def restored(self, seen: ServiceAddress) -> ServiceAddress:
        """The new address of the service, after it did not answer at `seen`.

        Raises:
          UnavailableError: if it cannot be restarted.
        """
        with self._lock:
            if self.address == seen and not self._answers():
                # An unreachable service ends with its lease, but may still be needed until another one exists.
                former, self._lease = self._lease, None
                try:
                    self.address = self._started()
                except BaseException:
                    self._let_go()
                    self._lease = former
                    if self._closed.is_set():  # by a thread that saw no lease to end
                        self._let_go()
                    raise
                self.restarts += 1
                if former is not None:
                    former.close()
            return self.address

    def tls(self) -> Tls | None:
        """The TLS settings with which the driver connects to it."""
        return self._tls_for(self.address)

    def _answers(self) -> bool:
        try:
            Connection(self.address, self.tls(), _PROBE_SECONDS).close()
        except OSError:
            return False
        return self._lease is not None

    def _started(self) -> ServiceAddress:
        deadline = time.monotonic() + _RESTORE_SECONDS
        while True:
            if self._closed.is_set():
                raise ClusterClosed(f"{self.name} was stopped")
            try:
                handle = self._group.run(self._prepared, (self.name, *self._start()))
                address: ServiceAddress = handle.value(0)
                self._lease = Connection(address, self._tls_for(address))
                self._lease.ask({"method": "lease"})
                # A thread that saw no lease may have started this service meanwhile; in that case, end it.
                if self._closed.is_set():
                    self._let_go()
                    raise ClusterClosed(f"{self.name} was stopped")
            except (ReplicaLost, ReplicaStalled, OSError) as error:
                self._let_go()
                if self._closed.is_set():
                    raise ClusterClosed(f"{self.name} was stopped") from error
                if self._client.status == "closed":  # Dask's client raises this if the scheduler stays away
                    raise UnavailableError(
                        f"{self.name} on {self.device} is gone and cannot be started again: {error}"
                    ) from error
                if time.monotonic() > deadline:
                    raise UnavailableError(
                        f"{self.name} on {self.device} is gone and could not be started again within "
                        f"{_RESTORE_SECONDS:g} s: {error}"
                    ) from error
                self._closed.wait(_PAUSE_SECONDS)
            else:
                return address

    def _tls_for(self, address: ServiceAddress) -> Tls | None:
        if is_loopback(address.host):
            return None
        context = self._security.get_connection_args("client").get("ssl_context")
        return None if context is None else Tls(server=context, client=context)

    def _let_go(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.close()

    def stop_waiting(self) -> None:
        """Ends waits in `restored` in all threads, because the service is no longer needed; `close` follows."""
        self._closed.set()

    def close(self) -> None:
        """Ends the service, and waits until it has ended. Idempotent."""
        self._closed.set()
        if not self._ended:
            self._ended = True
            lease, self._lease = self._lease, None
            if lease is not None:
                lease.finish(_CLOSE_SECONDS)
            self._group.gang.abandoned.append(self._group)
