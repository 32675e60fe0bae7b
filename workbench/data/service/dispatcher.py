"""`DispatchServer`, as tf.data.experimental.service.DispatchServer."""

from __future__ import annotations

import os
import secrets
import weakref
from dataclasses import dataclass
from typing import Any

from workbench.arguments import flag
from workbench.data.service import watching
from workbench.data.service.address import PROTOCOL, Address, Tls, check_bind, check_protocol, positive_ms
from workbench.data.service.dispatch.coordinator import Coordinator, Limits
from workbench.data.service.server import Server
from workbench.data.stored.writing import replace_file
from workbench.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from workbench.io.storage import absolute, storage

_JOIN_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class DispatcherConfig:
    """The configuration of a dispatcher, as tf.data.experimental.service.DispatcherConfig.

    The last three attributes are additions.

    Attributes:
      port: The port to listen on, 0 for a free one. Consumers find a restarted dispatcher only under the same port.
      protocol: "grpc", which only names the service: the protocol is workbench's own.
      work_dir: A folder for the dispatcher's state, which no other process may write to.
      fault_tolerant_mode: Whether a restarted dispatcher continues where it was, with the journal and the token in
        `work_dir`.
      worker_addresses: Addresses ("host" or "host:port") of all workers, for the policies that give each a fixed part.
      job_gc_check_interval_ms: How often to look for jobs without readers, in ms; 10,000 by default.
      job_gc_timeout_ms: How long a job may have no reader before it is forgotten, in ms; 300,000 by default.
      worker_timeout_ms: How long a worker may be silent, after an answer to it, before its work goes to others, in ms;
        10,000 by default. A worker whose connection has ended counts as lost immediately.
      host: The address to listen on; any address other than loopback needs `tls`.
      token: The secret that workers and consumers must show; by default a new one, or the one in `work_dir`.
      tls: Certificate and key.
    """

    port: int = 0
    protocol: str = PROTOCOL
    work_dir: str | os.PathLike[str] | None = None
    fault_tolerant_mode: bool = False
    worker_addresses: tuple[str, ...] | list[str] | None = None
    job_gc_check_interval_ms: int | None = None
    job_gc_timeout_ms: int | None = None
    worker_timeout_ms: int | None = None
    host: str = "127.0.0.1"
    token: str | None = None
    tls: Tls | None = None

    def __post_init__(self) -> None:
        tolerant = flag(self.fault_tolerant_mode, "DispatcherConfig(fault_tolerant_mode)")
        object.__setattr__(self, "fault_tolerant_mode", tolerant)
        defaults = {
            "job_gc_check_interval_ms": 10_000,
            "job_gc_timeout_ms": 300_000,
            "worker_timeout_ms": 10_000,
        }
        for name, default in defaults.items():
            object.__setattr__(
                self, name, positive_ms(getattr(self, name), default, f"DispatcherConfig({name})")
            )

    @property
    def limits(self) -> Limits:
        """The times in seconds."""
        times = (self.job_gc_check_interval_ms, self.job_gc_timeout_ms, self.worker_timeout_ms)
        return Limits(*((milliseconds or 0) / 1000 for milliseconds in times))


class DispatchServer:
    """A dispatcher in this process. It ends with `stop`, a `with` block, or when it is no longer referenced."""

    def __init__(self, config: DispatcherConfig | None = None, start: bool = True) -> None:
        """Sets up a dispatcher.

        Args:
          config: The configuration; by default a free port of this machine, without a journal.
          start: Whether to start it immediately.

        Raises:
          InvalidArgumentError: if fault_tolerant_mode is set without work_dir.
          UnsafeBind: if it would listen on an address other than loopback without TLS.
          DataLossError: if the journal in work_dir is damaged.
        """
        start = flag(start, "start")
        self._config = config or DispatcherConfig()
        check_protocol(self._config.protocol)
        check_bind(self._config.host, self._config.tls)
        if self._config.fault_tolerant_mode and not self._config.work_dir:
            raise InvalidArgumentError(
                "fault_tolerant_mode needs a folder for the journal: DispatcherConfig(work_dir=...)"
            )
        self._running: tuple[Server, Coordinator, str] | None = None
        self._stopping: Any = None
        if start:
            self.start()

    def start(self) -> None:
        """Starts the dispatcher, unless it is running.

        Raises:
          UnavailableError: if the port is taken.
          DataLossError: if the journal is damaged.
        """
        if self._running is not None:
            return
        config = self._config
        work_dir = _work_dir(config.work_dir) if config.fault_tolerant_mode else None
        token = config.token or _kept_token(work_dir)
        coordinator = Coordinator(work_dir, config.limits, tuple(config.worker_addresses or ()))
        try:
            server = Server(config.host, config.port, token, config.tls, coordinator)
        except BaseException:
            coordinator.stop()
            raise
        self._running = server, coordinator, token
        self._stopping = weakref.finalize(self, _stop, server, coordinator)
        watching.tell(self.watched)

    @property
    def target(self) -> str:
        """The address for workers and consumers, `protocol://token@host:port`. Anyone who has it can connect.

        Raises:
          FailedPreconditionError: if the dispatcher was not started.
        """
        return self._address.target

    @property
    def _address(self) -> Address:
        server, _, token = self._started()
        return Address(self._config.host, server.port, token)

    def _num_workers(self) -> int:
        """The number of registered workers, as in the reference."""
        return self._started()[1].num_workers

    @property
    def watched(self) -> watching.Watched:
        """The dispatcher for views.

        Raises:
          FailedPreconditionError: if the dispatcher was not started.
        """
        return watching.Watched(self._started()[1], self._address)

    def join(self, timeout_seconds: float | None = None) -> None:
        """Waits until another thread stops the dispatcher, or until the timeout; None has no limit."""
        server = self._started()[0]
        if timeout_seconds is not None:
            server.join(timeout_seconds)
            return
        while not server.join(_JOIN_SECONDS):
            pass

    def stop(self) -> None:
        """Ends the dispatcher and every connection to it. Idempotent."""
        if self._stopping is not None:
            self._stopping()

    def _stop(self) -> None:
        """As in the reference."""
        self.stop()

    def __enter__(self) -> DispatchServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        if self._running is None:
            return "<DispatchServer, not started>"
        return f"<DispatchServer {self._address}, {self._num_workers()} workers>"

    def _started(self) -> tuple[Server, Coordinator, str]:
        if self._running is None:
            raise FailedPreconditionError("this DispatchServer was not started; call start() first")
        return self._running


def _stop(server: Server, coordinator: Coordinator) -> None:
    coordinator.stop()
    server.stop()


def _work_dir(path: Any) -> str:
    folder = absolute(path)
    try:
        with storage(folder):
            os.makedirs(os.path.join(folder, "datasets"), mode=0o700, exist_ok=True)
            os.chmod(folder, 0o700)
    except OSError as error:
        if isinstance(error, FileExistsError | NotADirectoryError):
            raise NotFoundError(f"work_dir {folder!r} is not a folder: {error}") from error
        raise
    return folder


def _kept_token(work_dir: str | None) -> str:
    """The token of an earlier dispatcher, or a new one."""
    if work_dir is None:
        return secrets.token_urlsafe(24)
    path = os.path.join(work_dir, "token")
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except FileNotFoundError:
        token = secrets.token_urlsafe(24)
        with storage(path):
            replace_file(path, token.encode())
        os.chmod(path, 0o600)
        return token
