"""`WorkerServer`, as tf.data.experimental.service.WorkerServer: computes lanes and delivers their elements."""

from __future__ import annotations

import secrets
import threading
import time
import weakref
from dataclasses import dataclass
from typing import Any

from workbench import forks
from workbench.arguments import count, flag
from workbench.data.service import local_workers
from workbench.data.service.address import PROTOCOL, Address, Tls, check_bind, check_protocol, positive_ms
from workbench.data.service.blocks import packed, size_of
from workbench.data.service.channel import Channel
from workbench.data.service.lanes.lane_task import LaneKey, LaneTask
from workbench.data.service.lanes.shelf import Request
from workbench.data.service.server import Server, Session, unknown
from workbench.data.service.wire import Fields
from workbench.errors import (
    CancelledError,
    FailedPreconditionError,
    WorkbenchError,
)

_REGISTER_SECONDS = 30.0
_STOP_SECONDS = 10.0
_JOIN_SECONDS = 3600.0
_LONGEST_WAIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """The configuration of a worker, as tf.data.experimental.service.WorkerConfig.

    The last three attributes are additions.

    Attributes:
      dispatcher_address: Address of the dispatcher, `token@host:port`, or `dispatcher.target`.
      worker_address: This worker's address for consumers, "host:port"; "%port%" is replaced by the port that it listens
        on.
      port: The port to listen on, 0 for a free one.
      protocol: "grpc".
      heartbeat_interval_ms: How often to report to the dispatcher; 1,000 by default.
      dispatcher_timeout_ms: How long to retry an unreachable dispatcher; an hour by default.
      host: The address to listen on; any address other than loopback needs `tls`.
      tls: Certificate and key, and the authority that verifies the dispatcher.
      cross_trainer_cache_size_bytes: Bytes that each lane of a job with `cross_trainer_cache` keeps; 1 GiB by default.
    """

    dispatcher_address: str
    worker_address: str | None = None
    port: int = 0
    protocol: str = PROTOCOL
    heartbeat_interval_ms: int | None = None
    dispatcher_timeout_ms: int | None = None
    host: str = "127.0.0.1"
    tls: Tls | None = None
    cross_trainer_cache_size_bytes: int = 1 << 30

    def __post_init__(self) -> None:
        size = count(self.cross_trainer_cache_size_bytes, "WorkerConfig(cross_trainer_cache_size_bytes)")
        object.__setattr__(self, "cross_trainer_cache_size_bytes", size)
        for name, default in {"heartbeat_interval_ms": 1_000, "dispatcher_timeout_ms": 3_600_000}.items():
            object.__setattr__(self, name, positive_ms(getattr(self, name), default, f"WorkerConfig({name})"))

    @property
    def heartbeat_seconds(self) -> float:
        """How often to report."""
        return (self.heartbeat_interval_ms or 0) / 1000

    @property
    def dispatcher_seconds(self) -> float:
        """How long to retry an unreachable dispatcher."""
        return (self.dispatcher_timeout_ms or 0) / 1000


class DataWorker:
    """Implements a worker: keeps the lanes that the dispatcher assigns, and answers consumers."""

    def __init__(self, config: WorkerConfig) -> None:
        """Starts and registers; must be stopped."""
        self._config = config
        self._dispatcher = Address.parse(config.dispatcher_address)
        self._id = secrets.token_hex(8)
        self._news = forks.lock(threading.Condition())
        self._lanes: dict[LaneKey, LaneTask] = {}
        self._elements = 0
        self._stopped = threading.Event()
        self._registered = threading.Event()
        self.failure: WorkbenchError | None = None
        self._server = Server(config.host, config.port, self._dispatcher.token, config.tls, self)
        template = config.worker_address or f"{config.host}:%port%"
        self.address = Address.parse(template.replace("%port%", str(self._server.port)))
        self._channel = self._new_channel()
        local_workers.add(self.address.place)
        self._thread = threading.Thread(target=self._report, name="wb-data-worker", daemon=True)
        self._thread.start()

    def wait_registered(self, timeout_seconds: float) -> None:
        """Returns once the dispatcher knows this worker.

        Raises:
          UnavailableError: if the dispatcher does not answer in time.
          FailedPreconditionError: if it rejects the token.
        """
        self._registered.wait(timeout_seconds)
        if self.failure is not None:
            raise self.failure
        if not self._registered.is_set():
            # The same words as for a failed request.
            Channel(self._dispatcher, self._config.tls, "dispatcher", 0.0).call("status", {})

    def _new_channel(self) -> Channel:
        return Channel(self._dispatcher, self._config.tls, "dispatcher", self._config.dispatcher_seconds)

    # The dispatcher

    def _report(self) -> None:
        wait = min(self._config.heartbeat_seconds, _LONGEST_WAIT_SECONDS)
        version, first = 0, 0.0
        while not self._stopped.is_set():
            fields: Fields = {"worker": self._id, "address": self.address.place, "elements": self._elements}
            try:
                reply, _ = self._channel.call(
                    "tasks", {**fields, "version": version, "wait": first}, wait_seconds=first
                )
            except CancelledError:
                return
            except WorkbenchError as error:
                self.failure = error
                self._registered.set()
                self._stopped.set()
                return
            version, first = reply["version"], wait
            self._take_up(reply["lanes"])
            self._registered.set()

    def _take_up(self, tasks: list[Fields]) -> None:
        wanted = {LaneKey.of(task): task for task in tasks}
        with self._news:
            gone = [
                self._lanes.pop(key)
                for key, lane in list(self._lanes.items())
                if key not in wanted or lane.failure is not None
            ]
            for key, task in wanted.items():
                if key not in self._lanes and not self._stopped.is_set():
                    self._lanes[key] = LaneTask(
                        task, self._new_channel, self._news, self._config.cross_trainer_cache_size_bytes
                    )
        for lane in gone:
            lane.stop()

    # Consumers

    def answer(self, method: str, fields: Fields, payload: bytes, session: Session) -> tuple[Fields, bytes]:
        """See `Answers.answer`."""
        if method != "fetch":
            raise unknown(method)
        session.who, session.job = fields["consumer"], fields["job"]
        request = Request.of(fields)
        with self._news:
            for each in self._lanes_of(session.job):
                each.shelf.free(request)
            self._news.notify_all()  # there may be room
            taken = self._taken(session.job, request, float(fields["wait"]))
            drained = [each.key for each in self._lanes_of(session.job) if each.is_drained(request)]
        if taken is None:
            return {"drained": [(key.lane, key.move) for key in drained]}, b""
        lane, start, runs = taken
        segments, data = packed(runs, lane.compression)
        count = sum(map(size_of, runs))
        self._elements += count
        return {"lane": lane.key.lane, "start": start, "count": count, "segments": segments}, data

    def _taken(
        self, job: str, request: Request, wait_seconds: float
    ) -> tuple[LaneTask, int, list[Any]] | None:
        """Elements of any lane of the job; waits up to `wait_seconds` if none is ready."""
        deadline = time.monotonic() + min(wait_seconds, _LONGEST_WAIT_SECONDS)
        while not self._stopped.is_set():
            lanes = self._lanes_of(job)
            for lane in lanes:
                taken = lane.shelf.take(request)
                if taken is not None:
                    self._news.notify_all()  # there may be room now
                    return lane, *taken
            left = deadline - time.monotonic()
            if left <= 0 or (lanes and all(lane.is_drained(request) for lane in lanes)):
                return None
            self._news.wait(left)
        return None

    def _lanes_of(self, job: str) -> list[LaneTask]:
        return [lane for key, lane in list(self._lanes.items()) if key.job == job]

    def ended(self, session: Session) -> None:
        """See `Answers.ended`."""
        with self._news:
            for lane in self._lanes_of(session.job):
                lane.shelf.give_back(session.who)
            self._news.notify_all()

    def stop(self) -> None:
        """Ends everything."""
        self._stopped.set()
        local_workers.discard(self.address.place)
        self._channel.close()
        with self._news:
            lanes = list(self._lanes.values())
            self._lanes.clear()
            self._news.notify_all()
        for lane in lanes:
            lane.stop()
        self._server.stop()
        if self._thread is not threading.current_thread():
            self._thread.join(_STOP_SECONDS)
        for lane in lanes:
            lane.join(_STOP_SECONDS)

    def join(self, timeout_seconds: float) -> bool:
        """Waits for the worker to stop; returns whether it did within this time."""
        return self._stopped.wait(timeout_seconds)


class WorkerServer:
    """A data worker in this process. It ends with `stop`, a `with` block, or when it is no longer referenced."""

    def __init__(self, config: WorkerConfig, start: bool = True) -> None:
        """Sets up a worker.

        Args:
          config: The configuration, with at least the address of the dispatcher.
          start: Whether to start it immediately.

        Raises:
          InvalidArgumentError: if the dispatcher's address is invalid.
          UnsafeBind: if it would listen on an address other than loopback without TLS.
          UnavailableError: if the dispatcher does not answer.
          FailedPreconditionError: if it rejects the token.
        """
        start = flag(start, "start")
        if not config.dispatcher_address:
            raise FailedPreconditionError(
                "a worker needs the dispatcher's address: WorkerConfig(dispatcher_address)"
            )
        Address.parse(config.dispatcher_address)
        check_protocol(config.protocol)
        check_bind(config.host, config.tls)
        self._config = config
        self._worker: DataWorker | None = None
        self._stopping: Any = None
        if start:
            self.start()

    def start(self) -> None:
        """Starts the worker, unless it is running; returns once the dispatcher knows it.

        Raises:
          UnavailableError: if the dispatcher does not answer.
          FailedPreconditionError: if it rejects the token.
        """
        if self._worker is not None:
            return
        worker = DataWorker(self._config)
        try:
            worker.wait_registered(min(self._config.dispatcher_seconds, _REGISTER_SECONDS))
        except BaseException:
            worker.stop()
            raise
        self._worker = worker
        self._stopping = weakref.finalize(self, worker.stop)

    @property
    def _address(self) -> str:
        """The address that consumers connect to, as in the reference."""
        return self._started().address.place

    def join(self, timeout_seconds: float | None = None) -> None:
        """Waits until another thread stops the worker, or until the timeout; None has no limit.

        Raises:
          UnavailableError: if the worker ended because the dispatcher was unreachable for dispatcher_timeout_ms.
        """
        worker = self._started()
        if timeout_seconds is not None:
            worker.join(timeout_seconds)
        else:
            while not worker.join(_JOIN_SECONDS):
                pass
        if worker.failure is not None:
            raise worker.failure

    def stop(self) -> None:
        """Ends the worker; its lanes go to others. Idempotent."""
        if self._stopping is not None:
            self._stopping()

    def _stop(self) -> None:
        """As in the reference."""
        self.stop()

    def __enter__(self) -> WorkerServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return "<WorkerServer, not started>" if self._worker is None else f"<WorkerServer {self._address}>"

    def _started(self) -> DataWorker:
        if self._worker is None:
            raise FailedPreconditionError("this WorkerServer was not started; call start() first")
        return self._worker
