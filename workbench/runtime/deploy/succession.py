"""Finds the successor of a lost worker: its restarted process, itself once reachable again, or a spare one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

from distributed import Client

from workbench.errors import ClusterBusy, ReplicaLost, UnavailableError
from workbench.runtime.deploy import embedded
from workbench.runtime.deploy.claiming import Connector
from workbench.runtime.deploy.lookout import Lookout, end_process
from workbench.runtime.deploy.worker_link import EndKind, WorkerLink

# How long a nanny that answers may take to restart its worker. Steps wait for nothing else.
RESTART_SECONDS = 60.0
# How long to prefer a restarted worker to a spare one, if a nanny may restart it.
_SPARE_SECONDS = 3.0
_CHECK_SECONDS = 0.5
# A round of questions takes a second or two; if it takes longer than this, Dask's event loop is blocked.
_LOOP_SECONDS = 15.0
_DISMISS_SECONDS = 5.0


class Succession:
    """Finds successors of lost workers and opens their links.

    A step waits for a successor only while the nanny of the lost worker answers, a sign that one will come. Otherwise
    it fails at once, as does each further step until there is a successor.
    """

    def __init__(self, client: Client, connector: Connector, *, own_nannies: bool) -> None:
        """With `own_nannies`, the nannies are in this process, which is a sufficient sign."""
        self._client = client
        self._connector = connector
        self._own_nannies = own_nannies
        self._lookout = Lookout(client, lambda: connector.hosts)
        self._waited: dict[str, float] = {}  # missing worker -> since when it is waited for

    def replacement(self, lost: WorkerLink) -> WorkerLink:
        """The link to the successor of a lost worker.

        Raises:
          ReplicaLost: if there is none, and no sign that one will come.
          UnavailableError: if the scheduler is gone, too, or Dask's event loop does not run.
        """
        self._connector.hosts.pop(lost.address, None)
        nanny = self._connector.nannies.get(lost.name, "")
        self._lookout.begin(lost.name, nanny)
        begun = time.monotonic()
        since = self._waited.setdefault(lost.name, begun)
        while True:
            if (successor := self._next(lost, since)) is not None:
                del self._waited[lost.name]
                self._lookout.end(lost.name)
                return successor
            if self._lookout.trouble is not None:
                raise self._lookout.trouble
            if not self._may_come(lost, nanny, since):
                raise self._absent(lost, nanny)
            if time.monotonic() > max(since + _LOOP_SECONDS, begun + _CHECK_SECONDS):
                self._check_loop(lost)
            self._lookout.wait(_CHECK_SECONDS)

    def is_back(self, lost: WorkerLink, settled_seconds: float) -> bool:
        """Whether a missing worker has a successor that has answered for that long; sends no questions."""
        free = self._lookout.free(settled_seconds)
        return self._find(lost, free, spares=True) is not None

    def give_up(self, lost: WorkerLink) -> None:
        """Gives up the state of an unreachable worker: its nanny restarts it, now or when it is reachable again.

        Without a nanny, the worker continues, so that it can be its own successor when it is reachable again.
        """
        if nanny := self._connector.nannies.get(lost.name, ""):
            self._in_loop(self._end_process(nanny, lost.address))

    def dismiss(self, lost: WorkerLink) -> None:
        """Ends a worker that must not continue, without waiting. Any thread."""
        nanny = self._connector.nannies.get(lost.name, "")
        self._in_loop(self._end_process(nanny, lost.address) if nanny else self._unregister(lost.address))

    def close(self) -> None:
        """Stops looking for workers."""
        self._lookout.close()

    def _next(self, lost: WorkerLink, since: float) -> WorkerLink | None:
        waited = time.monotonic() - since
        nanny = self._connector.nannies.get(lost.name, "")
        while True:
            spares = waited > _SPARE_SECONDS or not self._may_come(lost, nanny, since)
            worker = self._find(lost, self._lookout.free(), spares=spares)
            if worker is None:
                return None
            try:
                if not self._fits(worker, lost):
                    self._lookout.forget(worker["address"])
                    continue
                self._connector.claim({worker["address"]: worker})
                # The description is older than the claim, which set its devices.
                described = {**worker, "devices": lost.device_count, "name": lost.name, "host": lost.host}
                link = self._connector.open(described, lost.task)
            except (UnavailableError, ClusterBusy):  # it has died, too, or another notebook has claimed it
                self._lookout.forget(worker["address"])
                continue
            if worker["name"] != self._connector.dask_names[lost.name]:
                self._connector.dask_names[lost.name] = worker["name"]
                if not nanny and not lost.local:  # the lost worker may come back, but is not needed any more
                    self._in_loop(self._unregister(lost.address))
            return link

    def _find(
        self, lost: WorkerLink, free: dict[str, dict[str, Any]], *, spares: bool
    ) -> dict[str, Any] | None:
        """The restarted worker, otherwise an unused one on the same host, which batch systems may provide."""
        names = self._connector.dask_names
        candidates = [worker for worker in free.values() if self._is_other(worker, lost)]
        for worker in candidates:
            if worker["name"] == names[lost.name]:
                scheduler: Any = self._client.scheduler
                settled = embedded.settled(scheduler.address, worker["name"], worker["pid"])
                return worker if settled else None
        called = self._connector.names_of_hosts.get(lost.host, lost.host)
        for worker in candidates if spares else ():
            if worker["host"] == called and worker["name"] not in names.values():
                return worker
        return None

    def _is_other(self, worker: dict[str, Any], lost: WorkerLink) -> bool:
        """Whether this is a different process than the lost one, or the same one after it has released everything."""
        now = worker["address"], worker["pid"], worker["machine"]
        if now != (lost.address, lost.pid, lost.machine):
            return True
        has_nanny = bool(self._connector.nannies.get(lost.name, ""))
        has_left = lost.lost is not None and lost.lost.kind is EndKind.LEFT
        return not (lost.local or has_left or has_nanny or worker["held"])

    def _fits(self, worker: dict[str, Any], lost: WorkerLink) -> bool:
        """Whether a spare worker shares memory with the other workers of its future host."""
        if worker["name"] == self._connector.dask_names[lost.name]:
            return True
        path = self._connector.path_on(lost.host)
        if not path:
            return True
        with contextlib.suppress(ClusterBusy):
            self._connector.claim({worker["address"]: worker})  # the test needs the claim
            if not self._connector.obstacles(path, [worker["address"]])[worker["address"]]:
                return True
            self._connector.release([worker["address"]])
        return False

    def _restart_failure(self, lost: WorkerLink) -> str:
        scheduler: Any = self._client.scheduler
        return embedded.restart_failure(scheduler.address, self._connector.dask_names[lost.name])

    def _may_come(self, lost: WorkerLink, nanny: str, since: float) -> bool:
        """Whether a restarted worker may still come."""
        now = time.monotonic()
        if not self._lookout.has_asked_all():
            return True
        if self._own_nannies:
            return now - since < RESTART_SECONDS and not self._restart_failure(lost)
        answers = self._lookout.answers_since(nanny) if nanny else None
        return answers is not None and now - max(answers, since) < RESTART_SECONDS

    def _check_loop(self, lost: WorkerLink) -> None:
        if not self._lookout.has_asked_all():
            raise UnavailableError(
                f"worker {lost.name} on host {lost.host} {lost.lost}, and nothing could tell which worker "
                f"takes its place: "
                f"something blocks Dask's event loop in this process, for more than {_LOOP_SECONDS:.0f} s now; steps "
                f"recover once it runs again"
            )

    def _absent(self, lost: WorkerLink, nanny: str) -> ReplicaLost:
        for_seconds = time.time() - lost.lost_at
        when = time.strftime("%H:%M:%S", time.localtime(lost.lost_at))
        scheduler: Any = self._client.scheduler
        start = f"start `dask worker {scheduler.address}` on {lost.host}"
        if self._own_nannies:
            sign = self._restart_failure(lost) or f"it was not restarted within {RESTART_SECONDS:.0f} s"
            remedy = "repair that, or connect again with wb.connect(...)"
        elif not nanny:
            sign, remedy = "it has no nanny that restarts it", start
        elif self._lookout.answers_since(nanny) is None:
            sign = f"nor does its nanny at {nanny} answer: its host is down, the network is cut, or both were closed"
            remedy = f"bring host {lost.host} back, or {start}"
        else:
            sign = f"its nanny at {nanny} answers and has not restarted it within {RESTART_SECONDS:.0f} s"
            remedy = f"look into its log, or {start}"
        return ReplicaLost(
            f"worker {lost.name} on host {lost.host} ({lost.address}, pid {lost.pid}) {lost.lost}, and no worker has "
            f"taken its place since {when}, for {for_seconds:.0f} s: {sign}. To go on, {remedy}; the next step after "
            f"that recovers, and until then each one fails immediately",
            worker=lost.address,
            pid=lost.pid,
            cause=str(lost.lost),
        )

    # -- asking Dask to end workers
    # --------------------------------------------------------------------------

    def _in_loop(self, work: Any) -> None:
        loop: Any = self._client.loop

        async def run() -> None:
            await work

        loop.add_callback(run)

    async def _end_process(self, nanny: str, address: str) -> None:
        """Ends the process; its nanny then restarts the worker."""
        try:
            await end_process(self._client, nanny, address)
        except Exception:  # unreachable or closing: when it answers, if its worker is still missing
            self._lookout.end_later(nanny, address)

    async def _unregister(self, address: str) -> None:
        """Unregisters a worker without a nanny, which then ends itself."""
        scheduler: Any = self._client.scheduler
        with contextlib.suppress(OSError, TimeoutError):
            stimulus = f"workbench-dismiss-{address}"
            await asyncio.wait_for(
                scheduler.unregister(address=address, stimulus_id=stimulus), _DISMISS_SECONDS
            )
