"""A task's Dask workers: started when the scheduler answers, and restarted whenever they have lost it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from distributed import Nanny
from distributed.comm.core import connect as connect_comm
from distributed.security import Security

from workbench.device_names import SERVICE_JOBS
from workbench.errors import UnavailableError
from workbench.runtime.deploy.cut_off import REJOINS
from workbench.runtime.deploy.embedded import ReportingNanny, first_of
from workbench.runtime.joining.farewell import Hearing
from workbench.runtime.joining.roster import Roster
from workbench.runtime.process import blas, fork_server, gpus

_ANSWER_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 0.5
_START_SECONDS: Final = 60.0
_CLOSE_SECONDS: Final = 10.0
_LEAVE_SECONDS: Final = 5.0
_TOLD_SECONDS: Final = 1.0
"""How much later than its workers a task may learn that the cluster has ended."""
_FAREWELL: Final = "scheduler-close"
"""The reason that Dask's scheduler sends its workers when it is closed rather than lost."""


class WrongSecret(UnavailableError):
    """The scheduler and this task have different secrets; waiting does not help."""


class _Ended(Exception):  # not an error, but the normal end of a task
    """The chief has ended the cluster."""


class _TaskNanny(ReportingNanny):
    """Records whether the cluster was ended or only lost.

    Attributes:
      ended: Whether the scheduler made the worker close because the scheduler itself closes.
      leaving: Set when the worker begins to close.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ended = False
        self.leaving = asyncio.Event()

    def close_gracefully(self, reason: str = "nanny-close-gracefully") -> None:
        """Called by its worker when that closes. This nanny ends with it; a task that continues starts new ones."""
        self.ended = self.ended or reason == _FAREWELL
        self.leaving.set()
        # Not that of `ReportingNanny`, which would look for the lost scheduler and restart the worker.
        Nanny.close_gracefully(self, reason)


@dataclass(frozen=True, slots=True)
class Membership:
    """One task's part of the cluster.

    Attributes:
      roster: The task and its cluster.
      scheduler: The scheduler's address, with an IP address.
      ip: The IP address at which the workers listen.
      replicas: Number of its CPU devices if it has no GPUs.
      security: The TLS of all tasks.
      patience_seconds: How long to try to reach a missing scheduler.
      say: Takes a line for the user.
    """

    roster: Roster
    scheduler: str
    ip: str
    replicas: int
    security: Security
    patience_seconds: float
    say: Callable[[str], None]

    async def keep(self) -> None:
        """Works until the cluster ends; rejoins a lost cluster.

        Raises:
          UnavailableError: if the scheduler does not come back, or has another secret.
          asyncio.CancelledError: if cancelled; the workers are then closed.
        """
        with contextlib.suppress(_Ended):
            while True:
                await self._member()
                self.say(
                    f"{self.roster.task} has lost the cluster at {self.scheduler}; tries to join again for "
                    f"{self.patience_seconds:.0f} s"
                )
        self.say("the chief has ended the cluster")

    async def _member(self) -> None:
        """Joins the cluster and works until the cluster is lost.

        Raises:
          _Ended: if it was ended instead.
        """
        nannies, hearing = await self._joined()
        try:
            await _until_one_is_gone(nannies, hearing)
            if any(nanny.ended for nanny in nannies) or await hearing.ended(_TOLD_SECONDS):
                raise _Ended
        finally:
            hearing.close()
            await _close(nannies)

    async def _joined(self) -> tuple[list[_TaskNanny], Hearing]:
        """Starts nannies; returns them once the scheduler has accepted their workers.

        Raises:
          UnavailableError: if that takes too long.
          _Ended: if the chief ends the cluster meanwhile.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.patience_seconds
        told = ""
        while True:
            why = await self._obstacle()
            if not why:
                try:
                    joined = await self._start()
                except _Ended:
                    raise
                except Exception as error:  # Dask's, or any error of a network that fails meanwhile
                    why = f"its workers do not start: {first_of(error)}"
                else:
                    self.say(f"{self.roster.task} has joined the cluster at {self.scheduler}")
                    return joined
            if loop.time() > deadline:
                raise UnavailableError(
                    f"{self.roster.task} could not join the cluster within {self.patience_seconds:.0f} s: {why}"
                )
            if why != told:
                self.say(f"{self.roster.task} waits up to {deadline - loop.time():.0f} s: {why}")
                told = why
            await asyncio.sleep(_RETRY_SECONDS)

    async def _obstacle(self) -> str:
        """Why the task cannot join now; "" if it can.

        Raises:
          WrongSecret: if it can never join.
        """
        try:
            identity = await asyncio.wait_for(_identity(self.scheduler, self.security), _ANSWER_SECONDS)
        except (OSError, TimeoutError) as error:
            if (refused := _refused_certificate(error)) is not None:
                raise WrongSecret(
                    f"the scheduler at {self.scheduler} has a different secret from this task "
                    f"({refused.verify_message})"
                ) from error
            return f"no scheduler of {self.roster.chief} answers at {self.scheduler}"
        if identity.get("type") != "Scheduler":
            return f"what answers at {self.scheduler} is not a scheduler"
        names = self.roster.task.worker_names(len(self._variables()))
        taken = [worker for worker in identity["workers"].values() if worker["name"] in names]
        if taken:
            return (
                f"the cluster already has a {self.roster.task} at {taken[0]['host']}, and may not have noticed "
                f"that it has ended; if that is another task, give this one another number"
            )
        return ""

    def _variables(self) -> list[dict[str, str]]:
        """The environment of each Dask worker, one per device."""
        if self.roster.task.job in SERVICE_JOBS[:1]:
            return [{"CUDA_VISIBLE_DEVICES": ""}]
        if found := gpus.default():
            return [{"CUDA_VISIBLE_DEVICES": gpu} for gpu in found]
        return [{} for _ in range(self.replicas)]

    async def _start(self) -> tuple[list[_TaskNanny], Hearing]:
        hearing = await Hearing.of(self.scheduler, self.security)
        nannies = self._nannies()
        starting = asyncio.gather(*map(_started, nannies))
        first: set[asyncio.Future[Any]] = {starting, hearing.over}
        try:
            # Not `wait_for`, after which asyncio would log the cancelled call.
            async with asyncio.timeout(_START_SECONDS):
                await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                raise _Ended if hearing.over.result() else ConnectionError("the scheduler has ended")
            starting.result()
        except BaseException as error:
            starting.cancel()
            await asyncio.wait({starting}, timeout=_CLOSE_SECONDS)
            # asyncio logs an exception that is never retrieved.
            _ = not starting.done() or starting.cancelled() or starting.exception()
            ended = isinstance(error, Exception) and await hearing.ended(_TOLD_SECONDS)
            hearing.close()
            await _close(nannies)
            if ended:
                raise _Ended from error
            raise
        return nannies, hearing

    def _nannies(self) -> list[_TaskNanny]:
        variables = self._variables()
        common = (
            gpus.WORKER_ENVIRONMENT
            | dict(os.environ)
            | blas.environment(len(variables) * self.roster.neighbours)
        )
        common[REJOINS] = "1"
        names = self.roster.task.worker_names(len(variables))
        if fork_server.AVAILABLE:
            fork_server.start()
        return [
            _TaskNanny(
                self.scheduler,
                name=name,
                nthreads=1,
                host=self.ip,
                security=self.security,
                memory_limit=None,
                silence_logs=logging.CRITICAL,
                env=common | own,
                dashboard_address="127.0.0.1:0",
            )
            for name, own in zip(names, variables, strict=True)
        ]


async def _until_one_is_gone(nannies: list[_TaskNanny], hearing: Hearing) -> None:
    """Returns when a nanny has closed, or when the cluster has ended and the workers have had time to close."""

    async def ended() -> None:
        if not await asyncio.shield(hearing.over):
            await asyncio.Event().wait()  # the workers themselves handle an unreachable cluster
        await asyncio.sleep(_LEAVE_SECONDS)

    waits = [asyncio.ensure_future(wait) for wait in (ended(), *map(_finished, nannies))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()


async def _started(nanny: _TaskNanny) -> None:
    await nanny


async def _finished(nanny: _TaskNanny) -> None:
    """Returns when a nanny has closed, or its worker's time to close is over."""
    finished = asyncio.ensure_future(nanny.finished())  # type: ignore[no-untyped-call]
    leaving = asyncio.ensure_future(nanny.leaving.wait())
    try:
        await asyncio.wait({finished, leaving}, return_when=asyncio.FIRST_COMPLETED)
        # A worker with a replica in endless user code is killed.
        await asyncio.wait({finished}, timeout=_CLOSE_SECONDS)
    finally:
        finished.cancel()
        leaving.cancel()


async def _close(nannies: list[_TaskNanny]) -> None:
    async def close(nanny: _TaskNanny) -> None:
        with contextlib.suppress(Exception):  # any error, because the scheduler may be gone
            await asyncio.wait_for(nanny.close(), _CLOSE_SECONDS)

    await asyncio.gather(*map(close, nannies))


async def _identity(address: str, security: Security) -> dict[str, Any]:
    comm = await connect_comm(address, timeout=_ANSWER_SECONDS, **security.get_connection_args("worker"))
    try:
        await comm.write({"op": "identity", "reply": True, "n_workers": -1})
        answer = await comm.read()
    finally:
        comm.abort()
    return answer if isinstance(answer, dict) else {}


def _refused_certificate(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """The rejected certificate among the causes of a Dask error."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__
    return error
