"""Claims the workers of a Dask cluster and opens links to them."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Callable, Sequence
from typing import Any

import psutil
from distributed import Client
from distributed.comm.core import connect as connect_comm

from workbench.errors import BackendUnavailable, ClusterBusy, UnavailableError
from workbench.runtime.comm import unix_endpoint
from workbench.runtime.comm.dask_link import DaskLink
from workbench.runtime.comm.links import Link
from workbench.runtime.comm.messages import PROTOCOL_VERSION
from workbench.runtime.deploy.host_probe import hosts_of
from workbench.runtime.deploy.plugin import IN_PROCESS, machine_id
from workbench.runtime.deploy.worker_link import WorkerLink
from workbench.runtime.process.gpu_use import GpuUse

_OPEN_SECONDS = 10.0
_ANSWER_SECONDS = 5.0
# How much the start time of a process may differ between two processes, because a clock may be set in between.
_SAME_START_SECONDS = 2.0


class Connector:
    """Claims workers for one driver and opens their links.

    Attributes:
      token: Opens links; the claim has sent it to the workers.
      hosts: Address -> host, for the workers in use.
      names_of_hosts: Host -> the name that its workers use for it; see `share`.
      dask_names: Name of a worker here -> its current name in Dask.
      nannies: Name of a worker -> address of the nanny that restarts it, or "".
    """

    def __init__(
        self,
        client: Client,
        *,
        holder: str,
        shape: dict[str, Any],
        remote_hosts: Callable[[str], bool],
    ) -> None:
        """Prepares to claim workers.

        Args:
          client: The client of the Dask cluster.
          holder: Name of this driver, shown to others.
          shape: "devices" and "kind" for workers that the layout does not name.
          remote_hosts: Hosts to reach over Dask's comms although they are on this machine.
        """
        self._shape = shape
        self._client = client
        self._session = secrets.token_hex(16)
        self.token = secrets.token_hex(32)
        self._holder = holder
        self._remote_hosts = remote_hosts
        self.hosts: dict[str, str] = {}
        self.names_of_hosts: dict[str, str] = {}
        self.nannies: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        self.dask_names: dict[str, str] = {}

    def describe(self) -> dict[str, dict[str, Any]]:
        """Worker address -> the worker's description of itself, for all present workers."""
        return dict(self._broadcast({"op": "workbench_describe"}, None))

    def claim(self, described: dict[str, dict[str, Any]]) -> None:
        """Reserves workers for this driver.

        Raises:
          ClusterBusy: if another driver holds one of them; it names that driver.
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
        """Releases workers."""
        self._broadcast({"op": "workbench_release", "session": self._session}, addresses)

    def open(self, described: dict[str, Any], task: int) -> WorkerLink:
        """Opens the links of one claimed worker."""
        steps, signals, reached = self._links(described)
        self.hosts[described["address"]] = described["host"]
        self._paths[described["address"]] = described["path"]
        self.nannies[described["name"]] = described["nanny"]
        self.dask_names.setdefault(described["name"], described["name"])
        return WorkerLink(
            name=described["name"],
            address=described["address"],
            host=described["host"],
            task=task,
            pid=described["pid"],
            machine=described["machine"],
            local=_is_here(described),
            device_count=described["devices"],
            device_kind=described["kind"],
            gpus=tuple(GpuUse(**use) for use in described["gpus"]),
            steps=steps,
            signals=signals,
            reached=reached,
        )

    def _links(self, described: dict[str, Any]) -> tuple[Link, Link, str]:
        """Opens the links for steps and signals; also returns how messages travel."""
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
            except UnavailableError as error:  # possibly a container with its own files
                over = f"{over}, as {error}"
        return *_both(lambda purpose: self._over_comm(address, purpose)), over

    def share(self, described: dict[str, dict[str, Any]]) -> dict[str, str]:
        """Renames the hosts of workers that cannot share memory with others on a host of that name.

        Workers of the embedded cluster are as their layout says.

        Returns:
          The first worker on each renamed host -> why it cannot share memory with the first one of the old name.
        """
        named = {address: worker["host"] for address, worker in described.items() if not worker["laid_out"]}
        hosts, reasons = hosts_of(
            named, lambda first, others: self.obstacles(described[first]["path"], others)
        )
        for address, host in hosts.items():
            self.names_of_hosts[host] = named[address]
            described[address]["host"] = host
        return reasons

    def obstacles(self, path: str, workers: Sequence[str]) -> dict[str, str]:
        """Why each of these workers cannot share memory with the one that listens at `path`; "" if it can."""
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

    def path_on(self, host: str) -> str:
        """The Unix socket of a worker in use on `host`, or ""."""
        return next((self._paths[address] for address, name in self.hosts.items() if name == host), "")

    def _broadcast(self, message: dict[str, Any], workers: list[str] | None) -> dict[str, Any]:
        """Sends `message` to the given workers (None: all); returns the answers that arrive in time.

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
    """Opens both links of a worker, or neither."""
    steps = opened("steps")
    try:
        return steps, opened("signals")
    except BaseException:
        steps.close()
        raise


def _is_here(described: dict[str, Any]) -> bool:
    """Whether the worker's pid denotes the same process here, so that this process may inspect and end it.

    If the worker is in another container on this machine, the pid belongs to an unrelated process here.
    """
    if described["machine"] != machine_id():
        return False
    try:
        started = psutil.Process(described["pid"]).create_time()
    except psutil.Error:
        return False
    return bool(abs(started - described["started"]) < _SAME_START_SECONDS)
