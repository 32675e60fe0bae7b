"""All workers of a cluster, held by this driver: sends to them, receives, and passes messages to the groups.

Any thread may submit; under `lock`, one at a time submits, and one at a time receives. The waiting thread itself
receives, because waking up another one would cost as much as a whole step.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from workbench import forks
from workbench.errors import CaptureError, ClusterClosed
from workbench.runtime.comm.codec import Codec
from workbench.runtime.comm.links import LinkClosed, Wakeup, readable
from workbench.runtime.comm.messages import (
    DONE,
    MERGE,
    OUTPUT,
    RELEASE,
    REPLY,
    SHIP,
    STRUCTURE,
    UNSHIP,
    Message,
)
from workbench.runtime.deploy.worker_link import EndKind, WorkerEnd, WorkerLink
from workbench.runtime.driver.gang.control_requests import UrgentQuestions
from workbench.runtime.driver.gang.driver_lock import DriverLock
from workbench.runtime.driver.gang.flight_reader import Flights
from workbench.runtime.driver.gang.interrupts import DeferredInterrupt
from workbench.runtime.driver.gang.observer import Observer
from workbench.runtime.driver.gang.requests import CHECK_SECONDS, Requests
from workbench.runtime.driver.gang.worker_events import printed, show
from workbench.runtime.shipping.function_registry import Shipping
from workbench.runtime.user_code.notebook_cells import with_cell_names
from workbench.telemetry.events import Event

if TYPE_CHECKING:
    from workbench.runtime.deploy.health import Health

_UNUSED = 64  # number of unused functions that workers drop at once


G = TypeVar("G", bound=Observer)


class Gang(Generic[G]):
    """The workers of a cluster while this driver holds them.

    Attributes:
      workers: Name -> link, in the cluster's order (host by host).
      shipping: Functions and structures known by id.
      released: (serial, leaf) of values without handles; the next message releases them.
      abandoned: Groups of collected strategies; closed when nothing else is in progress.
      groups: group id -> group.
      run_id: The run's name in telemetry and errors.
      cluster: The `Cluster` of these workers; untyped, because that class is built on this one.
      requests: Questions that are answered in order, after the work that was sent before them.
      urgent: Questions that are answered even while another thread waits for a step and holds `lock`.
      minimum_replicas: The number of replicas with which a group continues while others are missing; 0 for never.
      lock: Held while sending and receiving; this process's replica threads cannot take it.
      interrupts: Entered while sending and receiving, so that Ctrl-C leaves neither half done.
    """

    def __init__(
        self,
        workers: list[WorkerLink],
        *,
        run_id: str,
        codec: Codec,
        health: Health,
    ) -> None:
        """Takes over connected workers."""
        self.workers = {worker.name: worker for worker in workers}
        self.run_id = run_id
        self.shipping = Shipping(codec)
        self.released: deque[tuple[int, int]] = deque()
        self.abandoned: deque[G] = deque()
        self.groups: dict[int, G] = {}
        self.cluster: Any = None
        self.requests = Requests(self)
        self.urgent = UrgentQuestions()
        self.lock = DriverLock() if codec.by_reference else forks.lock(threading.RLock())
        self.wakeup = Wakeup()
        self.interrupts = DeferredInterrupt(self.wakeup)
        self.minimum_replicas = 0
        self.closed = False
        self.notify: Callable[[Event], object] = lambda event: None
        self.flights = Flights()
        self.perished: Callable[[WorkerLink], object] = lambda worker: None
        self.heard: Callable[[WorkerLink], object] = lambda worker: None
        self.lost: Callable[[WorkerLink], object] = lambda worker: None
        self._health = health
        self._serials = itertools.count(1)
        self._owners: dict[int, G] = {}
        self._afterwards: deque[Callable[[], None]] = deque()
        self._suspects: deque[WorkerLink] = deque()
        self._poll = select.poll()
        self._by_descriptor: dict[int, WorkerLink] = {}
        self._of_process = 0  # in a forked child, the process that owns these workers
        self._poll.register(self.wakeup.fileno(), select.POLLIN)
        for worker in workers:
            self.watch(worker)
        forks.tell(self)

    def disown(self) -> None:
        """See `forks.tell`: the workers belong to the parent, and their links were released."""
        if not self.closed:
            self.closed, self._of_process = True, os.getppid()
            self.flights.close()

    def watch(self, worker: WorkerLink) -> None:
        """Starts to receive messages of this worker."""
        self.workers[worker.name] = worker
        descriptor = worker.steps.fileno()
        self._by_descriptor[descriptor] = worker
        self._poll.register(descriptor, select.POLLIN)

    # -- sending
    # ------------------------------------------------------------------------------------------------

    def next_serial(self) -> int:
        """The number of the next message that creates values."""
        return next(self._serials)

    def post(self, worker: WorkerLink, message: Message) -> None:
        """Sends on the ordered link; marks a worker that is gone as lost."""
        if worker.lost:
            return
        try:
            worker.steps.send(message)
        except LinkClosed:
            self.lose(worker)

    def ship(self, worker: WorkerLink, object_id: Any) -> None:
        """Ensures that `worker` has an object before a message refers to it."""
        if type(object_id) is int and object_id not in worker.shipped:
            worker.shipped.add(object_id)
            self.post(worker, (SHIP, object_id, self.shipping.pickled[object_id]))

    def submit(
        self,
        owner: G,
        serial: int,
        message: Message,
        *,
        names: Sequence[str],
        objects: tuple[Any, ...],
    ) -> list[WorkerLink]:
        """Sends a step to all workers of its group, pickled once for all.

        Args:
          owner: Gets the events of the step, until `ended`.
          serial: Number of the step.
          message: What to send.
          names: The workers.
          objects: Ids of functions and structures that it refers to.

        Returns:
          The workers that had already been lost.
        """
        self._owners[serial] = owner
        if len(self.shipping.unused) >= _UNUSED:
            self._unship()
        body = None if self.shipping.codec.by_reference else pickle.dumps(message, protocol=5)
        lost = []
        for name in names:
            worker = self.workers[name]
            for object_id in objects:
                if object_id not in worker.shipped:
                    self.ship(worker, object_id)
            try:
                if worker.lost:
                    lost.append(worker)
                else:
                    worker.steps.send(message, body)
            except LinkClosed:
                self.lose(worker)
        return lost

    def ended(self, serial: int) -> None:
        """Ignores further messages about this step."""
        self._owners.pop(serial, None)

    def afterwards(self, call: Callable[[], None]) -> None:
        """Schedules `call` for when all arrived messages are handled; it may itself receive."""
        self._afterwards.append(call)

    def _unship(self) -> None:
        """Makes workers drop unreferenced functions; all steps that ran them have ended."""
        unused = self.shipping.unused
        ids = {unused.popleft() for _ in range(len(unused))}
        for worker in self.living():
            if known := worker.shipped & ids:
                worker.shipped -= known
                self.post(worker, (UNSHIP, list(known)))

    def living(self) -> list[WorkerLink]:
        """The workers that are not lost."""
        return [worker for worker in list(self.workers.values()) if not worker.lost]

    def take_released(self) -> list[tuple[int, int]]:
        """Takes the values that the next message frees."""
        released = self.released
        if not released:
            return []
        return [released.popleft() for _ in range(len(released))]

    def tidy(self) -> None:
        """Frees unreferenced objects, without waiting for the lock, because the watching thread calls it."""
        if not (self.released or self.abandoned) or not self.lock.acquire(blocking=False):
            return
        try:
            if self.closed:
                return
            ids = self.take_released()
            for worker in list(self.workers.values()) if ids else []:
                self.post(worker, (RELEASE, ids))
            for _ in range(len(self.abandoned)):
                group = self.abandoned.popleft()
                if group.in_flight:
                    self.abandoned.append(group)  # its last steps have not ended yet
                    self.receive(0.0)
                else:
                    group.close()
        except ClusterClosed:
            pass  # the gang has just closed, so nothing is left to free
        finally:
            self.lock.release()

    def signal(self, worker: WorkerLink, message: Message) -> None:
        """Sends on the urgent link, which workers read while replicas run; marks a worker that is gone as lost."""
        if not worker.lost:
            try:
                worker.signals.send(message)
            except LinkClosed:
                self.lose(worker)

    # -- waiting
    # ------------------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raises ClusterClosed if the cluster is closed, or in a forked child of its process."""
        if self._of_process:
            raise ClusterClosed(
                f"this strategy's cluster belongs to process {self._of_process}, and this is process {os.getpid()}, "
                f"forked off it: use the cluster there, or give this process workers of its own with wb.connect(...)"
            )
        if self.closed:
            raise ClusterClosed(
                "this strategy's cluster was closed: connect again with wb.connect(...) and make the strategy again"
            )

    def receive_some(self) -> None:
        """Receives messages for a moment."""
        with self.lock, self.interrupts:
            self.receive(CHECK_SECONDS)

    def receive(self, timeout_seconds: float) -> None:
        """Waits for messages and handles them; the caller holds `lock` and has entered `interrupts`.

        Raises:
          ClusterClosed: if the gang is closed, by another thread.
        """
        self.check_open()
        read_already = [worker for worker in self._by_descriptor.values() if worker.steps.pending]
        for worker in read_already:  # messages that were read while sending; no descriptor announces these
            self._receive_from(worker)
        for descriptor, _ in self._poll.poll(0 if read_already else timeout_seconds * 1000):
            worker_there = self._by_descriptor.get(descriptor)
            if worker_there is None:
                self.wakeup.clear()
                self._look()
            else:
                self._receive_from(worker_there)
        # Last, because a merge function itself receives, and must not overtake messages received here.
        while self._afterwards:
            self._afterwards.popleft()()

    def _receive_from(self, worker: WorkerLink) -> None:
        try:
            messages = worker.steps.receive()
        except LinkClosed:
            self.lose(worker)
            return
        rest = iter(messages)
        try:
            for message in rest:
                self._handle(worker, message)
        finally:  # after an error, such as a listener's, the later messages still count
            for message in rest:
                self._handle(worker, message)

    def _look(self) -> None:
        """Handles workers that are gone or given up, and impossible merges."""
        while self._suspects:
            worker = self._suspects.popleft()
            self._hear_out(worker)
            self.lose(worker)
        for group in list(self.groups.values()):
            group.look()

    def _hear_out(self, worker: WorkerLink) -> None:
        """Handles messages that a worker sent before its end, because another link may have reported the end first."""
        steps = worker.steps
        while not (worker.lost or self.closed) and (steps.pending or readable(steps.fileno(), 0.0)):
            self._receive_from(worker)

    def _handle(self, worker: WorkerLink, message: Message) -> None:
        kind = message[0]
        if kind == DONE:
            owner = self._owners.get(message[1])
            if owner is not None:  # otherwise the step was given up
                owner.done(worker, message[1], message[2])
        elif kind == STRUCTURE:
            worker.structures[message[1]] = self._structure(message[2])
        elif kind == OUTPUT:
            _, rank, stream, line = message
            if stream == "stderr":  # warnings mention lines of cells
                line = with_cell_names(line)
            show(rank, stream, line)
            self.notify(printed(worker, rank, stream, line))
        elif kind == MERGE:
            owner = self._owners.get(message[1])
            if owner is not None:
                owner.merge_asked(message[1], message[2], message[3:5])
        elif kind == REPLY:
            self.requests.arrived(message[1], message[2], message[3])

    def _structure(self, data: Any) -> Any:
        """The structure of a result; or the error, if this process does not have its classes."""
        try:
            return self.shipping.codec.decode(data, "the structure of a result")
        except CaptureError as error:
            return error

    # -- losing workers
    # -----------------------------------------------------------------------------------------

    def examine(self, worker: WorkerLink) -> None:
        """Gives up and ends a worker that has been silent for too long. For the watching thread."""
        end = self._health.examine(worker)
        if end is not None:
            self.suspect(worker, end)
            self._health.give_up(worker)

    def beaten(self, worker: WorkerLink) -> None:
        """Notes a worker's heartbeat, which may show that a merge is impossible. For the watching thread."""
        self.heard(worker)
        if any(group.merging for group in list(self.groups.values())):
            self.wakeup.set()

    def suspect(self, worker: WorkerLink, end: WorkerEnd | None = None) -> None:
        """Notes from another thread that a worker is gone or given up, and wakes the waiting thread."""
        worker.doomed = worker.doomed or end
        self._suspects.append(worker)
        self.wakeup.set()
        if self.lock.acquire(blocking=False):
            try:
                self._look()
            finally:
                self.lock.release()

    def lose(self, worker: WorkerLink) -> None:
        """Marks a worker as gone: its steps fail, and the other replicas of its groups wake."""
        with self.lock:
            if worker.lost or self.closed:
                return
            end = self._health.end_of(worker)
            worker.lost = end = worker.doomed or end
            worker.lost_at = time.time()
            # The loss itself must be handled even if its last records are damaged.
            with contextlib.suppress(Exception):
                self.perished(worker)
            if not worker.doomed:
                # If the process still exists, it must drop the driver's state.
                self._health.give_up(worker)
            descriptor = worker.steps.fileno()
            if self._by_descriptor.get(descriptor) is worker:
                del self._by_descriptor[descriptor]
                self._poll.unregister(descriptor)
            worker.close()
            owners = dict.fromkeys((*self.groups.values(), *self._owners.values()))
            for group in owners:
                group.worker_lost(worker, end)
            self.lost(worker)

    def kill(
        self, worker: WorkerLink, why: str = "was ended because it did not stop when interrupted"
    ) -> None:
        """Ends a worker that cannot be stopped in another way; its steps fail."""
        worker.doomed = WorkerEnd(EndKind.ENDED, why)
        self._health.kill(worker)
        self.lose(worker)

    def replace(self, name: str) -> None:
        """Replaces a lost worker by another one, such as the restarted one.

        Raises:
          ReplicaLost: if there is none; at once if there is no sign that one will come.
        """
        with self.interrupts.lifted():
            worker = self._health.replacement(self.workers[name])
        self.watch(worker)

    def is_back(self, name: str, settled_seconds: float) -> bool:
        """Whether a lost worker has a successor that has answered for at least `settled_seconds`."""
        return self._health.is_back(self.workers[name], settled_seconds)

    def close(self) -> None:
        """Releases the workers; threads that wait for a step get `ClusterClosed`. Idempotent."""
        self.closed = True  # before taking the lock, which a step holds until it ends or sees this
        self.wakeup.set()
        with self.lock:
            for worker in self.workers.values():
                worker.close()
            self.wakeup.close()
            self.flights.close()
