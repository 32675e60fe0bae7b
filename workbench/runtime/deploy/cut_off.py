"""Lets workers of a plain Dask cluster survive a network outage: they leave, and return when the scheduler answers.

A Dask worker closes when its connection to the scheduler breaks, and so does its nanny; after an outage of some thirty
seconds, nothing is left on that host to continue. Here the worker first waits for the scheduler, then ends alone: its
nanny starts another process, which joins.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any, Final

from distributed import Worker
from distributed.comm.core import connect
from distributed.core import Status

REJOINS: Final = "WORKBENCH_REJOINS"
"""Set in the environment of workers if the owner of their nanny rejoins by itself, as `workbench join` does."""
_BROKEN: Final = ("worker-handle-scheduler-connection-broken", "worker-heartbeat-missing")
"""The reasons that Dask's worker gives when it closes because the scheduler is unreachable or has given it up."""
_PATIENCE_SECONDS: Final = 300.0
_ANSWER_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.5


def outlast(worker: Worker, leave: Callable[[], object]) -> None:
    """Keeps a worker's nanny alive during a network outage, for five minutes or the worker's death timeout.

    Args:
      worker: A worker with a nanny.
      leave: Ends all work for drivers; called on the worker's event loop as soon as the connection breaks.
    """
    close: Any = worker.close

    async def close_later(*args: Any, nanny: bool = True, reason: str = "worker-close", **kwargs: Any) -> Any:
        if nanny and reason in _BROKEN and worker.status is Status.running:
            leave()
            nanny = not await _answers_again(worker)
        return await close(*args, nanny=nanny, reason=reason, **kwargs)

    worker.close = close_later  # type: ignore[method-assign]  # Dask has no other place for this


async def _answers_again(worker: Worker) -> bool:
    """Waits for the worker's scheduler to answer; False if it does not, or if the worker is being closed."""
    worker.periodic_callbacks["heartbeat"].stop()  # every heartbeat would fail
    deadline = time.monotonic() + (worker.death_timeout or _PATIENCE_SECONDS)
    while worker.status is Status.running:
        with contextlib.suppress(OSError, TimeoutError):
            comm = await connect(worker.scheduler.address, timeout=_ANSWER_SECONDS, **worker.connection_args)
            comm.abort()
            return True
        if time.monotonic() > deadline:
            break
        await asyncio.sleep(_PAUSE_SECONDS)
    return False
