"""The worker's side of a gang: holds the links to the driver and the executors of its devices."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from workbench.communicators import Bootstrap, Gpus, Member, Topology
from workbench.communicators.core.result_pool import IDLE_SECONDS
from workbench.communicators.core.tcp import Tls
from workbench.errors import ClusterClosed, WorkbenchError
from workbench.runtime.comm.failure_report import report
from workbench.runtime.comm.links import Link, LinkClosed, readable
from workbench.runtime.comm.messages import (
    CONNECT,
    JOIN,
    LEAVE,
    OUTPUT,
    REPLY,
    ROLLBACK,
    SHIP,
    STRUCTURE,
    UNSHIP,
    JoinGroup,
    Message,
)
from workbench.runtime.process import gpus
from workbench.runtime.replica import interruptible_sleep, started_threads
from workbench.runtime.replica.env import ReplicaEnv, current_env
from workbench.runtime.replica.executor import DeviceExecutor
from workbench.runtime.replica.local_group import LocalGroup
from workbench.runtime.replica.object_cache import ShippedObjects
from workbench.runtime.replica.output import ReplicaOutput
from workbench.runtime.replica.replica_store import ReplicaStore
from workbench.runtime.traced.executor import TracedExecutor
from workbench.runtime.worker.completions import Completions
from workbench.runtime.worker.host_mode import Eager, HostMode
from workbench.runtime.worker.rings import Rings
from workbench.runtime.worker.step_reports import StepTallies

CONNECT_DEADLINE_SECONDS = 30.0


class ReplicaHost:
    """Serves one driver at a time, on a worker with `device_count` devices.

    With one device and a stream, the reading thread itself runs the steps, which saves a hand-over; otherwise each
    device has its own thread.

    Attributes:
      codec: How values travel to the driver, which may be in this process.
      objects: Functions and structures that the driver sent.
      groups: group id -> this host's part of it.
      rings: The rings for its replicas' records.
      executors: One per device.
      mode: How steps run: `Eager`, or `TracedExecutor` on workers with TPUs.
      poisoned: Whether a traced program hangs, which only ending the process stops.
      failure: Why a thread of this host has failed, else "".
      stores: (group id, device index) -> the store of the replica there; it survives the rebuilding of the group.
      tallies: The progress of its replicas in each step.
    """

    def __init__(
        self,
        steps: Link,
        *,
        device_count: int,
        device_kind: str = "CPU",
        host: str,
        worker: str,
        bind_host: str = "127.0.0.1",
        tls: Tls | None = None,
    ) -> None:
        """Other hosts reach this one's replicas at `bind_host`, with `tls`."""
        self.codec = steps.codec
        self.objects = ShippedObjects()
        self.groups: dict[int, LocalGroup] = {}
        self.rings = Rings(outlive=not self.codec.by_reference)
        self.host = host
        self.worker = worker
        self.failure = ""
        self._steps = steps
        self._completions = Completions(steps)
        self._bind_host = bind_host
        self._tls = tls
        self._device_count = device_count
        self._device_kind = device_kind
        self._on_device: set[int] = set()  # threads that have made their device current
        self.stores: dict[tuple[int, int], ReplicaStore] = {}
        self._structures: dict[Any, int] = {}
        self._structures_lock = threading.Lock()
        self.tallies = StepTallies(self._completions)
        self._closed = threading.Event()
        self._routed: list[tuple[str, ReplicaOutput]] = []
        self._queues: list[queue.SimpleQueue[Message | None]] = []
        self.executors: list[DeviceExecutor] = []
        self.poisoned = False
        self.mode: HostMode = TracedExecutor(self, device_count) if device_kind == "TPU" else Eager()

    def start(self) -> None:
        """Starts the threads that serve the steps link."""
        interruptible_sleep.install(self)
        started_threads.install(self)
        if self._device_count == 1 and not self.codec.by_reference and self.mode.by_devices:
            executor = DeviceExecutor(self, 0, self._next_from_link(), self.mode.values_of(0))
            self.executors.append(executor)
            self._spawn(executor.loop, "workbench-replica")
            return
        for index in range(self._device_count):
            messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
            self._queues.append(messages)
            receive = _next_from_queue(messages, self.mode.carried_out)
            executor = DeviceExecutor(self, index, receive, self.mode.values_of(index))
            self.executors.append(executor)
            self._spawn(executor.loop, f"workbench-replica-{index}")
        if not self.codec.by_reference:
            self._spawn(self._read, "workbench-steps")

    def _spawn(self, loop: Callable[[], None], name: str) -> None:
        def guarded() -> None:
            try:
                loop()
            except LinkClosed:
                pass
            except BaseException as error:  # a bug in workbench, which the driver must report
                self.failure = f"{type(error).__name__}: {error}"
                raise
            finally:
                self.close()

        threading.Thread(target=guarded, name=name, daemon=True).start()

    def _next_from_link(self) -> Callable[[], Message]:
        arrived: list[Message] = []

        def next_message() -> Message:
            if not arrived:
                self._completions.flush()  # before waiting, because the driver may wait for them
                self._completions.more_queued = False
                while not arrived:
                    arrived.extend(reversed(self._receive()))
            message = arrived.pop()
            self._completions.more_queued = bool(arrived)
            return message

        return next_message

    def _receive(self) -> list[Message]:
        self.mode.before_reading(self._steps)
        messages = self._steps.receive()
        if not messages:
            readable(self._steps.fileno(), 0.05)
        return messages

    def _read(self) -> None:
        while True:
            for message in self._receive():
                self.dispatch(message)

    def dispatch(self, message: Message) -> None:
        """Passes a message to the device threads that it concerns, or handles it."""
        if self.mode.take(message):
            return
        if message[0] in (JOIN, CONNECT) and self.codec.by_reference:
            # Connecting waits for the peers, which the sender of this message may not have informed yet.
            threading.Thread(target=self.handle, args=(message,), name="workbench-join", daemon=True).start()
        elif message[0] in (JOIN, CONNECT, SHIP, UNSHIP, LEAVE, ROLLBACK):
            self.handle(message)
        else:
            self.to_devices(message)

    def to_devices(self, message: Message) -> None:
        """Puts a message into the queue of every device."""
        self.mode.handed_out(len(self._queues))
        for messages in self._queues:
            messages.put(message)

    def end_process(self) -> None:
        """Ends this worker's process, as a last resort; Dask restarts it."""
        os._exit(gpus.STUCK_EXIT_CODE)

    def handle(self, message: Message) -> None:
        """Executes a message that concerns the host, not one device."""
        match message[0]:
            case kind if kind == SHIP:
                self.objects.add(message[1], message[2])
            case kind if kind == UNSHIP:
                self.objects.drop(message[1])
            case kind if kind == JOIN:
                self._reply(message[1], lambda: self._join(message[2]))
            case kind if kind == CONNECT:
                self._reply(message[1], lambda: self._connect(message[2], message[3]))
            case kind if kind == LEAVE:
                self._leave(message[1], forget=True)
            case kind if kind == ROLLBACK:
                self._rollback(message[1], message[2])
            case kind:
                raise WorkbenchError(f"message of unknown kind {kind}: driver and worker differ in version")

    def _rollback(self, group_id: int, serial: int) -> None:
        # The replica threads are idle: the driver undoes steps only after all of them have ended.
        # Another group may end meanwhile, by garbage collection.
        for (group, _), store in self.stores.copy().items():
            if group == group_id:
                store.rollback(serial)

    def send(self, message: Message) -> None:
        """Sends to the driver; the reading thread notices if the driver is gone."""
        self._completions.send(message)

    def send_all(self, messages: list[Message]) -> None:
        """As `send`, for several messages at once."""
        self._completions.send_all(messages)

    def flush(self) -> None:
        """Sends delayed completions. For the signals thread, so that a long step does not delay those before it."""
        self._completions.flush()

    def structure_key(self, spec: Any) -> int:
        """The driver's number for the structure of a result."""
        key = self._structures.get(spec)
        if key is None:
            with self._structures_lock:
                key = self._structures.get(spec)
                if key is None:
                    key = len(self._structures)
                    # Sent before any thread can use the key, so that it precedes every DONE that does.
                    self.send((STRUCTURE, key, self.codec.encode(spec)))
                    self._structures[spec] = key
        return key

    def route_output(self) -> None:
        """Sends the output of replicas in this process to the driver from now on; other output is unchanged."""

        def write_line(rank: int, stream: str, line: str) -> None:
            env = current_env()
            group = None if env is None else self.groups.get(env.group_id)
            with contextlib.nullcontext() if group is None else group.shielded(rank):
                self.send((OUTPUT, rank, stream, line))

        for stream in ("stdout", "stderr"):
            current = getattr(sys, stream)
            original = current.original if isinstance(current, ReplicaOutput) else current
            setattr(sys, stream, ReplicaOutput(original, stream, write_line))
            self._routed.append((stream, getattr(sys, stream)))

    def _restore_output(self) -> None:
        for stream, routed in self._routed:
            if getattr(sys, stream) is routed:
                setattr(sys, stream, routed.original)

    def open_groups(self) -> dict[int, LocalGroup]:
        """A copy of the groups that have not ended, by their numbers; any thread may iterate over it.

        Listing the items would allocate objects. With each, Python up to 3.11 may collect garbage, and with it a
        strategy, whose end changes `groups`. The same holds for what groups keep by rank.
        """
        return self.groups.copy()

    def give_back(self) -> None:
        """Frees collectives' memory that no replica here has used for `IDLE_SECONDS`. Any thread."""
        before = time.monotonic() - IDLE_SECONDS
        for group in self.open_groups().values():
            for env in list(group.envs.values()):
                env.communicator.give_back(before)

    def abort(self, group_id: int, epoch: int, serial: int, reason: BaseException) -> None:
        """Stops the group's steps of `epoch`: waiting replicas wake, steps after `serial` are skipped. Any thread.

        Args:
          group_id: Number of the group.
          epoch: How often the group was connected; earlier ones are ignored.
          serial: Number of the step that failed.
          reason: The error that waiting replicas get.
        """
        group = self.groups.get(group_id)
        if group is None or epoch < group.epoch:
            return
        group.aborted = True
        group.failed_serial = min(group.failed_serial, serial)
        for env in list(group.envs.values()):
            env.communicator.abort(reason)

    def holds(self) -> int:
        """Number of values kept for the driver's handles."""
        return self.mode.held() + sum(executor.holds() for executor in self.executors)

    def close(self) -> None:
        """Called when the driver is gone: wakes peers, ends threads and drops all state. Idempotent."""
        if self._closed.is_set():
            return
        self._closed.set()
        # First, so that the driver knows that this worker is gone. Otherwise it would take the following failures for
        # the steps' own.
        self._steps.close()
        for messages in self._queues:
            messages.put(None)
        self._restore_output()
        interruptible_sleep.uninstall(self)
        started_threads.uninstall(self)
        gone = ClusterClosed("the notebook that drove this worker has disconnected")
        for group_id in self.open_groups():
            self.abort(group_id, 1 << 62, -1, gone)
            self._leave(group_id, forget=True)

    @property
    def closed(self) -> bool:
        """Whether the driver is gone."""
        return self._closed.is_set()

    def _reply(self, request: int, work: Callable[[], Any]) -> None:
        try:
            payload = work()
        except Exception as error:
            self.send((REPLY, request, False, report(-1, error)))
        else:
            self.send((REPLY, request, True, self.codec.encode(payload)))

    def _join(self, join: JoinGroup) -> Any:
        """First half of joining: returns this host's address for its peers."""
        self._leave(join.group, forget=False)
        return self.mode.open(join, self._bind_host, lambda: self._open(join))

    def _open(self, join: JoinGroup) -> Any:
        topology = Topology(
            tuple(Member(rank=rank, host=m.host, process=m.worker) for rank, m in enumerate(join.devices))
        )
        bootstrap = Bootstrap(
            topology,
            self.worker,
            generation=join.generation,
            group=join.name,
            rings=self.rings.of_replicas(join),
            bind_host=self._bind_host,
            tls=self._tls,
            gpus=self._gpus(join),
        )
        self.groups[join.group] = LocalGroup(
            join=join,
            rank_of_device={device: rank for rank, device in join.local.items()},
            devices=join.devices,
            bootstrap=bootstrap,
            epoch=join.epoch,
            busy=dict.fromkeys(join.local, 0),
        )
        return bootstrap.address

    def _connect(self, group_id: int, addresses: dict[str, Any]) -> int:
        """Second half of joining: connects to the peers and creates the replicas. Returns the process id."""
        known = self.mode.connect(group_id, addresses)
        if known is None:
            return os.getpid()
        group = self.groups[group_id]
        join = group.join
        communicators = group.bootstrap.connect(known, CONNECT_DEADLINE_SECONDS)
        for rank, device in join.local.items():
            group.envs[rank] = ReplicaEnv(
                rank,
                join.devices,
                group_id=group_id,
                generation=join.generation,
                communicator=communicators[rank],
                store=self.stores.setdefault((group_id, device), self.mode.new_store()),
                merge=self.executors[device].merge,
                keep=self.executors[device].keep,
            )
        self.mode.joined(group)
        if self.groups.get(group_id) is not group:
            # The driver has gone, and the thread that dropped the group may have missed these.
            for communicator in communicators.values():
                communicator.close()
        return os.getpid()

    def _gpus(self, join: JoinGroup) -> Gpus | None:
        if self._device_kind != "GPU" or not join.local:
            return None
        return gpus.of_group(join.local, self._device_count, in_driver=self.codec.by_reference)

    def use_device(self, index: int) -> None:
        """Makes a device's GPU current for the calling thread, which runs its replicas."""
        if self._device_kind == "GPU" and threading.get_ident() not in self._on_device:
            gpus.use(gpus.ordinal(index, self._device_count, in_driver=self.codec.by_reference))
            self._on_device.add(threading.get_ident())

    def _leave(self, group_id: int, *, forget: bool) -> None:
        group = self.groups.pop(group_id, None)
        if group is None:
            return
        for env in list(group.envs.values()):  # another thread may be connecting it
            env.communicator.close()
        group.bootstrap.close()
        if forget:
            self.mode.leave(group_id)
            for device in group.join.local.values():
                store = self.stores.pop((group_id, device), None)
                if store is not None:
                    store.end()
            self.rings.retire(group.join)


def _next_from_queue(
    messages: queue.SimpleQueue[Message | None], carried_out: Callable[[], None]
) -> Callable[[], Message]:
    taken = False

    def next_message() -> Message:
        nonlocal taken
        if taken:
            carried_out()
        taken = True
        message = messages.get()  # ends with None, from `ReplicaHost.close`
        if message is None:
            raise LinkClosed("the link is closed")
        return message

    return next_message
