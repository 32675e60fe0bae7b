"""The embedded Dask cluster: loopback only, TLS, random ports, automatically restarted workers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing.process
import os
import socket
import threading
import weakref
from collections.abc import Coroutine, Sequence
from typing import Any, Literal, NamedTuple

import dask
from distributed import LocalCluster, Nanny, Worker
from distributed.core import Status
from distributed.deploy.cluster import Cluster as DaskCluster
from distributed.security import Security
from distributed.utils import LoopRunner

from workbench import forks
from workbench.communicators.core.tcp import is_loopback
from workbench.errors import UnavailableError, UnsafeBind
from workbench.runtime.process import blas, fork_server
from workbench.runtime.process.gpus import WORKER_ENVIRONMENT
from workbench.runtime.shipping.main_module import leave_main_out

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

# pid -> how the worker process ended, according to its nanny.
_exits: dict[int, WorkerExit | None] = {}
_exit_seen = forks.lock(threading.Condition())
# With an address for its web pages, LocalCluster gives each worker Dask's dashboard, which imports all of Bokeh.
# Without one, the pages could listen on all interfaces.
_NO_DASHBOARD: dict[str, Any] = {"dashboard": False}
forks.lock(LoopRunner._lock)
_nannies: weakref.WeakSet[ReportingNanny] = weakref.WeakSet()
_CLOSE_SECONDS = 10.0
RESTART_AGAIN_SECONDS = 2.0
"""Pause between a failed restart and the next attempt."""
_KILLED_MOST = 3
"""A process that is killed while it starts is restarted at once; this many such kills in a row count as a failure."""
# Measured: the open files of a driver with 1, 2 and 8 workers, plus room for the user's files.
_DESCRIPTORS = 64
_FILE_BYTES = 64 * 1024 * 1024
_LOOPBACK_SECONDS = 5.0
_DESCRIPTORS_PER_WORKER = 16
SHORT_LOGS = {"distributed.admin.low-level-log-length": 100}
"""Limits how many events of a topic and messages of a connection Dask keeps; telemetry would pile up otherwise."""


class WorkerExit(NamedTuple):
    """How a worker process ended.

    Attributes:
      code: Exit code, negative for a signal.
      over_memory: Whether its nanny ended it because it exceeded its memory limit.
    """

    code: int
    over_memory: bool


class QuietWorker(Worker):
    """A worker without Dask's dashboard, and without Dask's log messages below warnings."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        logger = logging.getLogger("distributed")  # in a separate process, where Dask configures it
        logger.setLevel(max(logger.level, logging.WARNING))
        super().__init__(*args, **(kwargs | _NO_DASHBOARD))


class ReportingNanny(Nanny):
    """Keeps the exit code of its worker process, which distinguishes a kill from a crash.

    Attributes:
      restart_failure: Why the latest attempt to restart a lost worker failed, else "".
      close_reason: Dask's reason for closing the nanny; "" while it is open.
    """

    restart_failure: str = ""
    close_reason: str = ""
    _worker_pid: int | None = None
    _restarting: asyncio.Future[Status] | None = None
    _cluster: weakref.ref[Any] | None = None  # Dask sets it

    def __init__(
        self,
        scheduler: Any,
        *,
        name: Any = None,
        env: dict[str, str] | None = None,
        gpus: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        """With `gpus`, each worker process sees only one of these, by its number."""
        if gpus:
            env = (env or {}) | {"CUDA_VISIBLE_DEVICES": gpus[int(name) % len(gpus)]}
        super().__init__(scheduler, name=name, env=env, worker_class=QuietWorker, **(kwargs | _NO_DASHBOARD))
        _nannies.add(self)

    async def instantiate(self) -> Status:
        """Starts the worker process. A lost one is restarted until that succeeds or the cluster closes."""
        if self.process is None:  # the first start; if it fails, so does `connect`
            return await self._noting_pid(super().instantiate())
        if not self._restarts:
            self._restarting = asyncio.ensure_future(self._restart())
        assert self._restarting is not None
        return await self._restarting

    @property
    def _restarts(self) -> bool:
        return self._restarting is not None and not self._restarting.done()

    async def _restart(self) -> Status:
        """Retries: Dask would close the nanny at the first failure, and not retry if the process is killed."""
        killed = 0
        while self.process is not None and self.status is Status.running:
            process = self.process
            try:
                await self._noting_pid(process.start())
                killed += 1
                why = (
                    f"the process was ended {killed} times while it started" if killed >= _KILLED_MOST else ""
                )
            except Exception as error:  # from the fork, or raised by the worker while it started
                first = first_of(error)
                why = f"{type(first).__name__}: {first}"
            if process.status is Status.running:
                self.restart_failure = ""
                return Status.running
            if process.status is Status.starting:  # Dask tried to end a process that never existed
                process.process, process.status = None, Status.stopped
            if not why and process.status is Status.failed:
                why = "no process could be started"
            self.restart_failure = why or self.restart_failure
            if why:
                await asyncio.sleep(RESTART_AGAIN_SECONDS)
        return Status.failed

    async def _noting_pid(self, start: Coroutine[Any, Any, Status]) -> Status:
        """Records the pid of the starting process, because the process object loses it when the process ends."""
        from workbench.runtime.process.forking_context import forking

        before = self._worker_pid
        with forking():
            starting = asyncio.ensure_future(start)
            try:
                # Before the worker has started, because it may be killed before its nanny knows that it runs.
                while not starting.done() and self._worker_pid == before:
                    if (pid := self.pid) and pid != before:
                        with _exit_seen:
                            _exits.pop(pid, None)  # left by an earlier process with the same pid
                        self._worker_pid = pid
                    await asyncio.sleep(0.005)
                return await starting
            finally:
                starting.cancel()

    def watches(self, pid: int) -> bool:
        """Whether this nanny will report how the process ends."""
        return self._worker_pid == pid and self.status is not Status.closed

    def close_gracefully(self, reason: str = "nanny-close-gracefully") -> None:
        """Ignores the request of a worker that closes itself while the cluster runs, and restarts the worker.

        The request need not be intended. A worker closes itself when its connection to the scheduler breaks, or when
        the scheduler removes its address, which may be that of a killed worker that the next one has just got.
        """
        cluster = None if self._cluster is None else self._cluster()
        if cluster is not None and cluster.status in (Status.closing, Status.closed):
            self.close_reason = self.close_reason or reason
            super().close_gracefully(reason)

    async def close(self, timeout: float = 5, reason: str = "nanny-close") -> Literal["OK"]:  # type: ignore[override]
        """As Dask's `close`."""
        self.close_reason = self.close_reason or reason
        return await super().close(timeout, reason)

    def disown(self) -> None:
        """See `forks.tell`; its worker belongs to the parent."""
        started = getattr(self.process, "process", None)  # Dask's wrapper around `multiprocessing`'s process
        if started is not None:
            started._proc_finalizer.detach()
            multiprocessing.process._children.discard(started._process)  # type: ignore[attr-defined]
            forks.let_go(started._keep_child_alive.fileno())

    def _on_worker_exit_sync(self, exitcode: int | None) -> None:
        if self._worker_pid is not None and exitcode is not None:
            over_memory = self.memory_manager._last_terminated_pid == self._worker_pid
            unknown = exitcode == fork_server.UNKNOWN_EXIT and not over_memory
            with _exit_seen:
                _exits[self._worker_pid] = None if unknown else WorkerExit(exitcode, over_memory)
                _exit_seen.notify_all()
        if self._restarts and self.status is Status.running:
            return  # it has not started yet: `_restart` handles it
        super()._on_worker_exit_sync(exitcode)  # type: ignore[no-untyped-call]


class EmbeddedCluster(LocalCluster):
    """A LocalCluster in which only the nannies decide about their workers."""

    def __init__(self, **options: Any) -> None:
        forks.tell(self)  # before the start, because another thread may fork meanwhile
        try:
            super().__init__(**options)  # type: ignore[no-untyped-call]
        except BaseException:  # Dask cleans up only after an Exception
            with contextlib.suppress(Exception):
                self.close(timeout=_CLOSE_SECONDS)
            raise

    def disown(self) -> None:
        """See `forks.tell`: scheduler and nannies belong to the parent.

        At the end of the child, Dask would wait for an event loop that no thread runs and remove the parent's folders;
        `multiprocessing` would end the workers, which it takes for the child's children.
        """
        self.status = Status.closed  # so that Dask has nothing to close
        servers = [self.scheduler, *self.workers.values()]
        for server in servers:
            if (folder := getattr(server, "_workdir", None)) is not None:
                folder._finalizer.detach()
            if isinstance(server, ReportingNanny):
                server.disown()
        with contextlib.suppress(RuntimeError):  # there is no loop yet
            forks.let_go_loop(self.loop)

    def _update_worker_status(self, op: str, msg: Any) -> None:
        # 15 s after the loss of a worker, LocalCluster would close its nanny if the worker is missing. That would also
        # happen to a worker that came back long ago and has just been lost again.
        DaskCluster._update_worker_status(self, op, msg)


def first_of(error: BaseException) -> BaseException:
    """The original error behind others that Dask's error handling has raised."""
    while (before := error.__cause__ or error.__context__) is not None:
        error = before
    return error


def worker_exit(pid: int, timeout_seconds: float) -> WorkerExit | None:
    """How a worker process of this driver ended; None if that is not known in time, or no nanny watches it."""

    def settled() -> bool:
        return pid in _exits or not any(nanny.watches(pid) for nanny in list(_nannies))

    with _exit_seen:
        _exit_seen.wait_for(settled, timeout_seconds)
        return _exits.get(pid)


def _nannies_of(scheduler: str, name: str) -> list[ReportingNanny]:
    """The nannies for a worker's name: one, and possibly older ones of a closed scheduler that had the same port."""
    return [each for each in list(_nannies) if str(each.name) == name and each.scheduler_addr == scheduler]


def settled(scheduler: str, name: str, pid: int) -> bool:
    """Whether the worker's nanny, if it is in this process, has seen the worker start.

    A worker is usable a moment earlier. But Dask's nannies fail if their worker dies in that moment: they end the next
    one, or themselves.

    Args:
      scheduler: Address of the scheduler.
      name: Name of the worker.
      pid: Its process.
    """
    nannies = _nannies_of(scheduler, name)
    if not nannies:
        return True
    return any(each.pid == pid and each.process.status is Status.running for each in nannies if each.process)


def restart_failure(scheduler: str, name: str) -> str:
    """Why a lost embedded worker is not restarted, or was not at the last attempt; "" if it may come back."""
    nannies = _nannies_of(scheduler, name)
    running = [each for each in nannies if each.status not in (Status.closing, Status.closed)]
    if running:
        failure, seconds = running[0].restart_failure, RESTART_AGAIN_SECONDS
        return f"its restart failed ({failure}), and is tried again every {seconds:g} s" if failure else ""
    if nannies:
        return f"its nanny was closed ({nannies[0].close_reason})"
    return "it has no nanny"


def start(
    *,
    workers: int,
    processes: bool,
    listen: str,
    memory_limit: str | int | None,
    environment: dict[str, str],
    gpus: Sequence[str] = (),
    most: int = 0,
) -> LocalCluster:
    """Starts scheduler and workers on this machine.

    Args:
      workers: Number of worker processes (or of workers in this process).
      processes: Whether each worker has its own process; otherwise all are in this one.
      listen: Address to listen on.
      memory_limit: Limit per worker, as Dask reads it: "auto", "2GiB", bytes, or None for no limit.
      environment: Variables to set in the worker processes.
      gpus: The GPU of each worker process, as CUDA_VISIBLE_DEVICES names it; empty for workers on CPUs.
      most: The largest number of workers at any time, if more than `workers`; they share files and cores.

    Raises:
      UnsafeBind: if `listen` is not a loopback address.
      UnavailableError: if the machine does not allow what a cluster needs; it says what to change.
    """
    if not is_loopback(listen):
        raise UnsafeBind(
            f"the embedded cluster listens on loopback only, got {listen!r}; for other machines start a Dask "
            f"cluster with TLS and give wb.connect its address or Client"
        )
    most = max(workers, most)
    _ensure_descriptors(_DESCRIPTORS + _DESCRIPTORS_PER_WORKER * most)
    if processes:
        _ensure_file_size()
        _ensure_loopback(listen)
    # Workbench reports lost workers in the cell.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    options: dict[str, Any] = {"worker_class": QuietWorker}
    if processes:
        leave_main_out()
        fork_server.start()
        options = {
            "security": Security.temporary(),
            "protocol": "tls://",
            "worker_class": ReportingNanny,
            "memory_limit": memory_limit,
            # All variables, because the fork server has the values from its own start.
            "env": WORKER_ENVIRONMENT | dict(os.environ) | blas.environment(most) | environment,
        }
        if gpus:
            options["gpus"] = tuple(gpus)
    with dask.config.set(_settings(most)):
        return EmbeddedCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=processes,
            host=listen if processes else None,
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
            **options,
        )


def _settings(workers: int) -> dict[str, Any]:
    """Dask's settings for an embedded cluster with this many workers."""
    before_start = blas.environment(workers) | fork_server.MEMORY_ENVIRONMENT
    return {
        # Dask's own web pages have no authentication, so none are served.
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        **SHORT_LOGS,
        # Workers report the use of their own GPUs (`process/gpu_use.py`). Dask's monitor would query the first GPU on
        # the event loop twice a second, and fails to start if CUDA_VISIBLE_DEVICES is -1.
        "distributed.diagnostics.nvml": False,
        # Dask samples each loop's stack every 10 ms and checks its delay every 20 ms, for a dashboard that is not
        # served here. Both take the GIL from the replicas: 10 % of a core with two idle workers, 2 % without.
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.interval": "500ms",
        "distributed.nanny.pre-spawn-environ": {} if fork_server.AVAILABLE else before_start,
    }


def _ensure_file_size() -> None:
    """Checks that this process may write files as large as a cluster needs; shared memory counts as a file.

    Raises:
      UnavailableError: if it may not.
    """
    if resource is None:
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if soft != resource.RLIM_INFINITY and soft < _FILE_BYTES:
        raise UnavailableError(
            f"this process may write files of {soft:,} bytes only, which also limits shared memory, and the cluster "
            f"needs {_FILE_BYTES:,}: raise the limit (`ulimit -f unlimited` in the shell that starts Python)"
        )


def _ensure_loopback(address: str) -> None:
    """Checks that this process can listen on `address` and connect to itself; Dask would retry for a minute.

    Raises:
      UnavailableError: if it cannot.
    """
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.create_server((address, 0), family=family) as server:
            socket.create_connection(server.getsockname()[:2], _LOOPBACK_SECONDS).close()
    except OSError as error:
        raise UnavailableError(
            f"{address} cannot be used ({error}): the embedded cluster needs a loopback interface that is up. Bring it "
            f"up (`ip link set lo up`), check the container's network and firewall, or use threads: "
            f"wb.connect(processes=False)"
        ) from error


def _ensure_descriptors(needed: int) -> None:
    """Raises this process's limit of open files if it is too low.

    Raises:
      UnavailableError: if the system does not allow that.
    """
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise UnavailableError(
            f"this process may open {hard} files only, and the cluster needs about {needed}: raise the limit "
            f"(`ulimit -n {max(1024, needed)}` in the shell that starts Python) or use fewer replicas"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
