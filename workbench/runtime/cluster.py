"""A cluster: the Dask workers that this process drives, as a set of devices."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from distributed import Client

from workbench import allowance, forks
from workbench.backends.users_line import warn
from workbench.device_names import SERVICE_JOBS, Device
from workbench.errors import InvalidArgumentError, UnavailableError, WorkbenchError
from workbench.runtime.comm.messages import LAST_WRITES, TELEMETRY
from workbench.runtime.deploy import embedded
from workbench.runtime.deploy.claiming import Connector
from workbench.runtime.deploy.delayed_interrupt import delayed_interrupt, is_interrupt_kept_back
from workbench.runtime.deploy.health import LocalHealth
from workbench.runtime.deploy.plugin import TELEMETRY_TOPIC, WorkbenchPlugin
from workbench.runtime.deploy.succession import Succession
from workbench.runtime.deploy.tasks import job_of, natural_key
from workbench.runtime.deploy.worker_link import WorkerLink
from workbench.runtime.driver.cores_used import CoresUsed
from workbench.runtime.driver.gang.driver_lock import refuse_on_replica
from workbench.runtime.driver.gang.flight_reader import batch_of
from workbench.runtime.driver.gang.gang import Gang
from workbench.runtime.driver.gang.signals_reader import WatchThread
from workbench.runtime.driver.gang.silence import silence_text
from workbench.runtime.driver.gang.worker_events import links_made
from workbench.runtime.driver.group import Group
from workbench.runtime.driver.step_events import replicas_lost
from workbench.runtime.layout import check_minimum
from workbench.runtime.placement_text import one_line, placement
from workbench.runtime.restorer import Restorer
from workbench.runtime.user_code.notebook_cells import with_cell_names
from workbench.telemetry.events import Event
from workbench.telemetry.feed.feed import Feed
from workbench.telemetry.formatting import encodable

_LAST_FLUSH_SECONDS = 0.5
_LAST_WRITES_SECONDS = 30.0  # a dump may hold gigabytes


class Cluster:
    """Workers of a Dask cluster that this process drives.

    Attributes:
      name: A short id: the run's name in telemetry and errors.
      client: Dask's client.
      devices: All devices, host by host.
      feed: The telemetry of everything that runs on it.
      telemetry_listeners: Called with each batch that the feed receives.
      event_listeners: Called with each event that the driver itself adds to the feed; they must return at once.
      embedded: Whether `connect` started the Dask cluster, which then ends with this object.
      workers_of: Id of the announced workers that it uses, else "".
      closing: Called when it begins to close, while everything still works.
      checkpoint: The `wb.CheckpointManager` from which training continues after all replicas of a strategy were lost.
    """

    def __init__(
        self,
        client: Client,
        *,
        owned: list[Any],
        embedded_in: Any = None,
        plugin: WorkbenchPlugin,
        remote: set[str],
        stall_seconds: float,
        workers_of: str = "",
        minimum_replicas: int | None = None,
    ) -> None:
        self.name = secrets.token_hex(2)
        self.client = client
        self.embedded = embedded_in is not None
        self.feed = Feed(name_sites=with_cell_names)
        self.telemetry_listeners: list[Callable[[bytes], object]] = []
        self.event_listeners: list[Callable[[Event], object]] = []
        self.workers_of = workers_of
        self.closing: list[Callable[[], object]] = []
        self.checkpoint: Restorer | None = None
        self._owned = owned
        self._connector = Connector(
            client,
            holder=_holder_name(),
            shape={"devices": plugin.devices, "kind": plugin.device_kind},
            remote_hosts=remote.__contains__,
        )
        client.register_plugin(plugin)
        workers, apart = _claimed(self._connector, minimum_replicas)
        self.hosts = tuple(dict.fromkeys(worker.host for worker in workers))
        codec = workers[0].steps.codec  # the same for all workers
        self._succession = Succession(client, self._connector, own_nannies=self.embedded)
        health = LocalHealth(
            worker_exit=_unknown_exit if embedded_in is None else embedded.worker_exit,
            succession=self._succession,
            stall_seconds=stall_seconds,
        )
        self.gang: Gang[Group] = Gang(workers, run_id=self.name, codec=codec, health=health)
        self.gang.cluster = self
        self.gang.minimum_replicas = minimum_replicas or 0
        self.gang.notify = self._on_event
        self.gang.heard = self._on_heartbeat
        self.gang.perished = self._on_perished
        self.gang.lost = self._on_lost
        for event in links_made(workers, apart):
            self._on_event(event)
        self._watch = WatchThread(self.gang)
        self._watch.start()
        client.subscribe_topic(TELEMETRY_TOPIC, self._on_telemetry)
        forks.tell(self)

    def disown(self) -> None:
        """See `forks.tell`: everything that this cluster has opened belongs to the parent."""
        for owned in self._owned:
            if isinstance(owned, Client) and owned.status != "closed":
                owned.status = "closed"  # so that Dask has nothing to close
                forks.let_go_loop(owned.loop)

    @property
    def devices(self) -> tuple[Device, ...]:
        """All devices, host by host; each host numbers its own devices."""
        devices: list[Device] = []
        counts: dict[str, int] = {}
        for worker in self.gang.workers.values():
            for _ in range(worker.device_count):
                index = counts.get(worker.host, 0)
                counts[worker.host] = index + 1
                job = job_of(worker.name)
                devices.append(
                    Device(worker.device_kind, index, worker.host, worker.address, worker.task, job)
                )
        return tuple(devices)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self.gang.closed

    def group(self, devices: Sequence[Device], *, label: str) -> Group:
        """Connects replicas on these devices to each other.

        Args:
          devices: From `devices`, one per replica, in rank order.
          label: The user's name for the group, for errors and telemetry.

        Raises:
          InvalidArgumentError: if the devices are of different kinds.
          ClusterClosed: if the cluster is closed.
        """
        self.gang.check_open()
        if len(kinds := {device.kind for device in devices}) > 1:
            raise InvalidArgumentError(
                f"the replicas of a strategy need devices of one kind, got {' and '.join(sorted(kinds))}; choose those "
                f"of one kind by name, such as ['GPU:0', 'GPU:1']"
            )
        group = Group(self.gang, devices, label=label)
        workers = [worker for worker in self.gang.workers.values() if worker.name in group.worker_names]
        if kinds == {"CPU"} and all(worker.local for worker in workers):
            cores = allowance.cores()
            self.feed.set_cores(group.name, cores)
            if cores < len(devices):
                group.cores_used = CoresUsed()
        return group

    def flush_telemetry(
        self, deadline_seconds: float = 2.0, *, names: Sequence[str] | None = None
    ) -> tuple[str, ...]:
        """Brings the feed up to date with what the replicas have recorded so far, also while a step hangs.

        Args:
          deadline_seconds: How long to wait for the workers, for all together.
          names: The workers to ask; by default all.

        Returns:
          The addresses of workers that did not answer in time.
        """
        end = time.monotonic() + deadline_seconds
        silent = []
        asked = [worker for worker in self.gang.living() if names is None or worker.name in names]
        for question in [self.gang.urgent.ask(worker, TELEMETRY) for worker in asked]:
            try:
                left = max(0.0, end - time.monotonic())
                batches = question.answer(left, unless=is_interrupt_kept_back)
            except WorkbenchError:
                silent.append(question.worker.address)
            else:
                for batch in batches:
                    self._take_telemetry(batch)
        self._tell_results()  # the last step's results may arrive after its records
        return tuple(silent)

    def close(self) -> None:
        """Ends the embedded cluster, or releases the workers of another one. Idempotent.

        It does not wait for steps: a thread that waits for one gets `ClusterClosed`.

        Raises:
          RuntimeError: in a replica function.
        """
        if self.gang.closed:
            return
        refuse_on_replica()
        with delayed_interrupt():  # a half-closed cluster could not be closed again
            self._close()

    def _close(self) -> None:
        with contextlib.suppress(Exception):  # otherwise records that replicas have not sent would be lost
            self.flush_telemetry(_LAST_FLUSH_SECONDS)
        for callback in tuple(self.closing):
            callback()
        self.checkpoint = None  # it refers to variables of these replicas
        with contextlib.suppress(Exception):
            self.client.unsubscribe_topic(TELEMETRY_TOPIC)
        addresses = [worker.address for worker in self.gang.workers.values() if not worker.lost]
        self.gang.close()
        self._watch.close()
        self._succession.close()
        if not self.embedded:
            with contextlib.suppress(Exception):  # a scheduler that is gone has nothing to release
                self._connector.release(addresses)
        for owned in self._owned:
            gave_up = isinstance(owned, Client) and owned.status == "closed"
            owned.close()
            if gave_up:  # the scheduler did not come back; Dask then leaves its loop's thread running
                owned._loop_runner.stop()

    def expect_last_writes(self) -> None:
        """Makes this cluster wait for workers' last writes before it closes; see `process/last_writes.py`."""
        shared = self.gang.shipping.codec.by_reference  # this process's own data stays here
        if not shared and self._await_last_writes not in self.closing:
            self.closing.append(self._await_last_writes)

    def _await_last_writes(self) -> None:
        end = time.monotonic() + _LAST_WRITES_SECONDS
        for question in [self.gang.urgent.ask(worker, LAST_WRITES) for worker in self.gang.living()]:
            try:
                left = max(0.0, end - time.monotonic())
                failures = question.answer(left, unless=is_interrupt_kept_back)
            except WorkbenchError as error:
                failures = [str(error)]
            if failures:
                warn(
                    f"worker {question.worker.address} has not written all that it kept, such as the newest rows of a "
                    f"dump: {'; '.join(failures)}",
                    RuntimeWarning,
                )

    @property
    def status(self) -> str:
        """One word: "live", "lost" (a worker is gone and should return before the next step) or "stopped"."""
        if self.gang.closed:
            return "stopped"
        return "lost" if any(worker.lost for worker in self.gang.workers.values()) else "live"

    @property
    def where(self) -> tuple[str, ...]:
        """Its devices and hosts in words, and "embedded" if it is embedded."""
        return placement(self.devices, "device"), *(["embedded"] if self.embedded else [])

    def __repr__(self) -> str:
        return one_line("Cluster", *self.where, self.status)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _on_telemetry(self, event: tuple[Any, bytes]) -> None:
        self._take_telemetry(event[1])

    def _on_event(self, event: Event) -> None:
        self.feed.add_event(event)
        for listener in tuple(self.event_listeners):
            listener(event)

    def _on_heartbeat(self, worker: WorkerLink) -> None:
        """Adds to the feed where this worker's replicas are, as others may wait for them, or that it is silent."""
        self._tell_results()
        if worker.standing:
            # The last heartbeat may not show their current step.
            for each in list(self.gang.groups.values()):
                place = silence_text(worker, worker.standing) if each.in_flight else ""
                for rank in each.ranks_of(worker.name):
                    self.feed.set_place(self.name, each.name, rank, place)
            return
        for row in worker.statuses:
            group = self.gang.groups.get(row.group)
            if group is not None:
                place = row.site if row.busy and row.phase == "running" else ""
                self.feed.set_place(self.name, group.name, row.rank, place)

    def _tell_results(self) -> None:
        """Adds to the feed when the newest steps were sent, their results and use, and the progress of their loop."""
        for group in list(self.gang.groups.values()):
            if (sent := group.sent_steps()) is not None:
                self.feed.set_sent(group.name, sent)
            if group.cores_used is not None:
                self.feed.set_cores_used(group.name, group.cores_used.cores())
            if (course := group.recent.course()) is not None:
                self.feed.set_result(group.name, course)
            if (epoch := group.epoch()) is not None:
                self.feed.set_epoch(group.name, epoch)

    def _on_perished(self, worker: WorkerLink) -> None:
        """Reads records of completed steps that the replicas of a lost worker had not yet sent."""
        for group in list(self.gang.groups.values()):
            for rank in group.ranks_of(worker.name):
                self.feed.set_place(self.name, group.name, rank, "")
                flight = self.gang.flights.of(group.id, rank, worker.pid)
                if flight is None:
                    continue
                where = self.name, group.name, group.generation, rank
                # Batches that it sent may still arrive. They no longer count, so that no record counts twice.
                self.feed.end_source(flight.identity.drain)
                self._take_telemetry(batch_of(flight, self.feed.newest(*where), group.name, group.generation))
                self.feed.set_lost(*where, position=(flight.step, flight.seq, flight.inside))

    def _on_lost(self, worker: WorkerLink) -> None:
        """Reports the lost replicas of each group whose strategy is in use."""
        used = [group for group in self.gang.groups.values() if group not in self.gang.abandoned]
        for event in replicas_lost(worker, used):
            self._on_event(event)

    def _take_telemetry(self, batch: bytes) -> None:
        """Handles a batch. Batches arrive twice, by the topic and by `flush_telemetry`; only the first counts.

        Otherwise a listener added in between would take the second one for new.
        """
        if not self.feed.ingest(batch):
            return
        self._tell_results()
        for listener in tuple(self.telemetry_listeners):
            listener(batch)


def _holder_name() -> str:
    name = os.environ.get("JPY_SESSION_NAME") or os.path.basename(sys.argv[0] or "")
    return encodable(name) or "a Python session"


def _claimed(connector: Connector, minimum_replicas: int | None) -> tuple[list[WorkerLink], dict[str, str]]:
    """Claims all workers of a Dask cluster and opens their links.

    Returns:
      The workers, host by host; worker name -> why it cannot share memory with others whose host has the same name.

    Raises:
      UnavailableError: if there are none.
      ClusterBusy: if another driver holds them.
      InvalidArgumentError: if they have fewer devices than `minimum_replicas`.
    """
    described = connector.describe()
    if not described:
        raise UnavailableError(
            "the Dask cluster has no workers; start some, or scale it up, then connect again"
        )
    connector.claim(described)
    workers: list[WorkerLink] = []
    try:
        described = connector.describe()  # their state after the claim has shaped them
        described = dict(sorted(described.items(), key=_by_host))
        apart = connector.share(described)
        order = sorted(described.items(), key=_by_host)
        hosts = list(dict.fromkeys(worker["host"] for _, worker in order))
        for _, worker in order:
            workers.append(connector.open(worker, hosts.index(worker["host"])))
        check_minimum(minimum_replicas, sum(worker.device_count for worker in workers))
    except BaseException:  # otherwise the workers would stay claimed without a holder
        for link in workers:
            link.close()
        with contextlib.suppress(UnavailableError):
            connector.release(list(described))
        raise
    return workers, {described[first]["name"]: why for first, why in apart.items()}


def _by_host(entry: tuple[str, dict[str, Any]]) -> Any:
    _, worker = entry
    # Replicas first, so that "CPU:0" never means a parameter server's device.
    return natural_key(worker["host"]), job_of(worker["name"]) in SERVICE_JOBS, natural_key(worker["name"])


def _unknown_exit(pid: int, timeout_seconds: float) -> embedded.WorkerExit | None:
    return None
