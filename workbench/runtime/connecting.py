"""Opening the links to the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import psutil
from distributed import Client
from distributed.comm.core import connect as connect_comm

from workbench.errors import BackendUnavailable, ClusterBusy, ReplicaLost, UnavailableError
from workbench.runtime import embedded, unix_endpoint
from workbench.runtime.dask_link import DaskLink
from workbench.runtime.links import Link
from workbench.runtime.plugin import IN_PROCESS, machine_id
from workbench.runtime.sharing import hosts_of
from workbench.runtime.wire import PROTOCOL_VERSION
from workbench.runtime.worker_link import WorkerLink

_RESTART_SECONDS = 60.0
_OPEN_SECONDS = 10.0
_ANSWER_SECONDS = 5.0
# A nanny whose worker is killed while it starts does not start it again: then we ask it to.
_REVIVE_SECONDS = 10.0
# How long a restarted worker is preferred to a new one.
_SPARE_SECONDS = 3.0
# What the time at which a process was started may differ by as two processes see it: a clock may be set in between.
_SAME_START_SECONDS = 2.0


class Connector:
    """Claims workers for one driver and opens their links.

    Attributes:
      token: Shown when opening links; the claim made it known to the workers.
    """

    def __init__(
        self,
        client: Client,
        *,
        holder: str,
        shape: dict[str, Any],
        remote_hosts: Callable[[str], bool],
    ) -> None:
        """Prepares to claim workers, as `holder`.

        Args:
          client: Of the Dask cluster.
          holder: How to call this driver towards others.
          shape: "devices" and "kind" that workers shall have which are not laid out by name.
          remote_hosts: Which hosts to reach over Dask's comms although they are this machine.
        """
        self._shape = shape
        self._client = client
        self._session = secrets.token_hex(16)
        self.token = secrets.token_hex(32)
        self._holder = holder
        self._remote_hosts = remote_hosts
        self._hosts: dict[str, str] = {}  # of the workers in use, by address
        self._names_of_hosts: dict[str, str] = {}  # host -> what its workers call it, see `share`
        self._dask_names: dict[str, str] = {}  # name of a worker here -> the one that Dask knows it by now

    def describe(self) -> dict[str, dict[str, Any]]:
        """Worker address -> what it says of itself, of all workers that are there."""
        return dict(self._broadcast({"op": "workbench_describe"}, None))

    def claim(self, described: dict[str, dict[str, Any]]) -> None:
        """Reserves workers for this driver.

        Raises:
          ClusterBusy: if another driver holds one of them; names it.
          BackendUnavailable: if driver and workers differ in version.
        """
        for address, worker in described.items():
            if worker["protocol"] != PROTOCOL_VERSION or tuple(worker["python"]) != sys.version_info[:2]:
                raise BackendUnavailable(
                    f"worker {address} runs Python {'.'.join(map(str, worker['python']))} with protocol "
                    f"{worker['protocol']}, this notebook Python {sys.version_info[0]}.{sys.version_info[1]} with "
                    f"protocol {PROTOCOL_VERSION}; install the same versions on both"
                )
        holder: dict[str, Any] = {
            "session": self._session,
            "token": self.token,
            "name": self._holder,
            "pid": os.getpid(),
            "machine": machine_id(),
        }
        holder |= self._shape
        answers = self._broadcast({"op": "workbench_claim", "holder": holder}, list(described))
        for address, other in answers.items():
            if other is not None:
                self.release(list(described))
                raise ClusterBusy(
                    f"worker {address} is held by {other['name']} (pid {other['pid']} on "
                    f"{other['machine'].partition('/')[0]}); close that first (cluster.close() or shut down its "
                    f"notebook), or connect to other workers",
                    worker=address,
                    pid=other["pid"],
                )

    def release(self, addresses: list[str]) -> None:
        """Gives workers back."""
        self._broadcast({"op": "workbench_release", "session": self._session}, addresses)

    def open(self, described: dict[str, Any], task: int) -> WorkerLink:
        """Opens the links of one claimed worker."""
        steps, signals, reached = self._links(described)
        self._hosts[described["address"]] = described["host"]
        self._dask_names.setdefault(described["name"], described["name"])
        return WorkerLink(
            name=described["name"],
            address=described["address"],
            host=described["host"],
            task=task,
            pid=described["pid"],
            local=_is_here(described),
            device_count=described["devices"],
            device_kind=described["kind"],
            steps=steps,
            signals=signals,
            reached=reached,
        )

    def _links(self, described: dict[str, Any]) -> tuple[Link, Link, str]:
        """Steps, signals, and by what way they go."""
        address = described["address"]
        if described["pid"] == os.getpid() and address in IN_PROCESS:
            return *IN_PROCESS[address].open_in_process(self.token), "memory of one process"
        over = f"Dask's {address.partition('://')[0]} connection"
        path = described["path"] if described["machine"] == machine_id() else ""
        if path and described["uid"] != os.getuid():
            over, path = f"{over}, as another user runs it", ""
        if path and not self._remote_hosts(described["host"]):
            try:
                return *_both(lambda purpose: unix_endpoint.connect(path, self.token, purpose)), "Unix socket"
            except UnavailableError as error:  # a container with files of its own, perhaps
                over = f"{over}, as {error}"
        return *_both(lambda purpose: self._over_comm(address, purpose)), over

    def share(self, described: dict[str, dict[str, Any]]) -> dict[str, str]:
        """Renames the hosts of workers that cannot share memory with others of that name of a host.

        Workers that the embedded cluster has laid out are what their layout says.

        Returns:
          The first worker on each renamed host -> why it cannot share memory with the first of that name.
        """
        named = {address: worker["host"] for address, worker in described.items() if not worker["laid_out"]}
        hosts, reasons = hosts_of(
            named, lambda first, others: self._obstacles(described[first]["path"], others)
        )
        for address, host in hosts.items():
            self._names_of_hosts[host] = named[address]
            described[address]["host"] = host
        return reasons

    def _obstacles(self, path: str, workers: Sequence[str]) -> dict[str, str]:
        """Why each of these workers cannot share memory with the one that listens at `path`, or ""."""
        message = {"op": "workbench_share", "token": self.token, "path": path}
        return dict.fromkeys(workers, "it did not answer") | self._broadcast(message, list(workers))

    def _over_comm(self, address: str, purpose: str) -> DaskLink:
        link: DaskLink = self._client.sync(self._open_comm, address, purpose)
        return link

    async def _open_comm(self, address: str, purpose: str) -> DaskLink:
        try:
            arguments = self._client.security.get_connection_args("client")
            comm = await connect_comm(address, timeout=_OPEN_SECONDS, **arguments)
            await comm.write(
                {"op": "workbench_link", "reply": False, "token": self.token, "purpose": purpose}
            )
        except OSError as error:
            raise UnavailableError(f"cannot reach worker {address}: {error}", worker=address) from error
        link = DaskLink(comm, asyncio.get_running_loop())
        link.start()
        return link

    def replacement(self, lost: WorkerLink) -> WorkerLink:
        """Waits until Dask has restarted a lost worker, or offers a new one, and opens its links.

        Raises:
          ReplicaLost: if no worker comes within a minute.
          UnavailableError: if the scheduler is gone, too.
        """
        self._hosts.pop(lost.address, None)
        start = time.monotonic()
        revive_at = _REVIVE_SECONDS
        while (waited := time.monotonic() - start) < _RESTART_SECONDS:
            worker = self._successor(lost, spares=waited > _SPARE_SECONDS)
            if worker is not None:
                with contextlib.suppress(UnavailableError):  # it may die, too: the next one is waited for
                    self.claim({worker["address"]: worker})
                    worker |= {"devices": lost.device_count}  # it was described before the claim shaped it
                    return self.open({**worker, "name": lost.name, "host": lost.host}, lost.task)
            if waited > revive_at:
                revive_at += _REVIVE_SECONDS
                scheduler: Any = self._client.scheduler
                embedded.revive(scheduler.address, self._dask_names[lost.name])
            time.sleep(0.05)  # Dask has no event that tells when a restarted worker's plugins are set up
        raise ReplicaLost(
            f"worker {lost.name} {lost.lost} and was not restarted within {_RESTART_SECONDS:.0f} s; add a worker to "
            f"the Dask cluster, or connect anew",
            worker=lost.address,
            pid=lost.pid,
            cause=lost.lost,
        )

    def _successor(self, lost: WorkerLink, *, spares: bool) -> dict[str, Any] | None:
        """The restarted worker, or else one that nobody uses on the same host, as batch systems offer."""
        described = self.describe()
        free: list[dict[str, Any]] = [
            worker
            for address, worker in described.items()
            if address not in self._hosts and worker["pid"] != lost.pid
        ]
        own_name = self._dask_names[lost.name]
        scheduler: Any = self._client.scheduler
        for worker in free:
            if worker["name"] == own_name:
                return worker if embedded.settled(scheduler.address, own_name, worker["pid"]) else None
        called = self._names_of_hosts.get(lost.host, lost.host)
        there = next((address for address, host in self._hosts.items() if host == lost.host), None)
        for worker in free if spares else ():
            if worker["host"] != called or worker["name"] in self._dask_names.values():
                continue
            if there in described:
                with contextlib.suppress(ClusterBusy):
                    self.claim({worker["address"]: worker})  # which lets it try
                    apart = self._obstacles(described[there]["path"], [worker["address"]])
                    if apart[worker["address"]]:
                        self.release([worker["address"]])
                        continue
            self._dask_names[lost.name] = worker["name"]
            return worker
        return None

    def dismiss(self, address: str) -> None:
        """Has Dask end a worker that answers no more, or that must not come back; does not wait. Any thread."""

        async def restart_or_remove() -> None:
            scheduler: Any = self._client.scheduler
            stimulus = f"workbench-dismiss-{address}"
            with contextlib.suppress(OSError, TimeoutError):
                restarted = await asyncio.wait_for(
                    scheduler.restart_workers(
                        workers=[address], timeout=_OPEN_SECONDS, on_error="return", stimulus_id=stimulus
                    ),
                    2 * _OPEN_SECONDS,
                )
                if restarted.get(address) == "OK":
                    return
            with contextlib.suppress(OSError, TimeoutError):  # it has no nanny: it shall end itself
                await asyncio.wait_for(
                    scheduler.unregister(address=address, stimulus_id=stimulus), _ANSWER_SECONDS
                )

        loop: Any = self._client.loop
        loop.add_callback(restart_or_remove)

    def _broadcast(self, message: dict[str, Any], workers: list[str] | None) -> dict[str, Any]:
        """The answers of those workers (None: of all) that answer in time; a stopped one does not.

        Raises:
          UnavailableError: if the scheduler does not answer.
        """

        async def ask(address: str) -> dict[str, Any]:
            scheduler: Any = self._client.scheduler
            question = scheduler.broadcast(msg=message, workers=[address], on_error="ignore")
            try:
                return dict(await asyncio.wait_for(question, _ANSWER_SECONDS))
            except (OSError, TimeoutError):
                return {}

        async def ask_all() -> dict[str, Any]:
            scheduler: Any = self._client.scheduler
            addresses = workers
            if addresses is None:
                try:
                    identity = await asyncio.wait_for(scheduler.identity(n_workers=-1), _ANSWER_SECONDS)
                except (OSError, TimeoutError) as error:
                    raise UnavailableError(
                        f"the Dask scheduler at {scheduler.address} does not answer any more: start the cluster "
                        f"again and connect to it with wb.connect(...)"
                    ) from error
                addresses = list(identity["workers"])
            answers: dict[str, Any] = {}
            for answer in await asyncio.gather(*map(ask, addresses)):
                answers |= answer
            return answers

        answers: dict[str, Any] = self._client.sync(ask_all)
        return answers


def _both(opened: Callable[[str], Link]) -> tuple[Link, Link]:
    """Both links of a worker, or none."""
    steps = opened("steps")
    try:
        return steps, opened("signals")
    except BaseException:
        steps.close()
        raise


def _is_here(described: dict[str, Any]) -> bool:
    """Whether this process sees that worker's, and so may look at it and end it, under that pid.

    In another container of this machine the pid is that of a stranger.
    """
    if described["machine"] != machine_id():
        return False
    try:
        started = psutil.Process(described["pid"]).create_time()
    except psutil.Error:
        return False
    return bool(abs(started - described["started"]) < _SAME_START_SECONDS)
