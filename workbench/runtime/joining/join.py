"""Joins a cluster: the chief's scheduler, and this task's workers, until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Callable
from typing import Final

import dask
from distributed import Scheduler

from workbench.errors import UnavailableError
from workbench.runtime.deploy import embedded
from workbench.runtime.joining.addresses import host_and_port, ip_among, ip_towards, own_ip, text_of
from workbench.runtime.joining.attendance import Attendance
from workbench.runtime.joining.farewell import Farewell
from workbench.runtime.joining.membership import Membership
from workbench.runtime.joining.roster import Roster
from workbench.runtime.joining.secret import Secret
from workbench.runtime.shipping.main_module import leave_main_out

_CLOSE_SECONDS: Final = 10.0
_SETTINGS: Final = {
    # Dask's own web pages have no authentication, so none are served.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    **embedded.SHORT_LOGS,
}


def join(
    roster: Roster, *, secret: Secret, replicas: int, patience_seconds: float, say: Callable[[str], None]
) -> None:
    """Makes this process one task of a cluster. Returns after Ctrl-C or SIGTERM, or when the chief ends the cluster.

    Args:
      roster: The task and its cluster.
      secret: The secret that all tasks share.
      replicas: Number of CPU devices of this task if it has no GPUs.
      patience_seconds: How long to wait for the chief, or in the chief for the other tasks.
      say: Called with each line for the user.

    Raises:
      UnavailableError: if that time has passed, an address is in use or not this machine's, or the secrets differ.
    """
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    leave_main_out()
    with dask.config.set(_SETTINGS):
        asyncio.run(_until_interrupted(roster, secret, replicas, patience_seconds, say))


async def _until_interrupted(
    roster: Roster, secret: Secret, replicas: int, patience_seconds: float, say: Callable[[str], None]
) -> None:
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted.set)
    working = asyncio.ensure_future(_work(roster, secret, replicas, patience_seconds, say))
    waiting = asyncio.ensure_future(interrupted.wait())
    await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not working.done():
        say(f"{roster.task} leaves")
        working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working


async def _work(
    roster: Roster, secret: Secret, replicas: int, patience_seconds: float, say: Callable[[str], None]
) -> None:
    host, port = host_and_port(roster.address)
    ip = own_ip(host, roster.peers) if roster.leads else ip_among(host, roster.peers)
    membership = Membership(
        roster=roster,
        scheduler=f"tls://{text_of(ip, port)}",
        ip=ip if roster.leads else ip_towards(ip),
        replicas=replicas,
        security=secret.security(),
        patience_seconds=patience_seconds,
        say=say,
    )
    if not roster.leads:
        await membership.keep()
        return
    async with _scheduler(membership) as attendance:
        working = asyncio.ensure_future(membership.keep())
        complete = asyncio.ensure_future(attendance.complete.wait())
        try:
            await asyncio.wait(
                {working, complete}, timeout=patience_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if not complete.done() and not working.done() and attendance.missing:
                raise UnavailableError(
                    f"{', '.join(map(str, attendance.missing))} did not join within {patience_seconds:.0f} s"
                )
            await asyncio.wait({working})  # `await working` would cancel it when this is cancelled
            working.result()
        finally:
            attendance.over = True  # set before the chief's own workers leave, so that this is not reported
            for each in (working, complete):
                each.cancel()
            await asyncio.wait({working, complete}, timeout=2 * _CLOSE_SECONDS)


@contextlib.asynccontextmanager
async def _scheduler(membership: Membership) -> AsyncIterator[Attendance]:
    """Runs the chief's scheduler. When it ends, all workers are informed that the cluster was ended."""
    roster, address = membership.roster, membership.scheduler
    try:
        scheduler = await Scheduler(
            host=address,
            security=membership.security,
            dashboard=False,
            dashboard_address="127.0.0.1:0",
        )
    except Exception as error:  # Dask's error, which wraps the system's
        first = embedded.first_of(error)
        raise UnavailableError(
            f"the scheduler cannot listen at {address}: {first}; is another one running there?"
        ) from error
    invitation = f"in a notebook: wb.connect({address!r})"
    if roster.tasks:
        invitation = f"all {len(roster.tasks)} tasks are there; {invitation}"
    attendance = Attendance(roster.tasks, membership.say, invitation)
    scheduler.add_plugin(attendance)
    farewell = Farewell(scheduler)
    membership.say(f"the scheduler listens at {address}")
    try:
        yield attendance
    finally:
        await farewell.say()
        with contextlib.suppress(Exception):  # whatever the error is, it ends with this process
            await asyncio.wait_for(scheduler.close(reason="workbench join ends"), _CLOSE_SECONDS)
