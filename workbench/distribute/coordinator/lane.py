"""Lane: a thread of the notebook that keeps one worker busy."""

from __future__ import annotations

import contextlib
import pickle
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from workbench import tree
from workbench.backends.users_line import warn
from workbench.distribute.coordinator.call_queue import Call, CallQueue
from workbench.distribute.coordinator.remote_value import RemoteValue
from workbench.distribute.servers.overview import WorkerFunctions
from workbench.distribute.servers.recent_rate import RecentRate
from workbench.errors import CaptureError, ClusterClosed, UnavailableError, WorkbenchError
from workbench.runtime.comm.failure_report import FailureReport, rebuild
from workbench.runtime.comm.messages import dumps
from workbench.runtime.services.frames import Fields, raised_by
from workbench.runtime.services.hosted import HostedService
from workbench.runtime.services.service import Connection

if TYPE_CHECKING:
    from workbench.distribute.coordinator.shipment import Shipment

_MOST_CALLS: Final = 64
_BATCH_SECONDS: Final = 0.002
_CHECK_SECONDS: Final = 1.0
_AGAIN_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.02
_CONNECT_SECONDS: Final = 10.0


class Lane:
    """Takes calls, sends them to its worker, and receives their results.

    Short functions travel together, as many as take about two milliseconds, so that waiting for the first of them
    takes hardly longer.

    Attributes:
      worker: Number of the worker.
      service: The worker's process.
      calls: Number of calls that it has run.
    """

    def __init__(
        self, worker: int, service: HostedService, queue: CallQueue, shipment: Shipment, lanes: int
    ) -> None:
        self.worker = worker
        self.service = service
        self.calls = 0
        self._queue = queue
        self._shipment = shipment
        self._lanes = lanes
        self._rate = RecentRate()
        # Name of the first one, number of calls, start time.
        self._running: tuple[str, int, float] | None = None
        self._known: set[Any] = set()
        self._connection: Connection | None = None
        self._seen = service.address
        self._usual_seconds = _BATCH_SECONDS
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"wb-{service.name}-lane", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while not self._closed.is_set():
            most = max(1, min(_MOST_CALLS, int(_BATCH_SECONDS / self._usual_seconds)))
            calls = self._queue.take(most, self._lanes)
            if not calls:
                break
            try:
                self._queue.ended(self._ran(calls))
            except OSError as error:
                self._drop()
                self._queue.give_back(calls, self._loss(error))
                self._bring_back()
            except BaseException as error:  # nothing may end this thread, or calls would wait forever
                self._drop()
                self._queue.ended([(call, error) for call in calls])
        self._drop()

    def _ran(self, calls: list[Call]) -> list[tuple[Call, bytes | BaseException]]:
        """Runs calls on the worker; returns the outcome of each that has ended."""
        ends: list[tuple[Call, bytes | BaseException]] = []
        sent: list[tuple[Call, bytes]] = []
        for call in calls:
            try:
                sent.append((call, _arguments(call)))
            except Exception as error:
                ends.append((call, error))
        if not sent:
            return ends
        self._running = sent[0][0].function.name, len(sent), time.monotonic()
        try:
            reply, answers = self._exchange(sent)
        finally:
            self._running = None
        self._rate.add(len(answers))
        self._usual_seconds = max(1e-6, reply["seconds"] / len(answers))
        unreached: dict[int, list[Call]] = {}
        for (call, _), end in zip(sent[: len(answers)], answers, strict=True):
            self.calls += 1
            if type(end) is int:
                unreached.setdefault(end, []).append(call)
            elif isinstance(end, FailureReport):
                ends.append((call, self._error(call, end)))
            else:
                ends.append((call, end))
        if len(answers) < len(sent):
            self._queue.ended(ends, [call for call, _ in sent[len(answers) :]])
            ends = []
        for server, lost in unreached.items():
            self._queue.ended(ends)
            ends = []
            self._restore(server, lost)
        return ends

    def _exchange(self, sent: list[tuple[Call, bytes]]) -> tuple[Fields, list[Any]]:
        if self._connection is None:
            self._seen = self.service.address
            self._connection = Connection(self._seen, self.service.tls())
            self._connection.watch_peer()
            self._known = set()
        request = self._shipment.request([call for call, _ in sent], self._known)
        request["calls"] = [
            (call.number, call.function.function, data, call.observation) for call, data in sent
        ]
        body = np.frombuffer(pickle.dumps(request, protocol=5), np.uint8)
        self._connection.send({"method": "run"}, [body])
        while not self._connection.wait(_CHECK_SECONDS):
            if self._closed.is_set():
                raise ConnectionError("the coordinator was closed")
            if gone := self.service.gone:
                raise ConnectionError(gone)
        reply, arrays = self._connection.receive()
        if "error" in reply:
            raise raised_by(reply["error"])
        return reply, pickle.loads(arrays[0].data)

    def _error(self, call: Call, failure: FailureReport) -> WorkbenchError:
        where = f"worker {self.worker}, in {call.function.name}"
        return rebuild(failure, where=where, worker=self.service.device.worker)

    def _restore(self, server: int, calls: list[Call]) -> None:
        """Called when the worker could not reach a parameter server; the calls run again once the server is back."""
        try:
            self._shipment.restore(server)
        except WorkbenchError as error:
            self._queue.ended([(call, error) for call in calls])
        else:
            self._queue.give_back(calls, f"parameter server {server} was lost")

    def _loss(self, error: OSError) -> str:
        """What happened to the worker; at first only the end of its connection is known."""
        deadline = time.monotonic() + _CHECK_SECONDS
        while not (gone := self.service.gone) and time.monotonic() < deadline:
            if self._closed.wait(_PAUSE_SECONDS):
                break
        return f"worker {self.worker} on {self.service.device.host} {gone or f'was lost ({error})'}"

    def _bring_back(self) -> None:
        """Waits until the worker or its replacement is available."""
        while not self._closed.is_set():
            try:
                self.service.restored(self._seen)
            except ClusterClosed:
                return
            except WorkbenchError as error:
                down = UnavailableError(f"worker {self.worker} is not available: {error}")
                self._queue.lane_down(self.worker, self._lanes, down)
                self._closed.wait(_AGAIN_SECONDS)
            else:
                self._queue.lane_up(self.worker)
                return

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def asked_to_flush_dumps(self, what: Fields, deadline: float) -> Connection:
        """Asks the worker to write its data of a dump.

        Args:
          what: Arguments of `session.flush_here`.
          deadline: How long to try to reach the worker, a `time.monotonic` time.

        Returns:
          A connection on which it replies when it has written the data.

        Raises:
          OSError: if it cannot be reached.
        """
        left = min(_CONNECT_SECONDS, max(0.0, deadline - time.monotonic()))
        connection = Connection(self.service.address, self.service.tls(), left)
        with contextlib.ExitStack() as undo:
            undo.callback(connection.close)
            connection.send({"method": "flush_dumps", **what})
            undo.pop_all()
        return connection

    def warn_of_dump(self, root: str, error: Exception) -> None:
        """Warns that the worker has not written its data of the dump to `root`."""
        warn(
            f"worker {self.worker} on {self.service.device.host} has not written what it kept of the dump into "
            f"{root!r}: {error}",
            RuntimeWarning,
        )

    def close(self, timeout_seconds: float) -> None:
        """Ends the thread; the queue must be closed."""
        self._closed.set()
        self.service.stop_waiting()
        connection = self._connection
        if connection is not None:
            connection.wake()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout_seconds)

    def now(self) -> WorkerFunctions:
        """What the worker is doing. Any thread."""
        gone = self.service.gone
        name, together, since = self._running or ("", 0, time.monotonic())
        state = "stopped" if self._closed.is_set() else "lost" if gone else "live"
        return WorkerFunctions(
            name=self.service.name,
            host=self.service.device.host,
            state=state,
            detail=gone,
            restarts=self.service.restarts,
            done=self.calls,
            functions_per_second=round(self._rate.per_second, 1),
            running=name,
            running_together=together,
            running_seconds=round(time.monotonic() - since, 1),
        )


def _arguments(call: Call) -> bytes:
    """The pickled arguments. They are pickled only here if they contain results of other calls.

    Raises:
      CaptureError: if they cannot be pickled.
    """
    if type(call.arguments) is bytes:
        return call.arguments
    return pickled_arguments(
        call.function.name,
        tree.map(lambda leaf: leaf.fetch() if type(leaf) is RemoteValue else leaf, call.arguments),
    )


def pickled_arguments(name: str, arguments: Any) -> bytes:
    """Pickles arguments for a worker.

    Raises:
      CaptureError: if they cannot travel.
    """
    try:
        return dumps(arguments)
    except Exception as error:
        raise CaptureError(f"the arguments of {name} cannot travel to a worker: {error}") from error
