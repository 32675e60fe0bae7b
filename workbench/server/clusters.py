"""The clusters that the Jupyter server shows: the announced ones, and the last ended ones."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable
from typing import Any, Final

from workbench.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, UnavailableError
from workbench.runtime.deploy.registry import Entry, Registry
from workbench.server.job_link import JobLink
from workbench.server.limits import USUAL, Limits
from workbench.server.worker_options import WorkerOptions, check_number, check_range

_LOOK_SECONDS: Final = 1.0
_ANSWER_SECONDS: Final = 10.0
_SCALE_SECONDS: Final = 90.0
_IDLE_LOOK_SECONDS: Final = 30.0


class Clusters:
    """Used by the server's event loop only. Watches the registry while there are listeners.

    Attributes:
      limits: What the server allows.
      links: The clusters by id, newest first.
    """

    def __init__(self, registry: Registry, limits: Limits = USUAL) -> None:
        self.limits = limits
        self.links: dict[str, JobLink] = {}
        self._registry = registry
        self._listeners: dict[Callable[[], None], Callable[[], dict[str, frozenset[str]]]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._started: dict[str, asyncio.subprocess.Process] = {}
        self._starting = 0
        self._ending_idle: asyncio.Task[None] | None = None

    def listen(self, changed: Callable[[], None], wanted: Callable[[], dict[str, frozenset[str]]]) -> None:
        """Calls `changed` when there is something new; `wanted()` returns the requested channels of each cluster."""
        self._listeners[changed] = wanted
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self._look())

    def unlisten(self, changed: Callable[[], None]) -> None:
        """Undoes `listen`."""
        self._listeners.pop(changed, None)
        self.update_wanted()

    def update_wanted(self) -> None:
        """Requests from each cluster only what listeners want."""
        wanted: dict[str, frozenset[str]] = {}
        for ask in self._listeners.values():
            for id, channels in ask().items():
                wanted[id] = wanted.get(id, frozenset()) | channels
        for id, link in self.links.items():
            link.watch(wanted.get(id, frozenset()))

    def refresh(self) -> None:
        """Reads the registry now."""
        entries = self._registry.entries()
        new = [entry for entry in entries if entry.id not in self.links]
        for entry in new:
            self.links[entry.id] = JobLink(entry, self._changed)
        now = asyncio.get_running_loop().time()
        for entry in entries:
            link = self.links[entry.id]
            # It is alive after all: one of the two processes was suspended for a while.
            if link.ended and now >= link.retry_at:
                self.links[entry.id] = JobLink(entry, self._changed)
                new.append(entry)
        alive = {entry.id for entry in entries}  # one of those to retry may have ended
        ended = [id for id, link in self._newest_first() if link.ended and id not in alive]
        for id in ended[self.limits.ended_clusters :]:
            del self.links[id]
        if new:
            self.links = dict(self._newest_first())
            self.update_wanted()
            self._changed()

    def find(self, id: str) -> JobLink:
        """The cluster with this id.

        Raises:
          NotFoundError: if there is none.
        """
        self.refresh()
        if id not in self.links:
            raise NotFoundError(f"no cluster has the id {id[:40]!r}")
        return self.links[id]

    def describe(self) -> list[dict[str, Any]]:
        """All clusters, newest first, for display; without addresses or secrets."""
        return [describe(link) for link in self.links.values() if link.summary is not None]

    async def start(self, options: WorkerOptions) -> Entry:
        """Starts workers that end with this server.

        Raises:
          InvalidArgumentError: if there are more than this server allows.
          FailedPreconditionError: if there are many already.
          UnavailableError: if they cannot be started.
        """
        self._check_allowed(max(options.replicas, options.maximum))
        self._started = {id: one for id, one in self._started.items() if one.returncode is None}
        if not self.limits.clusters:
            raise FailedPreconditionError(
                "this server starts no clusters: its administrator sets WorkbenchApp.max_clusters"
            )
        if len(self._started) + self._starting >= self.limits.clusters:
            raise FailedPreconditionError(
                f"{self.limits.clusters} clusters were started here; stop one first"
            )
        self._starting += 1  # at once, so that simultaneous requests cannot exceed the limit
        try:
            return await self._start(options)
        finally:
            self._starting -= 1

    async def _start(self, options: WorkerOptions) -> Entry:
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-m", "workbench.server.workers", "--options", options.to_json())
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        assert process.stdout is not None
        try:
            line = await asyncio.wait_for(process.stdout.readline(), self.limits.start_seconds)
            said = json.loads(
                line or b'{"problem": "their process has ended; the server\'s log may say why"}'
            )
        except (TimeoutError, ValueError) as error:
            _end(process)
            raise UnavailableError(
                f"the workers did not start within {self.limits.start_seconds:g} s; where that is too short, "
                "raise WorkbenchApp.start_seconds in the configuration of the Jupyter server"
            ) from error
        if "problem" in said:
            _end(process)
            raise UnavailableError(f"the workers could not be started: {said['problem']}")
        self._started[said["id"]] = process
        if self.limits.idle_minutes and (self._ending_idle is None or self._ending_idle.done()):
            self._ending_idle = asyncio.ensure_future(self._end_idle())
        self.refresh()
        return self._registry.entry(said["id"])

    async def scale(self, id: str, replicas: int, maximum: int = 0, *, confirmed: bool = False) -> None:
        """Changes the number of workers; cancels a change in progress.

        Args:
          id: The cluster's id.
          replicas: The number of replicas; with `maximum`, while no notebook uses them.
          maximum: The number of replicas while a notebook uses them; 0 for a fixed number.
          confirmed: Whether replicas that a notebook uses may be removed with their values.

        Raises:
          InvalidArgumentError: if one of the numbers is invalid.
          NotFoundError, UnavailableError, FailedPreconditionError: if that is not possible.
        """
        link = self.find(id)
        check_number(replicas)
        check_range(replicas, maximum)
        self._check_allowed(max(replicas, maximum))
        users = self._users_of(id)
        # The workers may not have told yet how many there are; a notebook that uses them has counted them, too.
        there = max(0 if one.summary is None else one.summary["replicas_live"] for one in (link, *users))
        if users and not confirmed and max(replicas, maximum) < there:
            raise FailedPreconditionError(
                "a notebook uses these workers, and the values of replicas that are taken away are lost: close its "
                "cluster first, and connect again after the change"
            )
        await link.ask("scale", _SCALE_SECONDS, replicas=replicas, maximum=maximum)

    async def stop(self, id: str) -> None:
        """Ends a cluster; forgets one that has already ended.

        Raises:
          NotFoundError, UnavailableError: if that is not possible.
        """
        link = self.find(id)
        if not link.ended:
            await link.ask("close", _ANSWER_SECONDS)
        else:
            del self.links[id]
            self._changed()

    async def close(self) -> None:
        """Ends all connections, and the workers that were started here."""
        self._listeners.clear()
        for task in (self._looking, self._ending_idle):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        for link in self.links.values():
            await link.close()
        for process in self._started.values():
            _end(process)
        for process in self._started.values():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _ANSWER_SECONDS)

    def _check_allowed(self, replicas: int) -> None:
        if replicas > self.limits.replicas:
            raise InvalidArgumentError(
                f"this server allows {self.limits.replicas} replicas in a cluster, not {replicas}: its administrator "
                "sets WorkbenchApp.max_replicas"
            )

    def _users_of(self, id: str) -> list[JobLink]:
        """The notebooks that use these workers."""
        return [link for link in self.links.values() if link.entry.workers_of == id and not link.ended]

    async def _end_idle(self) -> None:
        """Stops workers that this server started once no notebook has used them for the allowed time."""
        allowed = 60 * self.limits.idle_minutes
        used: dict[str, float] = {}  # id -> when a notebook was last seen to use it
        while running := [id for id, process in self._started.items() if process.returncode is None]:
            self.refresh()
            now = asyncio.get_running_loop().time()
            for id in running:
                if self._users_of(id):
                    used[id] = now
                elif now - used.setdefault(id, now) >= allowed:
                    # A process that does not answer now is queried again, and so is one that a notebook is connecting
                    # to.
                    with contextlib.suppress(NotFoundError, UnavailableError, FailedPreconditionError):
                        await self.find(id).ask("close_unused", _ANSWER_SECONDS)
            await asyncio.sleep(min(_IDLE_LOOK_SECONDS, allowed / 4))

    async def _look(self) -> None:
        while self._listeners:
            self.refresh()
            await asyncio.sleep(_LOOK_SECONDS)

    def _newest_first(self) -> list[tuple[str, JobLink]]:
        return sorted(self.links.items(), key=lambda item: (-item[1].entry.started, item[0]))

    def _changed(self) -> None:
        for changed in tuple(self._listeners):
            changed()


def describe(link: JobLink) -> dict[str, Any]:
    """A cluster for display."""
    entry = link.entry
    return {
        "id": entry.id,
        "kind": entry.kind,
        "name": entry.name,
        "pid": entry.pid,
        "started": entry.started,
        "kernel": entry.kernel,
        "workers_of": entry.workers_of,
        "connect_code": connect_code(link),
        "summary": link.summary,
    }


def connect_code(link: JobLink) -> str:
    """A line of Python that connects a notebook to these workers, or starts as many of its own."""
    if link.entry.kind == "workers":
        return f'cluster = wb.connect("workbench://{link.entry.id}")'
    if link.entry.workers_of:
        return f'cluster = wb.connect("workbench://{link.entry.workers_of}")'
    summary = link.summary or {"replicas": 2, "hosts": 1}
    hosts = f", hosts={summary['hosts']}" if summary["hosts"] > 1 else ""
    return f"cluster = wb.connect(replicas={summary['replicas']}{hosts})"


def _end(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        process.stdin.close()  # it ends when its input closes
